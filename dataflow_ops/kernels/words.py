"""Units of a text: words, and single Han and kana characters; no punctuation, no white space.

A unit is reduced to a 64-bit hash of its folded characters, its length in characters and the number of the
segment (sentence or line) it stands in. Scratch arrays are handed in, so that a batch allocates once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from numba import njit

from dataflow_ops.kernels.arrow import U8, U32, U64, ix
from dataflow_ops.kernels.counts import decode, frozen
from dataflow_ops.kernels.unicode_classes import (
    DIGIT,
    HAN,
    KANA,
    MARK,
    NEWLINE,
    NUMBER,
    SENTENCE_END,
    SPACE,
    class_table,
    fold_table,
)

VERSION = 1
I32 = npt.NDArray[np.int32]


@njit(cache=True, inline="always")
def mix(h):  # type: ignore[no-untyped-def]
    """Spread the bits of a 64-bit hash (the finaliser of SplitMix64)."""
    h = (h ^ (h >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    h = (h ^ (h >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return h ^ (h >> np.uint64(31))


@njit(cache=True)
def tokenise(data, start, stop, classes, fold, hashes, lengths, segments):  # type: ignore[no-untyped-def]
    """Cut ``data[start:stop]`` into units.

    A sentence ends at a line break, at an ideographic or Arabic full stop, and at ``.!?`` before white space,
    so that 3.14 and example.org stay whole.

    Args:
        data: UTF-8 bytes.
        start: first byte.
        stop: byte after the last.
        classes: uint8 table of :func:`unicode_classes.class_table`.
        fold: uint32 table of :func:`unicode_classes.fold_table`.
        hashes: uint64, filled; at least ``(stop - start) // 2 + 1`` long, as the others.
        lengths: int32, filled: characters of each unit.
        segments: int32, filled: ordinal of the segment of each unit, from 0, without gaps.

    Returns:
        Number of units, number of segments that hold at least one, number of units with a letter.

    """
    n, segment, in_segment = 0, 0, False
    lettered, has_letter = 0, False
    i = start
    h = np.uint64(0)
    length = 0
    while i < stop:
        cp, size = decode(data, i)
        c = classes[ix(cp)]
        folded = np.uint64(fold[ix(cp)]) if cp < 0x10000 else np.uint64(cp)
        if (c > MARK and c != HAN and c != KANA) or c == DIGIT or c == NUMBER or c == MARK:
            h = (h ^ folded) * np.uint64(0x100000001B3) + np.uint64(0x9E3779B97F4A7C15)
            length += 1
            has_letter |= c > MARK
            i += size
            continue
        if length > 0:
            hashes[ix(n)], lengths[ix(n)], segments[ix(n)] = mix(h), length, segment
            n += 1
            lettered += has_letter
            h, length, in_segment, has_letter = np.uint64(0), 0, True, False
        i += size
        if c == HAN or c == KANA:
            h1 = folded * np.uint64(0x100000001B3) + np.uint64(0x9E3779B97F4A7C15)
            hashes[ix(n)], lengths[ix(n)], segments[ix(n)] = mix(h1), 1, segment
            n += 1
            lettered += 1
            in_segment = True
        elif in_segment and (c == NEWLINE or c == SENTENCE_END):
            ends = c == NEWLINE or cp > 0x7F or i >= stop
            if not ends:
                after = classes[ix(decode(data, i)[0])]
                ends = after == SPACE or after == NEWLINE
            if ends:
                segment += 1
                in_segment = False
    if length > 0:
        hashes[ix(n)], lengths[ix(n)], segments[ix(n)] = mix(h), length, segment
        n += 1
        lettered += has_letter
        in_segment = True
    return n, segment + (1 if in_segment else 0), lettered


@dataclass(frozen=True, slots=True)
class Scratch:
    """Working arrays for documents of up to a number of bytes."""

    hashes: U64
    lengths: I32
    segments: I32
    keys: U64
    values: I32
    order: I32
    slots: I32
    at: I32


def scratch(longest: int) -> Scratch:
    """Working arrays that suffice for every document of at most ``longest`` bytes."""
    units = longest // 2 + 2
    slots = table_size(units)
    return Scratch(
        np.empty(units, np.uint64),
        np.empty(units, np.int32),
        np.empty(units, np.int32),
        np.empty(slots, np.uint64),
        np.empty(slots, np.int32),
        np.empty(units, np.int32),
        np.empty(units, np.int32),
        np.empty(units, np.int32),
    )


@njit(cache=True)
def table_size(entries):  # type: ignore[no-untyped-def]
    """Slots of an open-addressing table for that many entries: a power of two, at most half full."""
    size = 64
    while size < 2 * entries:
        size *= 2
    return size


def units_of(text: str, classes: U8 | None = None, fold: U32 | None = None) -> tuple[U64, I32, I32]:
    """Hashes, lengths and segments of one text, for word lists and tests."""
    body = frozen(np.frombuffer(text.encode(), np.uint8))
    room = scratch(body.size)
    n, _, _ = tokenise(
        body,
        0,
        body.size,
        class_table() if classes is None else classes,
        fold_table() if fold is None else fold,
        room.hashes,
        room.lengths,
        room.segments,
    )
    return room.hashes[:n].copy(), room.lengths[:n].copy(), room.segments[:n].copy()
