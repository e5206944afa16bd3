"""What the lines of a document look like, and how many of them stood before."""

from __future__ import annotations

import numpy as np
from numba import njit

from dataflow_ops.kernels.arrow import I64, U8, eights, ix
from dataflow_ops.kernels.counts import decode, frozen
from dataflow_ops.kernels.unicode_classes import NEWLINE, SENTENCE_END, SPACE, class_table
from dataflow_ops.kernels.words import mix, table_size

VERSION = 2
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


@njit(cache=True, inline="always")
def _equal(x, byte):  # type: ignore[no-untyped-def]
    """Of eight bytes: the highest bit of each that equals ``byte``."""
    low = np.uint64(0x7F7F7F7F7F7F7F7F)
    x = x ^ (np.uint64(byte) * np.uint64(0x0101010101010101))
    return ~(((x & low) + low) | x | low)


@njit(cache=True, inline="always")
def _bits(x):  # type: ignore[no-untyped-def]
    """How many of the highest bits of eight bytes are set, where no other bit is."""
    return np.int64(((x >> np.uint64(7)) * np.uint64(0x0101010101010101)) >> np.uint64(56))


@njit(cache=True)
def _survey(data, wide, i, stop):  # type: ignore[no-untyped-def]
    """Line feeds in ``data[i:stop]``; whether it has tabs or bars, braces, and bytes beyond ASCII."""
    feeds = 0
    cells, braces, high = np.uint64(0), np.uint64(0), np.uint64(0)
    while i + 8 <= stop:
        x = wide[ix(i)]
        feeds += _bits(_equal(x, 10))
        cells |= _equal(x, 9) | _equal(x, 124)
        braces |= _equal(x, 123)
        high |= x
        i += 8
    has_cells, has_braces = cells != 0, braces != 0
    beyond = (high & np.uint64(0x8080808080808080)) != 0
    while i < stop:
        b = data[ix(i)]
        feeds += b == 10
        has_cells |= (b == 9) | (b == 124)
        has_braces |= b == 123
        beyond |= b >= 0x80
        i += 1
    return feeds, has_cells, has_braces, beyond


@njit(cache=True, inline="always")
def _line_end(data, wide, i, stop):  # type: ignore[no-untyped-def]
    """Byte of the next line feed in ``data[i:stop]``, else ``stop``; eight bytes at a time."""
    while i + 8 <= stop:
        if _equal(wide[ix(i)], 10):
            break
        i += 8
    while i < stop and data[ix(i)] != 10:
        i += 1
    return i


@njit(cache=True, inline="always")
def _hash(data, wide, i, stop):  # type: ignore[no-untyped-def]
    """Hash of some bytes: equal ones have equal hashes."""
    h = np.uint64(stop - i) * np.uint64(0x9E3779B97F4A7C15)
    while i + 8 <= stop:
        h = (h ^ wide[ix(i)]) * np.uint64(0xBF58476D1CE4E5B9)
        h ^= h >> np.uint64(32)
        i += 8
    tail = np.uint64(0)
    while i < stop:
        tail = (tail << np.uint64(8)) | np.uint64(data[ix(i)])
        i += 1
    return mix((h ^ tail) * np.uint64(0xBF58476D1CE4E5B9))


@njit(cache=True, inline="always")
def _is_space(cp, classes):  # type: ignore[no-untyped-def]
    c = classes[ix(cp)]
    return c == SPACE or c == NEWLINE


@njit(cache=True, inline="always")
def _trim(data, i, stop, classes):  # type: ignore[no-untyped-def]
    """Bounds of ``data[i:stop]`` without white space at either end."""
    while i < stop:
        cp, size = decode(data, i)
        if not _is_space(cp, classes):
            break
        i += size
    while stop > i:
        p = _before(data, stop)
        if not _is_space(decode(data, p)[0], classes):
            break
        stop = p
    return i, stop


@njit(cache=True, inline="always")
def _before(data, p):  # type: ignore[no-untyped-def]
    """First byte of the character that ends before byte ``p``."""
    p -= 1
    while data[ix(p)] & 0xC0 == 0x80:
        p -= 1
    return p


@njit(cache=True, inline="always")
def _last_three(data, start, stop, classes):  # type: ignore[no-untyped-def]
    """The last three characters other than white space, the last one first; 0 where there are fewer."""
    last, before, before2 = np.int64(0), np.int64(0), np.int64(0)
    found = 0
    while stop > start and found < 3:
        stop = _before(data, stop)
        cp = decode(data, stop)[0]
        if _is_space(cp, classes):
            continue
        if found == 0:
            last = cp
        elif found == 1:
            before = cp
        else:
            before2 = cp
        found += 1
    return last, before, before2


@njit(cache=True)
def _lines(data, wide, offsets, classes, bullets, closing, keys, used, out):  # type: ignore[no-untyped-def]
    for row in range(offsets.size - 1):
        i, stop = offsets[row], offsets[row + 1]
        feeds, has_cells, has_braces, beyond = _survey(data, wide, i, stop)
        slots = table_size(min(feeds + 1, _REMEMBERED))
        mask = np.uint64(slots - 1)
        used[:slots] = False
        distinct = 0
        while i < stop:
            line, end = i, _line_end(data, wide, i, stop)
            i = end + 1
            start, end = _trim(data, line, end, classes)
            if start == end:
                continue
            cells, braces, inside = 0, 0, 0
            if has_cells:
                for j in range(line, i - 1):
                    cells += (data[ix(j)] == 9) | (data[ix(j)] == 124)
            if has_braces:
                for j in range(start, end):
                    braces += data[ix(j)] == 123
            if beyond:
                for j in range(start, end):
                    inside += (data[ix(j)] & 0xC0) == 0x80
            length = end - start - inside
            first, size = decode(data, start)
            second_is_space = length > 1 and _is_space(decode(data, start + size)[0], classes)
            last, before, before2 = _last_three(data, start, end, classes)
            out[row, _LINES] += 1
            out[row, _CHARS] += length
            out[row, _SHORT] += length < _SHORT_LINE
            out[row, _CELLS] += cells >= 2
            out[row, _BRACE] += braces > 0
            ends = classes[ix(last)] == SENTENCE_END
            out[row, _ENDED] += ends or (_is_in(last, closing) and classes[ix(before)] == SENTENCE_END)
            out[row, _ELLIPSIS] += last == 0x2026 or (last == 46 and before == 46 and before2 == 46)
            bullet = second_is_space and _is_in(first, bullets)
            out[row, _BULLET] += bullet
            code = last == 59 or last == 123 or last == 125 or (last == 58 and before == 41)
            out[row, _CODE] += code and not bullet
            key = _hash(data, wide, start, end)
            slot = key & mask
            while used[slot] and keys[slot] != key:
                slot = (slot + np.uint64(1)) & mask
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
    _lines(frozen(data), eights(data), frozen(offsets), class_table(), _BULLETS, _CLOSING, keys, used, out)
    return out


def column(shape: I64, name: str) -> I64:
    """One column of :func:`line_shape` by its name."""
    found: I64 = shape[:, _FIELD[name]]
    return found


def warm() -> None:
    """Compile for the types that batches have."""
    data = np.frombuffer("a line.\n中文。\n".encode(), np.uint8)
    line_shape(data, np.array([0, data.size], np.int64), 2)
