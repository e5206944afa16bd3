"""Counts of n-grams of units: the most frequent one, and the share of text inside repeated ones.

An n-gram that stands twice holds only shorter ones that stand twice. So each size is counted only where all
runs of the size before it repeat, which in prose soon is hardly anywhere, and the counts are still exact.
Tables hold 64-bit hashes; two n-grams that share one (chance below 1e-12 in a document) count as equal.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from dataflow_ops.kernels.arrow import ix
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
        h += hashes[ix(i + j)] * odd[ix(j)]
    return h


@njit(cache=True, inline="always")
def find(keys, values, mask, key):  # type: ignore[no-untyped-def]
    """Slot of ``key``, or the empty slot (``values`` 0) where it belongs."""
    slot = key & mask
    while values[slot] != 0 and keys[slot] != key:
        slot = (slot + np.uint64(1)) & mask
    return slot


@njit(cache=True)
def runs(slots, values, n, size, at):  # type: ignore[no-untyped-def]
    """Where ``size`` units in a row each stand more than once in the text.

    Args:
        slots: int32 slot of each unit in a table of counts.
        values: int32 counts.
        n: number of units.
        size: units in a row.
        at: int32, filled with the first unit of each run, ascending; at least ``n`` long.

    Returns:
        How many there are.

    """
    found, run = 0, 0
    for i in range(n):
        run = run + 1 if values[ix(slots[ix(i)])] > 1 else 0
        if run >= size:
            at[ix(found)] = i - size + 1
            found += 1
    return found


@njit(cache=True)
def count(hashes, lengths, size, at, m, slots, keys, values):  # type: ignore[no-untyped-def]
    """Count the n-grams that begin at some units, which must be all where one may stand twice.

    Characters inside repeats are those of n-grams that stood before in the text, each character once: after
    Rae et al. 2021 (Gopher), table A1, "duplicate n-grams"; overlapping repeats don't add up.

    Args:
        hashes: uint64 unit hashes.
        lengths: int32 characters per unit.
        size: units per n-gram, at most :data:`MOST`.
        at: int32 first units, ascending.
        m: how many.
        slots: int32, filled with the slot of each n-gram; at least ``m`` long.
        keys: uint64 scratch of at least ``table_size(m)`` slots.
        values: int32 scratch of the same size, filled with counts.

    Returns:
        ``(count of the most frequent n-gram, 0 without any; characters inside repeats)``.

    """
    mask = np.uint64(table_size(m) - 1)
    values[: mask + np.uint64(1)] = 0
    best, inside, covered = 0, 0, 0
    for k in range(m):
        i = at[ix(k)]
        key = _gram(hashes, i, size, _ODD)
        slot = find(keys, values, mask, key)
        keys[slot] = key
        slots[ix(k)] = slot
        values[slot] += 1
        best = max(best, values[slot])
        if values[slot] > 1:
            for j in range(max(i, covered), i + size):
                inside += lengths[ix(j)]
            covered = i + size
    return best, inside


@njit(cache=True)
def narrow(at, m, slots, values, longer):  # type: ignore[no-untyped-def]
    """Keep the first units of n-grams ``longer`` units longer that may stand twice, in place; their number.

    Such a run begins and ends with an n-gram that stands twice.
    """
    repeated = 0
    for k in range(m):
        if values[ix(slots[ix(k)])] > 1:
            at[ix(repeated)] = at[ix(k)]
            repeated += 1
    kept = 0
    for k in range(repeated - longer):
        if at[ix(k + longer)] == at[ix(k)] + longer:
            at[ix(kept)] = at[ix(k)]
            kept += 1
    return kept
