"""Counts of character classes per document, and the entropy of its characters."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from dataflow_ops.kernels.arrow import F64, I64, U8, ix
from dataflow_ops.kernels.unicode_classes import CLASSES, class_table

VERSION = 2
CHARS = CLASSES
"""Column of :class:`Census` that holds the number of characters."""


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


def frozen(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """A read-only view, so that one compiled kernel serves Arrow's memory and arrays made here."""
    view = array.view()
    view.flags.writeable = False
    return view


class Census(NamedTuple):
    """Characters of n documents.

    Attributes:
        counts: int64 of shape ``(n, CLASSES + 1)``: a column per class of :mod:`unicode_classes`, then the
            number of characters (:data:`CHARS`), which is their sum.
        entropy: float64 of shape ``(n,)``: Shannon entropy in bits per character; 0 for an empty document.

    """

    counts: I64
    entropy: F64


def census(data: U8, offsets: I64) -> Census:
    """Count the characters of each document, once for their classes and their entropy.

    Args:
        data: UTF-8 bytes.
        offsets: int64 of shape ``(n + 1,)``.

    """
    n = offsets.size - 1
    out, bits = np.zeros((n, CLASSES + 1), np.int64), np.zeros(n)
    longest = int(np.diff(offsets).max()) if n else 0
    histogram = np.zeros(0x110000, np.int32)
    touched = np.zeros(min(longest, 0x110000) + 1, np.int64)
    _census(frozen(data), frozen(offsets), class_table(), _logarithms(4096), histogram, touched, out, bits)
    return Census(out, bits)


@njit(cache=True)
def _census(data, offsets, classes, logs, histogram, touched, out, bits):  # type: ignore[no-untyped-def]
    # Neighbours count into different tables: one that is added to twice in a row waits for itself.
    ascii = np.zeros((2, 128), np.int32)
    for row in range(offsets.size - 1):
        i, stop = offsets[row], offsets[row + 1]
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
            times = ascii[0, c] + ascii[1, c]
            weighted += _n_log_n(times, logs)
            out[row, classes[c]] += times
        ascii[:] = 0
        for j in range(n_touched):
            times = histogram[touched[j]]
            weighted += _n_log_n(times, logs)
            out[row, classes[touched[j]]] += times
            histogram[touched[j]] = 0
        out[row, CLASSES] = total
        bits[row] = np.log2(total) - weighted / total if total > 0 else 0.0


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


def warm() -> None:
    """Compile for the types that batches have."""
    data, offsets = np.frombuffer("aé中".encode(), np.uint8), np.array([0, 6], np.int64)
    census(data, offsets)
