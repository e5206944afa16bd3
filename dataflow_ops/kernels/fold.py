"""Key text: what dedup compares instead of the stored text (NFKC, case folded, white space removed).

The definition is :func:`fold_text`, on ``unicodedata``. :func:`fold` gives the same bytes several times
faster: a table maps each code point to its folded UTF-8 bytes, and only texts that hold a code point which
may interact with the one before it (combining marks, conjoining jamo) go through ``unicodedata``.

Why a table per code point is enough for the rest: NFKC of a string is the concatenation of the NFKC of its
code points as long as the full decomposition of each begins with a starter that is never the second half
of a canonical composition (Unicode Standard, section 3.11: reordering and composition then stay inside
one code point's decomposition). :func:`_is_safe` states exactly that.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numba
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dataflow_ops.kernels.arrow import I64, U8, eights, ix, string_buffers

VERSION = 1
I32 = npt.NDArray[np.int32]

_SAME = -1  # the code point folds to itself
_INTERACTS = -2  # the text must go through unicodedata
_FALLBACK_BYTES = 1 << 20  # handed to unicodedata at once

# Blocks whose code points fold to themselves in every version of Unicode (stability policy), left out of the
# loop that builds the table: CJK ideographs, Hangul syllables, surrogates and private use, planes 4-13.
_STABLE = (
    (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF),
    (0xAC00, 0xD7A3),
    (0xD800, 0xF8FF),
    (0x20000, 0x2A6DF),
    (0x40000, 0xDFFFF),
    (0xF0000, 0x10FFFF),
)


@dataclass(frozen=True, slots=True)
class FoldTable:
    """Folding of single code points.

    Attributes:
        index: int32, shape ``(0x110000,)``: ``-1`` folds to itself, ``-2`` interacts with its neighbour,
            else position in ``pool``.
        pool: uint8; at each position the number of bytes, then the folded UTF-8 bytes. White space is
            there with zero bytes, or one space where words are kept.
        ascii: uint8, shape ``(2, 128)``: the folded byte of each ASCII character, and 1 if it stays, else 0.
        nfkc: compatibility composition is applied.
        lower_case: case is folded.
        keep_words: each white-space character becomes one space instead of nothing.
    """

    index: I32
    pool: U8
    ascii: U8
    nfkc: bool
    lower_case: bool
    keep_words: bool


@dataclass(frozen=True, slots=True)
class Folded:
    """Key texts of a batch as one buffer.

    Attributes:
        data: uint8, UTF-8 bytes of all key texts.
        offsets: int64, shape ``(n + 1,)``; text i is ``data[offsets[i]:offsets[i + 1]]``.
    """

    data: U8
    offsets: I64

    def array(self) -> Any:
        """The texts as a ``pa.LargeStringArray`` over the same memory."""
        buffers = [None, pa.py_buffer(self.offsets), pa.py_buffer(self.data)]
        return pa.LargeStringArray.from_buffers(len(self.offsets) - 1, buffers[1], buffers[2])


def fold_text(text: str, nfkc: bool = True, lower_case: bool = True, keep_words: bool = False) -> str:
    """The definition: NFKC, case fold, NFKC again (case folding can undo it), white space removed.

    White space is what ``str.isspace`` says. With ``keep_words`` each such character becomes one space.
    """
    if nfkc:
        text = unicodedata.normalize("NFKC", text)
    if lower_case:
        text = text.casefold()
        if nfkc:
            text = unicodedata.normalize("NFKC", text)
    if keep_words:
        return "".join(" " if c.isspace() else c for c in text)
    return "".join(text.split())


def _pieces(body: bytes) -> Iterator[str]:
    """Cut a long text where folding one part can't touch the next: before ASCII or U+5000 … U+8FFF."""
    start = 0
    while len(body) - start > _FALLBACK_BYTES:
        cut = start + _FALLBACK_BYTES
        while cut < len(body) and not (body[cut] < 0x80 or 0xE5 <= body[cut] <= 0xE8):
            cut += 1
        yield body[start:cut].decode()
        start = cut
    yield body[start:].decode()


def _composition_seconds(decompositions: Iterable[str]) -> frozenset[str]:
    """Code points that can join the starter before them: second halves of canonical pairs, jamo V and T."""
    seconds = {chr(c) for c in (*range(0x1161, 0x1176), *range(0x11A8, 0x11C3))}
    for decomposition in filter(None, decompositions):
        parts = decomposition.split()
        if len(parts) == 2 and not parts[0].startswith("<"):
            seconds.add(chr(int(parts[1], 16)))
    return frozenset(seconds)


def _code_points() -> Iterator[int]:
    start = 0
    for first, last in _STABLE:
        yield from range(start, first)
        start = last + 1
    yield from range(start, 0x110000)


def _is_safe(text: str, seconds: frozenset[str]) -> bool:
    first = unicodedata.normalize("NFKD", text)[0]
    return unicodedata.combining(first) == 0 and first not in seconds


@lru_cache(maxsize=8)
def fold_table(nfkc: bool = True, lower_case: bool = True, keep_words: bool = False) -> FoldTable:
    """Build the table (about 0.06 s; once per process and combination of settings)."""
    index = np.full(0x110000, _SAME, np.int32)
    pool = bytearray()
    chars = list(map(chr, _code_points()))
    decompositions = list(map(unicodedata.decomposition, chars))
    seconds = _composition_seconds(decompositions) if nfkc else frozenset()
    facts = zip(decompositions, map(unicodedata.combining, chars), map(str.casefold, chars), strict=True)
    for char, (decomposition, combining, cased) in zip(chars, facts, strict=True):
        plain = cased == char and not (decomposition or combining or char in seconds or char.isspace())
        if plain:
            continue  # nine in ten: folds to itself, whatever the settings and its neighbours
        c = ord(char)
        if nfkc:
            cased = unicodedata.normalize("NFKC", char)
            cased = cased.casefold() if lower_case else cased
            if not (_is_safe(char, seconds) and _is_safe(cased, seconds)):
                index[c] = _INTERACTS
                continue
        folded = fold_text(char, nfkc, lower_case, keep_words)
        if folded != char:
            body = folded.encode()
            index[c] = len(pool)
            pool.append(len(body))
            pool += body
    ascii_table = np.zeros((2, 128), np.uint8)
    for c in range(128):
        folded = fold_text(chr(c), nfkc, lower_case, keep_words)
        ascii_table[:, c] = (ord(folded), 1) if folded else (0, 0)
    return FoldTable(index, np.frombuffer(bytes(pool), np.uint8), ascii_table, nfkc, lower_case, keep_words)


def fold(texts: Any, table: FoldTable) -> Folded:
    """Key texts of a string column.

    Args:
        texts: pyarrow (large_)string Array or ChunkedArray of n rows, nulls read as empty.
        table: from :func:`fold_table`.

    Returns:
        The folded texts; equal to :func:`fold_text` of every row, byte for byte.
    """
    data, offsets = string_buffers(texts)
    n = len(offsets) - 1
    out_offsets = np.zeros(n + 1, np.int64)
    interacts = np.zeros(n, np.bool_)
    out = np.empty(int(offsets[-1] - offsets[0]) + 64, np.uint8)
    wide = eights(data)
    done = 0
    while True:
        done = _fold_rows(
            data, wide, offsets, table.index, table.pool, table.ascii, out, out_offsets, interacts, done
        )
        if done == n:
            break
        out = np.concatenate([out, np.empty(len(out) + 4096, np.uint8)])
    if not interacts.any():
        return Folded(out[: out_offsets[-1]], out_offsets)
    return _with_fallback(data, offsets, table, out, out_offsets, interacts)


def _with_fallback(
    data: U8, offsets: I64, table: FoldTable, out: U8, out_offsets: I64, interacts: npt.NDArray[np.bool_]
) -> Folded:
    extra = bytearray()
    lengths = np.diff(out_offsets)
    for i in np.flatnonzero(interacts):
        before = len(extra)
        for piece in _pieces(data[offsets[i] : offsets[i + 1]].tobytes()):
            extra += fold_text(piece, table.nfkc, table.lower_case, table.keep_words).encode()
        lengths[i] = len(extra) - before
    final = np.zeros(len(offsets), np.int64)
    np.cumsum(lengths, out=final[1:])
    joined = np.empty(int(final[-1]), np.uint8)
    _splice(out, out_offsets, np.frombuffer(bytes(extra), np.uint8), interacts, joined, final)
    return Folded(joined, final)


@numba.njit(cache=True)
def _fold_rows(data, wide, offsets, index, pool, ascii_table, out, out_offsets, interacts, start):  # type: ignore[no-untyped-def]
    """Fold rows from ``start`` on; return how many rows are done (fewer than n: ``out`` is too small)."""
    n = len(offsets) - 1
    end_of_input = offsets[n]
    capacity = len(out)
    for i in range(start, n):
        w = out_offsets[i]
        p = offsets[i]
        end = offsets[i + 1]
        if w + (end_of_input - p) > capacity:
            return i
        while p < end:
            if p + 8 <= end and wide[ix(p)] & np.uint64(0x8080808080808080) == 0:
                for k in range(8):
                    lead = data[ix(p + k)]
                    out[ix(w)] = ascii_table[0, lead]
                    w += np.int64(ascii_table[1, lead])
                p += 8
                continue
            lead = data[ix(p)]
            if lead < 0x80:
                out[ix(w)] = ascii_table[0, lead]
                w += np.int64(ascii_table[1, lead])
                p += 1
                continue
            if lead < 0xE0:
                c = ((lead & 0x1F) << 6) | (data[ix(p + 1)] & 0x3F)
                size = 2
            elif lead < 0xF0:
                c = ((lead & 0x0F) << 12) | ((data[ix(p + 1)] & 0x3F) << 6) | (data[ix(p + 2)] & 0x3F)
                size = 3
            else:
                c = ((lead & 0x07) << 18) | ((data[ix(p + 1)] & 0x3F) << 12)
                c |= ((data[ix(p + 2)] & 0x3F) << 6) | (data[ix(p + 3)] & 0x3F)
                size = 4
            entry = index[ix(c)]
            if entry == -1:
                for k in range(size):
                    out[ix(w + k)] = data[ix(p + k)]
                w += size
                p += size
            elif entry >= 0:
                p += size
                length = np.int64(pool[entry])
                # Everything else copies at most as many bytes as it reads, so only growth needs a look.
                if length > size and w + length + (end_of_input - p) > capacity:
                    return i
                for k in range(length):
                    out[ix(w + k)] = pool[ix(entry + 1 + k)]
                w += length
            else:
                interacts[i] = True
                w = out_offsets[i]
                break
        out_offsets[i + 1] = w
    return n


@numba.njit(cache=True)
def _splice(out, out_offsets, extra, interacts, joined, final):  # type: ignore[no-untyped-def]
    at = 0
    for i in range(len(interacts)):
        length = final[i + 1] - final[i]
        if interacts[i]:
            joined[final[i] : final[i + 1]] = extra[at : at + length]
            at += length
        else:
            joined[final[i] : final[i + 1]] = out[out_offsets[i] : out_offsets[i + 1]]


@numba.njit(cache=True)
def count_characters(data, offsets):  # type: ignore[no-untyped-def]
    """Characters of each text, and how many of them are dense: Han, kana or Hangul syllables.

    One dense character carries about as much as two or three letters, so shingles of such texts are
    shorter (:mod:`dataflow_ops.kernels.minhash`).

    Args:
        data: uint8 UTF-8 bytes.
        offsets: int64, shape ``(n + 1,)``.

    Returns:
        ``(characters, dense)``: int64, shape ``(n,)`` each.
    """
    n = len(offsets) - 1
    characters = np.zeros(n, np.int64)
    dense = np.zeros(n, np.int64)
    for i in range(n):
        total = 0
        wide = 0
        for p in range(offsets[i], offsets[i + 1]):
            lead = data[ix(p)]
            total += (lead & 0xC0) != 0x80
            if lead >= 0xE3:
                if lead == 0xE3:  # U+3000..U+3FFF: kana from U+3040, Han from U+3400
                    second = data[ix(p + 1)]
                    wide += (second >= 0x81 and second <= 0x83) or second >= 0x90
                elif lead <= 0xED:  # U+4000..U+DFFF: Han, and Hangul from U+AC00
                    second = data[ix(p + 1)]
                    wide += lead != 0xED or second < 0x9F
                elif lead == 0xF0:  # U+20000..U+3FFFF: further Han
                    wide += data[ix(p + 1)] >= 0xA0
        characters[i] = total
        dense[i] = wide
    return characters, dense


def warm() -> None:
    """Compile the kernels of this module."""
    folded = fold(pa.array(["Ａ b", "e\u0301", "ﷺ"], pa.large_string()), fold_table())
    count_characters(folded.data, folded.offsets)
