"""MinHash signatures: an estimate of how many shingles two texts share, in a few hundred bytes.

A shingle is a run of ``size`` characters of the key text, or of ``size`` words. Its hash x is the sum of
its code points (words: of their hashes) times fixed odd weights by position, modulo 2**32, then mixed by
the finaliser of MurmurHash3; unlike a rolling hash this runs on all lanes at once. Permutation j is
``min over x of (a[j] * x + b[j]) mod 2**32`` with odd a[j] (multiply-shift, after Dietzfelbinger et al.
1997). The share of equal positions in two signatures estimates the Jaccard similarity with standard error
``sqrt(J (1 - J) / permutations)``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numba
import numpy as np

from dataflow_ops.kernels.arrow import I64, U8, U32, ix
from dataflow_ops.kernels.counts import frozen

VERSION = 1

MAX_SHINGLE = 127
_PASS = 16  # shingles
_RUN = 64  # bytes that are looked at together, and read together where all are ASCII
_BLOCK = 2048  # units hashed at once: with their hashes they stay in the first-level cache


@dataclass(frozen=True, slots=True)
class Permutations:
    """Coefficients of the permutations.

    Attributes:
        a: uint32 odd, shape ``(k,)``.
        b: uint32, shape ``(k,)``.
        seed: what they were drawn with.
    """

    a: U32
    b: U32
    seed: int


def permutations(k: int, seed: int) -> Permutations:
    """Draw ``k`` permutations; the same for the same seed on every machine (splitmix64)."""
    raw = np.array([_splitmix(seed * 0x10001 + i) for i in range(2 * k)], np.uint64)
    high = (raw >> np.uint64(32)).astype(np.uint32)
    return Permutations(high[:k] | np.uint32(1), high[k:].copy(), seed)


def _weights() -> U32:
    return np.array([_splitmix(0x5EED + i) >> 32 | 1 for i in range(MAX_SHINGLE)], np.uint32)


def _splitmix(i: int) -> int:
    mask = (1 << 64) - 1
    z = (i + 1) * 0x9E3779B97F4A7C15 & mask
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & mask
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB & mask
    return z ^ (z >> 31)


def signatures(
    data: U8, offsets: I64, sizes: I64, perms: Permutations, words: bool = False
) -> tuple[U32, I64]:
    """Signatures of many texts.

    Args:
        data: uint8 UTF-8 bytes of folded texts; with ``words``, words parted by single spaces or more.
        offsets: int64, shape ``(n + 1,)``.
        sizes: int64, shape ``(n,)``: shingle size of each text, 1 … 127.
        perms: permutations, k of them.
        words: shingles of words (a Han or kana character is a word) instead of characters.

    Returns:
        ``(signatures, shingles)``: uint32, shape ``(n, k)``, and int64, shape ``(n,)``: how many shingles
        went in. Texts with 0 shingles have no signature (their row is all ones) and must not be compared.
    """
    n = len(offsets) - 1
    out = np.full((n, len(perms.a)), 0xFFFFFFFF, np.uint32)
    shingles = np.zeros(n, np.int64)
    _sign_rows(data, offsets, sizes, perms.a, perms.b, _weights(), words, out, shingles)
    return out, shingles


class Signer:
    """The signature of one text that arrives in pieces; equal to the one made at once.

    Pieces must be cut between characters. Memory does not grow with the text.

    Args:
        size: shingle size, 1 … 127.
        perms: permutations.
        words: as in :func:`signatures`.
    """

    def __init__(self, size: int, perms: Permutations, words: bool = False) -> None:
        self._size, self._perms, self._words = size, perms, words
        self._signature = np.full(len(perms.a), 0xFFFFFFFF, np.uint32)
        self._weights = _weights()
        self._units = np.empty(_BLOCK, np.uint32)
        self._hashes = np.empty(_BLOCK + _PASS, np.uint32)
        self._state = np.zeros(3, np.int64)

    def update(self, piece: bytes) -> None:
        """Take in the next piece (UTF-8)."""
        data = np.frombuffer(piece, np.uint8)
        self._feed(data, False)

    def finish(self) -> tuple[U32, int]:
        """Return ``(signature, shingles)``; nothing may be added afterwards."""
        self._feed(np.empty(0, np.uint8), True)
        return self._signature, max(0, int(self._state[1]) - self._size + 1)

    def _feed(self, data: U8, last: bool) -> None:
        p = self._perms
        _feed(
            data,
            0,
            len(data),
            self._size,
            p.a,
            p.b,
            self._weights,
            self._words,
            last,
            self._units,
            self._hashes,
            self._state,
            self._signature,
        )


@numba.njit(cache=True)
def _fold(signature, a, b, x, count):  # type: ignore[no-untyped-def]
    """Fold the shingles ``x[:count]`` into the signature, sixteen in each pass over the permutations.

    So a position of the signature is loaded and stored once for sixteen, and the sixteen stay in registers.
    """
    for at in range(0, count, _PASS):
        x0, x1, x2, x3 = x[ix(at)], x[ix(at + 1)], x[ix(at + 2)], x[ix(at + 3)]
        x4, x5, x6, x7 = x[ix(at + 4)], x[ix(at + 5)], x[ix(at + 6)], x[ix(at + 7)]
        x8, x9, x10, x11 = x[ix(at + 8)], x[ix(at + 9)], x[ix(at + 10)], x[ix(at + 11)]
        x12, x13, x14, x15 = x[ix(at + 12)], x[ix(at + 13)], x[ix(at + 14)], x[ix(at + 15)]
        for j in range(len(signature)):
            aj = a[j]
            bj = b[j]
            m0 = min(np.uint32(aj * x0 + bj), np.uint32(aj * x1 + bj))
            m1 = min(np.uint32(aj * x2 + bj), np.uint32(aj * x3 + bj))
            m2 = min(np.uint32(aj * x4 + bj), np.uint32(aj * x5 + bj))
            m3 = min(np.uint32(aj * x6 + bj), np.uint32(aj * x7 + bj))
            m4 = min(np.uint32(aj * x8 + bj), np.uint32(aj * x9 + bj))
            m5 = min(np.uint32(aj * x10 + bj), np.uint32(aj * x11 + bj))
            m6 = min(np.uint32(aj * x12 + bj), np.uint32(aj * x13 + bj))
            m7 = min(np.uint32(aj * x14 + bj), np.uint32(aj * x15 + bj))
            low = min(min(m0, m1), min(m2, m3))
            high = min(min(m4, m5), min(m6, m7))
            signature[j] = min(signature[j], min(low, high))


@numba.njit(cache=True)
def _take(units, filled, size, weights, x, a, b, signature):  # type: ignore[no-untyped-def]
    """Hash every shingle of ``units[:filled]`` into the signature; return how many units to carry over."""
    count = filled - size + 1
    if count <= 0:
        return filled
    x[:count] = np.uint32(0)
    for k in range(size):
        weight = weights[k]
        for i in range(count):
            x[i] = np.uint32(x[i] + np.uint32(units[i + k] * weight))
    for i in range(count):
        h = x[i]
        h = np.uint32(h ^ (h >> np.uint32(16)))
        h = np.uint32(h * np.uint32(0x85EBCA6B))
        h = np.uint32(h ^ (h >> np.uint32(13)))
        h = np.uint32(h * np.uint32(0xC2B2AE35))
        x[i] = np.uint32(h ^ (h >> np.uint32(16)))
    # Repeating a shingle changes no minimum, so the last pass is filled up with one.
    for i in range(count, count + (-count % _PASS)):
        x[i] = x[0]
    _fold(signature, a, b, x, count)
    for i in range(size - 1):
        units[i] = units[count + i]
    return size - 1


@numba.njit(cache=True)
def _feed(data, start, end, size, a, b, weights, words, last, units, x, state, signature):  # type: ignore[no-untyped-def]
    """Read ``data[start:end]``; ``units`` and ``state`` carry what the next piece needs.

    state: units waiting in ``units``, units seen in all, hash of the word that is still open (0: none).
    """
    filled = state[0]
    seen_units = state[1]
    word = np.uint32(state[2])
    capacity = len(units)
    p = start
    plain = start  # no look for a run of ASCII before this byte
    while p < end:
        if p >= plain and not words:
            run = min(_RUN, end - p, capacity - filled)
            seen = np.uint8(0)
            for j in range(run):
                seen |= data[ix(p + j)]
            if seen < 0x80:
                for j in range(run):
                    units[ix(filled + j)] = data[ix(p + j)]
                p += run
                filled += run
                seen_units += run
                if filled == capacity:
                    filled = _take(units, filled, size, weights, x, a, b, signature)
                continue
            plain = p + run
        lead = data[ix(p)]
        if lead < 0x80:
            c = np.uint32(lead)
            p += 1
        elif lead < 0xE0:
            c = np.uint32(((lead & 0x1F) << 6) | (data[ix(p + 1)] & 0x3F))
            p += 2
        elif lead < 0xF0:
            c = np.uint32(((lead & 0x0F) << 12) | ((data[ix(p + 1)] & 0x3F) << 6) | (data[ix(p + 2)] & 0x3F))
            p += 3
        else:
            c = np.uint32(
                ((lead & 0x07) << 18)
                | ((data[ix(p + 1)] & 0x3F) << 12)
                | ((data[ix(p + 2)] & 0x3F) << 6)
                | (data[ix(p + 3)] & 0x3F)
            )
            p += 4
        if words:
            dense = c >= 0x3040 and (c < 0x3100 or (c >= 0x3400 and c < 0xA000) or c >= 0x20000)
            if c != 32 and not dense:
                word = np.uint32(np.uint32(word ^ c) * np.uint32(0x9E3779B1))
                word = np.uint32(word ^ (word >> np.uint32(15))) | np.uint32(1)
                continue
            if word != 0:
                units[filled] = word
                filled += 1
                seen_units += 1
                word = np.uint32(0)
                if filled == capacity:
                    filled = _take(units, filled, size, weights, x, a, b, signature)
            if not dense:
                continue
        units[ix(filled)] = c
        filled += 1
        seen_units += 1
        if filled == capacity:
            filled = _take(units, filled, size, weights, x, a, b, signature)
    if last:
        if word != 0:
            units[filled] = word
            filled += 1
            seen_units += 1
        filled = _take(units, filled, size, weights, x, a, b, signature)
    state[0] = filled
    state[1] = seen_units
    state[2] = word


@numba.njit(cache=True)
def _sign_rows(data, offsets, sizes, a, b, weights, words, out, shingles):  # type: ignore[no-untyped-def]
    units = np.empty(_BLOCK, np.uint32)
    x = np.empty(_BLOCK + _PASS, np.uint32)
    state = np.zeros(3, np.int64)
    for i in range(len(offsets) - 1):
        state[:] = 0
        size = sizes[i]
        _feed(data, offsets[i], offsets[i + 1], size, a, b, weights, words, True, units, x, state, out[i])
        shingles[i] = max(0, state[1] - size + 1)


def agreements(signatures: U32, many: I64, one: int) -> I64:
    """Equal positions of one signature with each of many.

    Args:
        signatures: uint32, shape ``(n, k)``, C-contiguous.
        many: int64 rows, shape ``(m,)``.
        one: a row.

    Returns:
        int64, shape ``(m,)``, each 0 … k.
    """
    out: I64 = _agreements(frozen(signatures), frozen(many), one)
    return out


def pairs_agreeing(signatures: U32, a: I64, b: I64) -> I64:
    """Equal positions of the signatures of pairs of rows.

    Args:
        signatures: uint32, shape ``(n, k)``, C-contiguous.
        a: int64 rows, shape ``(m,)``.
        b: int64 rows, shape ``(m,)``.

    Returns:
        int64, shape ``(m,)``, each 0 … k.
    """
    out: I64 = _pairs_agreeing(frozen(signatures), frozen(a), frozen(b))
    return out


@numba.njit(cache=True)
def _pairs_agreeing(signatures, a, b):  # type: ignore[no-untyped-def]
    out = np.zeros(len(a), np.int64)
    for i in range(len(a)):
        equal = np.int32(0)
        for j in range(signatures.shape[1]):
            equal += np.int32(signatures[ix(a[i]), j] == signatures[ix(b[i]), j])
        out[i] = equal
    return out


@numba.njit(cache=True)
def _agreements(signatures, many, one):  # type: ignore[no-untyped-def]
    out = np.zeros(len(many), np.int64)
    for i in range(len(many)):
        row = many[i]
        equal = np.int32(0)
        for j in range(signatures.shape[1]):
            equal += np.int32(signatures[row, j] == signatures[one, j])
        out[i] = equal
    return out


def warm() -> None:
    """Compile the kernels of this module, for memory of Arrow (read-only) and of numpy."""
    agreements(np.ones((2, 16), np.uint32), np.arange(2), 0)
    pairs_agreeing(np.ones((2, 16), np.uint32), np.arange(2), np.arange(2))
    perms = permutations(16, 1)
    offsets = np.array([0, 20], np.int64)
    frozen = np.frombuffer(b"a text of twenty ch.", np.uint8)
    fixed = offsets.copy()
    fixed.flags.writeable = False
    for data, bounds in ((frozen.copy(), offsets), (frozen, fixed)):
        signatures(data, bounds, np.array([5], np.int64), perms)
    signer = Signer(5, perms)
    signer.update(b"a text of twenty ch.")
    signer.finish()
