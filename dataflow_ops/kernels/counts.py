"""Counts of character classes per document, and the entropy of its characters."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

from dataflow_ops.kernels.arrow import F64, I64, U8, U64, ix
from dataflow_ops.kernels.unicode_classes import (
    CLASSES,
    CONTROL,
    DIGIT,
    LATIN,
    NEWLINE,
    PUNCT,
    SENTENCE_END,
    SPACE,
    SYMBOL,
    class_table,
)

VERSION = 2
CHARS = CLASSES
"""Column of :func:`count_classes` that holds the number of characters."""

# The eight classes that ASCII characters can have, one byte-wide lane each.
_LANES = np.array([SPACE, NEWLINE, DIGIT, PUNCT, SENTENCE_END, SYMBOL, CONTROL, LATIN], np.int64)
_BLOCK = 128  # at most 255, or a lane overflows


@njit(cache=True, inline="always")
def decode(data, i):  # type: ignore[no-untyped-def]
    """Code point at byte ``i`` of valid UTF-8, and its length in bytes."""
    b = np.int64(data[ix(i)])
    if b < 0x80:
        return b, 1
    second = np.int64(data[ix(i + 1)]) & 0x3F
    if b < 0xE0:
        return ((b & 0x1F) << 6) | second, 2
    third = np.int64(data[ix(i + 2)]) & 0x3F
    if b < 0xF0:
        return ((b & 0x0F) << 12) | (second << 6) | third, 3
    fourth = np.int64(data[ix(i + 3)]) & 0x3F
    return ((b & 0x07) << 18) | (second << 12) | (third << 6) | fourth, 4


@njit(cache=True)
def _count(data, offsets, classes, packed, lanes, out):  # type: ignore[no-untyped-def]
    for row in range(offsets.size - 1):
        i, stop = offsets[row], offsets[row + 1]
        while i < stop:
            end = min(i + _BLOCK, stop)
            lane_sums = np.uint64(0)
            seen = np.uint8(0)
            for j in range(i, end):
                lane_sums += packed[data[ix(j)]]
                seen |= data[ix(j)]
            if seen < 0x80:
                for lane in range(8):
                    out[row, lanes[lane]] += np.int64((lane_sums >> np.uint64(8 * lane)) & np.uint64(0xFF))
                out[row, CLASSES] += end - i
                i = end
                continue
            while i < end:  # a character may reach over the block's end
                cp, length = decode(data, i)
                out[row, classes[ix(cp)]] += 1
                out[row, CLASSES] += 1
                i += length


def frozen(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """A read-only view, so that one compiled kernel serves Arrow's memory and arrays made here."""
    view = array.view()
    view.flags.writeable = False
    return view


def count_classes(data: U8, offsets: I64) -> I64:
    """Characters of each class in each document.

    Args:
        data: UTF-8 bytes.
        offsets: int64 of shape ``(n + 1,)``.

    Returns:
        int64 of shape ``(n, CLASSES + 1)``: a column per class of :mod:`unicode_classes`, then the number of
        characters (:data:`CHARS`), which is their sum.

    """
    out = np.zeros((offsets.size - 1, CLASSES + 1), np.int64)
    _count(frozen(data), frozen(offsets), class_table(), _packed(), _LANES, out)
    return out


def _packed() -> U64:
    table = np.zeros(256, np.uint64)
    classes = class_table()
    for b in range(128):
        lane = int(np.flatnonzero(_LANES == classes[b])[0])
        table[b] = 1 << (8 * lane)
    return table


@njit(cache=True)
def _entropy(data, offsets, rows, logs, histogram, touched, out):  # type: ignore[no-untyped-def]
    # Neighbours count into different tables: one that is added to twice in a row waits for itself.
    ascii = np.zeros((2, 128), np.int32)
    for k in range(rows.size):
        i, stop = offsets[rows[k]], offsets[rows[k] + 1]
        n_touched, total = 0, 0
        while i < stop:
            b = data[ix(i)]
            if b < 0x80:
                ascii[ix(i & 1), b] += 1
                i += 1
                total += 1
                continue
            cp, length = decode(data, i)
            if histogram[ix(cp)] == 0:
                touched[ix(n_touched)] = cp
                n_touched += 1
            histogram[ix(cp)] += 1
            total += 1
            i += length
        weighted = 0.0
        for c in range(128):
            weighted += _n_log_n(ascii[0, c] + ascii[1, c], logs)
        ascii[:] = 0
        for j in range(n_touched):
            weighted += _n_log_n(histogram[touched[j]], logs)
            histogram[touched[j]] = 0
        out[k] = np.log2(total) - weighted / total if total > 0 else 0.0


@njit(cache=True, inline="always")
def _n_log_n(n, logs):  # type: ignore[no-untyped-def]
    return logs[n] if n < logs.size else n * np.log2(n)


@njit(cache=True)
def _logarithms(most):  # type: ignore[no-untyped-def]
    """``n × log2(n)`` for n below ``most``, by the same function as beyond it."""
    out = np.zeros(most)
    for n in range(2, most):
        out[n] = n * np.log2(n)
    return out


def entropy(data: U8, offsets: I64, rows: I64) -> F64:
    """Shannon entropy of the characters of some documents, in bits per character.

    Args:
        data: UTF-8 bytes.
        offsets: int64 of shape ``(n + 1,)``.
        rows: which documents, int64 of shape ``(m,)``.

    Returns:
        float64 of shape ``(m,)``; 0 for an empty document.

    """
    out = np.zeros(rows.size)
    longest = int((offsets[rows + 1] - offsets[rows]).max()) if rows.size else 0
    histogram = np.zeros(0x110000, np.int32)
    touched = np.zeros(min(longest, 0x110000) + 1, np.int64)
    _entropy(frozen(data), frozen(offsets), frozen(rows), _logarithms(4096), histogram, touched, out)
    return out


def warm() -> None:
    """Compile for the types that batches have."""
    data, offsets = np.frombuffer("aé中".encode(), np.uint8), np.array([0, 6], np.int64)
    count_classes(data, offsets)
    entropy(data, offsets, np.zeros(1, np.int64))
