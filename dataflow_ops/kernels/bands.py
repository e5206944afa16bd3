"""Band hashes: texts that agree on all rows of one band of their signatures become candidates (LSH)."""

from __future__ import annotations

import numba
import numpy as np

from dataflow_ops.kernels.arrow import I64, U32, U64

VERSION = 1


def band_hashes(signatures: U32, bands: int, rows: int, sizes: I64, words: bool = False) -> U64:
    """Hash each band of each signature.

    The band's number, the shingle unit and the shingle size are mixed in, so signatures of another kind
    never meet.

    Args:
        signatures: uint32, shape ``(n, k)``.
        bands: number of bands.
        rows: signature positions per band; ``bands * rows <= k``.
        sizes: int64, shape ``(n,)``: shingle size of each text.
        words: the shingles are of words.

    Returns:
        uint64, shape ``(n, bands)``.

    Raises:
        ValueError: the bands don't fit into the signature.
    """
    if bands * rows > signatures.shape[1]:
        raise ValueError(
            f"{bands} bands of {rows} rows need {bands * rows} positions, not {signatures.shape[1]}"
        )
    out = np.empty((len(signatures), bands), np.uint64)
    _hash_bands(signatures, rows, sizes, np.uint64(2 if words else 1), out)
    return out


def match_probability(similarity: float, bands: int, rows: int) -> float:
    """Chance that two texts of this Jaccard similarity become candidates: ``1 - (1 - s**rows)**bands``."""
    return float(1.0 - (1.0 - similarity**rows) ** bands)


def similarity_at(probability: float, bands: int, rows: int) -> float:
    """The Jaccard similarity at which candidates are found with this probability (inverse S-curve)."""
    return float((1.0 - (1.0 - probability) ** (1.0 / bands)) ** (1.0 / rows))


@numba.njit(cache=True, inline="always")
def mix64(h):  # type: ignore[no-untyped-def]
    """Finaliser of splitmix64: every input bit reaches every output bit."""
    h ^= h >> np.uint64(30)
    h *= np.uint64(0xBF58476D1CE4E5B9)
    h ^= h >> np.uint64(27)
    h *= np.uint64(0x94D049BB133111EB)
    return h ^ (h >> np.uint64(31))


@numba.njit(cache=True)
def mix_rows(values):  # type: ignore[no-untyped-def]
    """:func:`mix64` of each value; uint64, shape ``(n,)``."""
    out = np.empty(len(values), np.uint64)
    for i in range(len(values)):
        out[i] = mix64(values[i] + np.uint64(0x9E3779B97F4A7C15))
    return out


@numba.njit(cache=True)
def hash_runs(values, starts):  # type: ignore[no-untyped-def]
    """Hash of each run ``values[starts[i]:starts[i + 1]]``, order included; uint64, shape ``(runs,)``."""
    out = np.empty(len(starts) - 1, np.uint64)
    for i in range(len(starts) - 1):
        h = np.uint64(starts[i + 1] - starts[i])
        for p in range(starts[i], starts[i + 1]):
            h = mix64((h ^ values[p]) + np.uint64(0x9E3779B97F4A7C15))
        out[i] = h
    return out


@numba.njit(cache=True)
def _hash_bands(signatures, rows, sizes, unit, out):  # type: ignore[no-untyped-def]
    for i in range(len(signatures)):
        kind = mix64((unit << np.uint64(32)) | np.uint64(sizes[i]))
        for band in range(out.shape[1]):
            h = mix64(kind + np.uint64(band + 1) * np.uint64(0x9E3779B97F4A7C15))
            for r in range(rows):
                h = mix64((h ^ np.uint64(signatures[i, band * rows + r])) + np.uint64(0x9E3779B97F4A7C15))
            out[i, band] = h


def warm() -> None:
    """Compile the kernels of this module, for memory of Arrow (read-only) and of numpy."""
    band_hashes(np.ones((1, 16), np.uint32), 2, 8, np.array([5], np.int64))
    values = np.arange(4, dtype=np.uint64)
    hash_runs(values, np.array([0, 2, 4], np.int64))
    mix_rows(values)
    values.flags.writeable = False
    mix_rows(values)
