"""What the lines of a document look like, and how many of them stood before."""

from __future__ import annotations

import numpy as np
from numba import njit

from dataflow_ops.kernels.arrow import I64, U8
from dataflow_ops.kernels.counts import decode, frozen
from dataflow_ops.kernels.unicode_classes import NEWLINE, SENTENCE_END, SPACE, class_table
from dataflow_ops.kernels.words import mix, table_size

VERSION = 1
COLUMNS = (
    "lines",  # lines that hold more than white space; all others count these only
    "chars",  # characters in them, without white space at either end
    "ended",  # ending in a sentence end, or in a quote or bracket behind one
    "ellipsis",  # ending in … or ...
    "bullet",  # beginning with a bullet
    "short",  # under 30 characters
    "code",  # ending in ; { } or ): without a bullet
    "cells",  # holding two or more tabs or bars
    "repeated",  # equal to an earlier line
    "repeated_chars",
    "brace",  # holding {
)
_FIELD = {name: i for i, name in enumerate(COLUMNS)}
_LINES, _CHARS, _ENDED, _ELLIPSIS, _BULLET, _SHORT, _CODE, _CELLS, _REPEATED, _REPEATED_CHARS, _BRACE = range(
    11
)
_SHORT_LINE = 30
_REMEMBERED = 1 << 20  # different lines per document, so that memory stays bounded
_BULLETS = np.array([ord(c) for c in "-*•·●○◦‣▪■□–—"], np.int64)
_CLOSING = np.array([ord(c) for c in "\"')]”’」』）》"], np.int64)


@njit(cache=True, inline="always")
def _is_in(cp, those):  # type: ignore[no-untyped-def]
    for j in range(those.size):
        if those[j] == cp:
            return True
    return False


@njit(cache=True)
def _lines(data, offsets, classes, bullets, closing, keys, used, out):  # type: ignore[no-untyped-def]
    for row in range(offsets.size - 1):
        i, stop = offsets[row], offsets[row + 1]
        newlines = 1
        for j in range(i, stop):
            newlines += data[j] == 10
        slots = table_size(min(newlines, _REMEMBERED))
        mask = np.uint64(slots - 1)
        used[:slots] = False
        distinct = 0
        while i < stop:
            # One line: from i to its line feed.
            length, trailing = 0, 0
            first, second_is_space = np.int64(-1), False
            last, before, before2 = np.int64(0), np.int64(0), np.int64(0)
            cells, brace = 0, False
            h, h_trimmed = np.uint64(0), np.uint64(0)
            while i < stop:
                cp, size = decode(data, i)
                i += size
                if cp == 10:
                    break
                c = classes[cp]
                cells += cp == 9 or cp == 124
                if c == SPACE or c == NEWLINE:
                    if length == 0:
                        continue
                    second_is_space |= length == 1
                    trailing += 1
                else:
                    if first < 0:
                        first = cp
                    length += trailing + 1
                    trailing = 0
                    before2, before, last = before, last, cp
                    brace |= cp == 123
                h = (h ^ np.uint64(cp)) * np.uint64(0x100000001B3) + np.uint64(0x9E3779B97F4A7C15)
                if trailing == 0:
                    h_trimmed = h
            if length == 0:
                continue
            out[row, _LINES] += 1
            out[row, _CHARS] += length
            out[row, _SHORT] += length < _SHORT_LINE
            out[row, _CELLS] += cells >= 2
            out[row, _BRACE] += brace
            ends = classes[last] == SENTENCE_END
            out[row, _ENDED] += ends or (_is_in(last, closing) and classes[before] == SENTENCE_END)
            out[row, _ELLIPSIS] += last == 0x2026 or (last == 46 and before == 46 and before2 == 46)
            bullet = length > 1 and second_is_space and _is_in(first, bullets)
            out[row, _BULLET] += bullet
            code = last == 59 or last == 123 or last == 125 or (last == 58 and before == 41)
            out[row, _CODE] += code and not bullet
            key = mix(h_trimmed)
            slot = np.int64(key & mask)
            while used[slot] and keys[slot] != key:
                slot = (slot + 1) & np.int64(mask)
            if used[slot]:
                out[row, _REPEATED] += 1
                out[row, _REPEATED_CHARS] += length
            elif distinct < _REMEMBERED:
                used[slot] = True
                keys[slot] = key
                distinct += 1


def line_shape(data: U8, offsets: I64, most_lines: int) -> I64:
    """Counts over the lines of each document.

    Args:
        data: UTF-8 bytes.
        offsets: int64 of shape ``(n + 1,)``.
        most_lines: at least the number of line feeds of every document; sizes the table of seen lines.

    Returns:
        int64 of shape ``(n, len(COLUMNS))``; see :data:`COLUMNS`. Lines are cut at LF only. Of more than
        a million different lines the later ones are not remembered.

    """
    out = np.zeros((offsets.size - 1, len(COLUMNS)), np.int64)
    slots = table_size(min(most_lines + 1, _REMEMBERED))
    keys, used = np.empty(slots, np.uint64), np.empty(slots, np.bool_)
    _lines(frozen(data), frozen(offsets), class_table(), _BULLETS, _CLOSING, keys, used, out)
    return out


def column(shape: I64, name: str) -> I64:
    """One column of :func:`line_shape` by its name."""
    found: I64 = shape[:, _FIELD[name]]
    return found


def warm() -> None:
    """Compile for the types that batches have."""
    data = np.frombuffer("a line.\n中文。\n".encode(), np.uint8)
    line_shape(data, np.array([0, data.size], np.int64), 2)
