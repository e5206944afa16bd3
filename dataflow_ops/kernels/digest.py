"""SHA-1 of many texts: the exact dedup key. An identity among texts, not a security measure."""

from __future__ import annotations

import hashlib

import numpy as np
import numpy.typing as npt

from dataflow_ops.kernels.arrow import I64, U8, U64

SHA1_BYTES = 20


def sha1_rows(data: U8, offsets: I64) -> U8:
    """SHA-1 of each text.

    Args:
        data: uint8 UTF-8 bytes.
        offsets: int64, shape ``(n + 1,)``.

    Returns:
        uint8, shape ``(n, 20)``.
    """
    view = np.ascontiguousarray(data).data
    bounds = offsets.tolist()
    sha1 = hashlib.sha1
    joined = b"".join(
        sha1(view[bounds[i] : bounds[i + 1]], usedforsecurity=False).digest() for i in range(len(bounds) - 1)
    )
    return np.frombuffer(joined, np.uint8).reshape(-1, SHA1_BYTES)


def leading_u64(digests: U8) -> U64:
    """The first eight bytes of each row as one big-endian number: sorts as the bytes do.

    Args:
        digests: uint8, shape ``(n, at least 8)``.

    Returns:
        uint64, shape ``(n,)``.
    """
    head: npt.NDArray[np.uint8] = np.ascontiguousarray(digests[:, :8])
    return head.view(">u8").reshape(-1).astype(np.uint64)


def prefix_of(hashes: U64, ranges: int) -> npt.NDArray[np.int64]:
    """Which of ``ranges`` equal parts of the number line each hash falls into.

    Args:
        hashes: uint64, well mixed, shape ``(n,)``.
        ranges: a power of two.

    Returns:
        int64 in ``0 … ranges - 1``, shape ``(n,)``.

    Raises:
        ValueError: ``ranges`` is no power of two.
    """
    if ranges < 1 or ranges & (ranges - 1):
        raise ValueError(f"{ranges} is no power of two")
    if ranges == 1:
        return np.zeros(len(hashes), np.int64)
    return (hashes >> np.uint64(64 - (ranges.bit_length() - 1))).astype(np.int64)
