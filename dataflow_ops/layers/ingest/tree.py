"""Chunks as leaves of a binary tree over SHA-256(path): a file moves its own leaf only."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

FILE_OVERHEAD = 4096
"""Bytes counted for each file beside its content, so that a chunk never holds a million empty files."""

_BITS = 64
"""Bits of a hash that the tree uses: among a hundred million paths two share them once in 4,000 corpora;
such files would share a leaf whatever their weight."""


@dataclass(frozen=True, slots=True)
class Leaf:
    """Files that form one chunk.

    Attributes:
        prefix: bits of the path hashes that they share (``"0110"``); ``""`` for the whole source.
        members: their positions in the caller's list, ascending.
    """

    prefix: str
    members: npt.NDArray[np.int64]


def path_hash(path: str) -> int:
    """The first 64 bits of SHA-256 of a path."""
    return _first8(path)


def leaves(paths: Sequence[str], weights: Sequence[int], limit: int) -> list[Leaf]:
    """Cut the files of one source into leaves.

    A node is a leaf when its files' weights together fit the limit, while its parent's do not. A single
    file is a leaf whatever its weight.

    Args:
        paths: distinct.
        weights: bytes of each, in the order of ``paths``.
        limit: most bytes of a leaf.

    Returns:
        Leaves in ascending order of prefix, without empty ones; each file is in exactly one.
    """
    hashes = np.fromiter((path_hash(path) for path in paths), np.uint64, len(paths))
    order = np.argsort(hashes, kind="stable")
    hashes = hashes[order]
    sums = np.concatenate([[0], np.cumsum(np.asarray(weights, np.int64)[order])])
    found: list[Leaf] = []
    pending = [("", 0, len(order))]
    while pending:
        prefix, low, high = pending.pop()
        if low == high:
            continue
        if sums[high] - sums[low] <= limit or high - low == 1 or len(prefix) == _BITS:
            found.append(Leaf(prefix, np.sort(order[low:high]).astype(np.int64)))
            continue
        ones = np.uint64(int((prefix + "1").ljust(_BITS, "0"), 2))
        middle = low + int(np.searchsorted(hashes[low:high], ones))
        pending.append((prefix + "1", middle, high))
        pending.append((prefix + "0", low, middle))
    return found


def leaf_chunk(source_id: str, prefix: str) -> int:
    """The chunk id of a leaf: the first 8 bytes of a SHA-256, as uint64."""
    return _first8(f"leaf\0{source_id}\0{prefix}")


def file_chunk(source_id: str, path: str, part: int) -> int:
    """The chunk id of a part of a file that is too large to share a chunk; ``part`` counts from 0."""
    return _first8(f"file\0{source_id}\0{path}\0{part}")


def _first8(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode("utf-8", "surrogateescape")).digest()[:8], "big")
