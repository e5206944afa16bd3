"""Four windows of each text as one line: what a language is told by, at a cost that no length changes.

The definition is :func:`sample_text`, on Python's own ``split``, ``isupper`` and ``lower``.
:func:`sample_lines` gives the same bytes from Arrow's memory; only capital lines with letters outside ASCII
go through Python.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt
from numba import njit

from dataflow_ops.kernels.arrow import I64, U8, ix
from dataflow_ops.kernels.counts import decode, frozen
from dataflow_ops.kernels.fasttext import PAD, Lines, enclose

WINDOWS = 4

_SPACE, _UPPER, _LOWER, _CHANGES = 1, 2, 4, 8
_LAST_CASED = 0x20000  # no character from here on has case or is white space
_BLOCK = 64


def sample_text(text: str, window: int) -> str:
    """The definition: windows from the first to the last character, or all of a text that is no longer.

    Runs of white space become one space, as they say nothing about the language; capital headlines are
    lower-cased, as models are trained on sentences and take them for other languages.

    Args:
        text: a text.
        window: characters of each window.

    """
    if len(text) > WINDOWS * window:
        step = (len(text) - window) // (WINDOWS - 1)
        text = " ".join(text[i * step : i * step + window] for i in range(WINDOWS))
    line = " ".join(text.split())
    return line.lower() if line.isupper() else line


@lru_cache(maxsize=1)
def _traits() -> U8:
    """What matters of each code point: uint8, shape ``(0x20000,)``."""
    table = np.zeros(_LAST_CASED, np.uint8)
    for code in range(_LAST_CASED):
        char = chr(code)
        if char.isspace():
            table[code] = _SPACE
        elif char.isupper():
            table[code] = _UPPER
        elif char.islower() or char.istitle():
            table[code] = _LOWER
        if code >= 0x80 and char.lower() != char:
            table[code] |= _CHANGES
    table.flags.writeable = False
    return table


@njit(cache=True, inline="always")
def _characters(data, start, stop):  # type: ignore[no-untyped-def]
    total = 0
    for j in range(start, stop):
        total += (data[ix(j)] & 0xC0) != 0x80
    return total


@njit(cache=True)
def _skip(data, p, count):  # type: ignore[no-untyped-def]
    """Byte at which the character stands that is ``count`` after the one at byte ``p``."""
    while count >= _BLOCK:
        # A block of bytes holds at most as many characters.
        count -= _characters(data, p, p + _BLOCK)
        p += _BLOCK
    while data[ix(p)] & 0xC0 == 0x80:
        p += 1
    while count > 0:
        p += 1
        while data[ix(p)] & 0xC0 == 0x80:
            p += 1
        count -= 1
    return p


@njit(cache=True)
def _copy(data, p, stop, most, traits, out, w, seen):  # type: ignore[no-untyped-def]
    """Append at most ``most`` characters; return where the next would go, and the traits seen so far.

    White space is written as a space where none stands yet, the one that begins the line included.
    """
    while p < stop and most > 0:
        most -= 1
        byte = data[ix(p)]
        if byte < 0x80:
            trait = traits[byte]
            # Written in any case, and gone over where it is one space too many.
            is_space = trait & _SPACE
            out[ix(w)] = np.uint8(32) if is_space else byte
            w += np.int64(not (is_space and out[ix(w - 1)] == 32))
            seen |= trait
            p += 1
            continue
        code, size = decode(data, p)
        trait = traits[ix(code)] if code < traits.size else np.uint8(0)
        if trait & _SPACE:
            out[ix(w)] = 32
            w += np.int64(out[ix(w - 1)] != 32)
        else:
            for k in range(size):
                out[ix(w + k)] = data[ix(p + k)]
            w += size
        seen |= trait
        p += size
    return w, seen


@njit(cache=True, nogil=True)
def _sample(data, offsets, window, traits, out, lines, capital):  # type: ignore[no-untyped-def]
    w = 0
    for i in range(capital.size):
        first, stop = offsets[i], offsets[i + 1]
        start = w
        out[ix(w)] = 32
        w += 1
        seen = np.uint8(0)
        characters = stop - first
        if characters > WINDOWS * window:
            characters = _characters(data, first, stop)
        if characters <= WINDOWS * window:
            w, seen = _copy(data, first, stop, characters, traits, out, w, seen)
        else:
            step = (characters - window) // (WINDOWS - 1)
            p = first
            for k in range(WINDOWS):
                if k > 0:
                    p = p + step if characters == stop - first else _skip(data, p, step)
                    out[ix(w)] = 32
                    w += 1 if out[ix(w - 1)] != 32 else 0
                w, seen = _copy(data, p, stop, window, traits, out, w, seen)
        if out[ix(w - 1)] != 32 or w == start + 1:
            out[ix(w)] = 32
            w += 1
        if seen & _UPPER and not seen & _LOWER:
            if seen & _CHANGES:
                capital[i] = True
            else:
                for j in range(start, w):
                    if 65 <= out[ix(j)] <= 90:
                        out[ix(j)] += 32
        lines[i + 1] = w


def sample_lines(data: U8, offsets: I64, window: int) -> tuple[Lines, npt.NDArray[np.bool_]]:
    """Samples of some texts, as lines.

    Args:
        data: UTF-8 bytes.
        offsets: int64, shape (n + 1,).
        window: characters of each of the four windows.

    Returns:
        n lines, and which of them, shape (n,), are in capital letters of which some are not ASCII: those
        are not in lower case yet (:func:`lower_lines`).

    """
    n = offsets.size - 1
    sizes = np.minimum(np.diff(offsets), 4 * WINDOWS * window)
    out = np.zeros(int(sizes.sum()) + (WINDOWS + 1) * n + PAD, np.uint8)
    lines = np.zeros(n + 1, np.int64)
    capital = np.zeros(n, np.bool_)
    _sample(frozen(data), frozen(offsets), window, _traits(), out, lines, capital)
    return Lines(out, lines), capital


def lower_lines(lines: Lines, rows: I64) -> Lines:
    """Some lines in lower case, by Python."""
    bounds = zip(lines.offsets[rows], lines.offsets[rows + 1], strict=True)
    return enclose([lines.data[a + 1 : b - 1].tobytes().decode().lower() for a, b in bounds])


def warm() -> None:
    """Compile the kernels of this module."""
    data, offsets = np.frombuffer("É b".encode(), np.uint8), np.array([0, 4], np.int64)
    sample_lines(data, offsets, 1)
