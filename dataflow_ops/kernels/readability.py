"""What tells how hard a text is to read: letters, words, sentence ends and Han; indentation of code."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

from dataflow_ops.kernels.arrow import I64, U8, U64, ix
from dataflow_ops.kernels.counts import frozen

COLUMNS = ("letters", "words", "ends", "han")

# A byte adds to 16-bit lanes of one sum. Two lanes count changes, so that the lane's lowest bit serves as
# the state before: whether a word is open, and whether a sentence has ended already ("..." and "?!" end one).
_LETTER = 1
_WORD = 1 << 16
_END = 1 << 32
_HAN = 1 << 48
_STATES = _WORD | _END
_LONGEST = 65_535  # bytes of a text, or a lane overflows


def _tables() -> U64:
    """What a byte adds, and which states it keeps: uint64, shape (2, 256)."""
    table = np.zeros((2, 256), np.uint64)
    table[1] = _END
    for byte in range(256):
        char = chr(byte)
        # C3 to DF lead two bytes: Latin letters with accents, Greek, Cyrillic, Hebrew, Arabic.
        if (byte < 0x80 and char.isalnum()) or 0xC3 <= byte <= 0xDF:
            table[:, byte] = _LETTER | _WORD, 0
        elif 0x80 <= byte <= 0xBF:
            table[:, byte] = 0, _STATES
        elif 0xE4 <= byte <= 0xE9:
            table[:, byte] = _HAN, 0
        elif char in ".!?":
            table[:, byte] = _END, 0
    return table


_TABLES = _tables()


@njit(cache=True, nogil=True)
def _count(data, offsets, rows, limit, tables, out):  # type: ignore[no-untyped-def]
    for i in range(rows.size):
        j = offsets[rows[i]]
        stop = min(offsets[rows[i] + 1], j + limit)
        state, total = np.uint64(_END), np.uint64(0)
        while j < stop:
            byte = data[ix(j)]
            adds, keeps = tables[0, byte], tables[1, byte]
            j += 1
            if (byte == 0xE3 or byte == 0xEF) and j + 1 < stop:
                a, b = data[ix(j)], data[ix(j + 1)]
                # 。 is E3 80 82, ！ EF BC 81, ？ EF BC 9F
                if (byte == 0xE3 and a == 0x80 and b == 0x82) or (
                    byte == 0xEF and a == 0xBC and (b == 0x81 or b == 0x9F)
                ):
                    adds, keeps = np.uint64(_END), np.uint64(0)
            total += adds & ~state
            state = (adds & np.uint64(_STATES)) | (state & keeps)
        for lane in range(4):
            out[i, lane] = np.int64((total >> np.uint64(16 * lane)) & np.uint64(0xFFFF))


@njit(cache=True, nogil=True)
def _indentation(data, offsets, rows, limit, out):  # type: ignore[no-untyped-def]
    for i in range(rows.size):
        j = offsets[rows[i]]
        stop = min(offsets[rows[i] + 1], j + limit)
        lines, columns = 0, 0
        while j < stop:
            column = 0
            while j < stop and (data[ix(j)] == 32 or data[ix(j)] == 9):
                column += 1 if data[ix(j)] == 32 else 4
                j += 1
            if j < stop and data[ix(j)] != 10:
                lines += 1
                columns += column
            while j < stop and data[ix(j)] != 10:
                j += 1
            j += 1
        out[i, 0], out[i, 1] = lines, columns


def count_reading(data: U8, offsets: I64, rows: I64, limit: int) -> I64:
    """Letters, words, sentence ends and Han characters of some texts.

    Args:
        data: UTF-8 bytes.
        offsets: int64, shape (n + 1,).
        rows: which texts, int64, shape (m,).
        limit: bytes looked at from the top of each, at most 65,535.

    Returns:
        int64 of shape (m, 4): :data:`COLUMNS`. Letters are ASCII letters and digits and the other
        characters of two bytes; several end marks in a row end one sentence.

    """
    if limit > _LONGEST:
        raise ValueError(f"limit must be at most {_LONGEST}")
    out = np.zeros((len(rows), len(COLUMNS)), np.int64)
    _count(frozen(data), frozen(offsets), frozen(rows), limit, _TABLES, out)
    return out


def count_indentation(data: U8, offsets: I64, rows: I64, limit: int) -> I64:
    """Lines that hold more than blanks, and the columns they are indented by in all (a tab is four).

    Args:
        data: UTF-8 bytes.
        offsets: int64, shape (n + 1,).
        rows: which texts, int64, shape (m,).
        limit: bytes looked at from the top of each.

    Returns:
        int64 of shape (m, 2): lines, columns.

    """
    out = np.zeros((len(rows), 2), np.int64)
    _indentation(frozen(data), frozen(offsets), frozen(rows), limit, out)
    return out


def warm() -> None:
    """Compile the kernels of this module."""
    data, offsets = np.frombuffer("a。".encode(), np.uint8), np.array([0, 4], np.int64)
    rows: npt.NDArray[np.int64] = np.zeros(1, np.int64)
    count_reading(data, offsets, rows, 4)
    count_indentation(data, offsets, rows, 4)
