"""Counts of n-grams of units: the most frequent one, and the share of text inside repeated ones.

Tables hold 64-bit hashes; two n-grams that share one (chance below 1e-12 in a document) count as equal.
Exact tables cost about 3 µs for 600 units, so no bound stands in for them.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from dataflow_ops.kernels.words import table_size

VERSION = 2

MOST = 16
"""Longest n-gram, in units."""
_ODD = np.random.Generator(np.random.PCG64(1)).integers(0, 1 << 63, MOST, np.uint64) * 2 + 1


@njit(cache=True, inline="always")
def _gram(hashes, i, size, odd):  # type: ignore[no-untyped-def]
    """Hash of a run of units, whose own hashes are mixed already: a sum with random odd weights by place."""
    h = np.uint64(0)
    for j in range(size):
        h += hashes[i + j] * odd[j]
    return h


@njit(cache=True, inline="always")
def find(keys, values, mask, key):  # type: ignore[no-untyped-def]
    """Slot of ``key``, or the empty slot (``values`` 0) where it belongs."""
    slot = np.int64(key & mask)
    while values[slot] != 0 and keys[slot] != key:
        slot = (slot + 1) & np.int64(mask)
    return slot


@njit(cache=True)
def top_count(hashes, n, size, keys, values):  # type: ignore[no-untyped-def]
    """How often the most frequent n-gram occurs.

    Args:
        hashes: uint64 unit hashes.
        n: number of units.
        size: units per n-gram, at most :data:`MOST`.
        keys: uint64 scratch of at least ``table_size(n)`` slots.
        values: int32 scratch of the same size.

    Returns:
        The count; 0 where there are fewer than ``size`` units.

    """
    slots = table_size(n)
    mask = np.uint64(slots - 1)
    values[:slots] = 0
    best = 0
    for i in range(n - size + 1):
        key = _gram(hashes, i, size, _ODD)
        slot = find(keys, values, mask, key)
        keys[slot] = key
        values[slot] += 1
        best = max(best, values[slot])
    return best


@njit(cache=True)
def repeated_chars(hashes, lengths, n, size, keys, values):  # type: ignore[no-untyped-def]
    """Characters inside n-grams that stood before in the text, each character counted once.

    After Rae et al. 2021 (Gopher), table A1, "duplicate n-grams": overlapping repeats don't add up.

    Args:
        hashes: uint64 unit hashes.
        lengths: int32 characters per unit.
        n: number of units.
        size: units per n-gram, at most :data:`MOST`.
        keys: uint64 scratch of at least ``table_size(n)`` slots.
        values: int32 scratch of the same size.

    Returns:
        ``(characters inside repeats, characters of all units)``.

    """
    slots = table_size(n)
    mask = np.uint64(slots - 1)
    values[:slots] = 0
    total, inside, covered = 0, 0, 0
    for i in range(n):
        total += lengths[i]
    for i in range(n - size + 1):
        key = _gram(hashes, i, size, _ODD)
        slot = find(keys, values, mask, key)
        if values[slot] == 0:
            keys[slot] = key
            values[slot] = 1
            continue
        for j in range(max(i, covered), i + size):
            inside += lengths[j]
        covered = i + size
    return inside, total
