"""Which texts are stored just as they are: no control characters to be removed, and in NFC for certain."""

from __future__ import annotations

import functools
import unicodedata

import numpy as np
import numpy.typing as npt
from numba import njit

from dataflow_ops.kernels.arrow import I64, U8
from dataflow_ops.kernels.counts import decode, frozen

ODD = 1
"""Flag: a control character (other than tab and LF; CR is one), or U+FFFD."""
LOOSE = 2
"""Flag: a character that NFC changes, or may join to one before it."""

_BLOCK = 128
_SCANNED = (
    range(0x3400),
    range(0xA000, 0xAC00),
    range(0xD7A4, 0xD800),
    range(0xE000, 0x20000),
    range(0x2F800, 0x2FA20),
)
"""Where loose characters are: between lie ideographs and syllables, beyond it nothing that joins."""
_HANGUL_JOINING = (range(0x1161, 0x1176), range(0x11A8, 0x11C3))


@functools.cache
def flag_table() -> U8:
    """Flags of every code point, uint8 of shape ``(0x110000,)``.

    A text without :data:`LOOSE` is in NFC: all its characters have the quick check value Yes and combining
    class 0 (Unicode Standard Annex 15, section 9).
    """
    table = np.zeros(0x110000, np.uint8)
    joining = {cp for block in _HANGUL_JOINING for cp in block}
    for block in _SCANNED:
        for cp in block:
            char = chr(cp)
            parts = unicodedata.decomposition(char)
            if parts and parts[0] != "<":
                joining.update(int(part, 16) for part in parts.split()[1:])
                if not unicodedata.is_normalized("NFC", char):
                    joining.add(cp)
            elif unicodedata.combining(char):
                joining.add(cp)
    table[sorted(joining)] = LOOSE
    table[[*range(0x20), *range(0x7F, 0xA0), 0xFFFD]] |= ODD
    table[[0x09, 0x0A]] = 0
    return table


@njit(cache=True)
def _scan(data, offsets, table, flags, chars):  # type: ignore[no-untyped-def]
    for row in range(offsets.size - 1):
        i, stop = offsets[row], offsets[row + 1]
        found = np.uint8(0)
        count = 0
        while i < stop:
            end = min(i + _BLOCK, stop)
            seen = np.uint8(0)
            odd = np.uint8(0)
            for j in range(i, end):
                b = data[j]
                seen |= b
                odd |= np.uint8((b < 0x20) & (b != 0x09) & (b != 0x0A)) | np.uint8(b == 0x7F)
            if seen < 0x80:
                found |= odd
                count += end - i
                i = end
                continue
            while i < end:  # a character may reach over the block's end
                cp, length = decode(data, i)
                found |= table[cp]
                count += 1
                i += length
        flags[row] = found
        chars[row] = count


def scan(data: U8, offsets: I64) -> tuple[U8, I64]:
    """Flags and length of each text.

    Args:
        data: UTF-8 bytes.
        offsets: int64 of shape ``(n + 1,)``.

    Returns:
        uint8 of shape ``(n,)``: :data:`ODD` and :data:`LOOSE`, set where any character has it; int64 of shape
        ``(n,)``: characters.
    """
    flags: npt.NDArray[np.uint8] = np.zeros(offsets.size - 1, np.uint8)
    chars = np.zeros(offsets.size - 1, np.int64)
    _scan(frozen(data), frozen(offsets), frozen(flag_table()), flags, chars)
    return flags, chars


def warm() -> None:
    """Compile for the types that batches have."""
    scan(np.frombuffer("aé".encode(), np.uint8), np.array([0, 3], np.int64))
