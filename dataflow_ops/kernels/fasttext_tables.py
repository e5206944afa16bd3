"""A fastText classifier laid out for its kernel (:mod:`dataflow_ops.kernels.fasttext`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from dataflow_ops.kernels.arrow import I64, U8, U32, U64, ix

F32 = npt.NDArray[np.float32]
I32 = npt.NDArray[np.int32]

BUCKETS = 2_000_000
"""N-grams are hashed into this many."""
END = b"</s>"
"""The word that ends every line."""
BASIS = np.uint32(2166136261)
"""FNV-1a of nothing, 32 bits."""
_PRIME = np.uint32(16777619)


class Tables(NamedTuple):
    """A classifier as the kernel reads it.

    Attributes:
        rows: float32, shape (words + n-grams, dim).
        slots: int32, a power of two: open addressing by a word's hash; the word's number, -1 where free.
        hashes: uint32: hash of each word, labels among them.
        starts: int64, shape (words and labels + 1,): where each word stands in ``letters``.
        letters: uint8.
        bits: uint64: a bit for every bucket, set where its n-grams have a vector.
        places: int32, shape (buckets + words,): row of each bucket's vector, then of each word's.
        tree: int32, shape (2 · labels - 1, 2): children; leaves first.
        output: float32, shape (labels, dim).
        words: words that are no labels.
        end: number of the word that ends every line.

    """

    rows: F32
    slots: I32
    hashes: U32
    starts: I64
    letters: U8
    bits: U64
    places: I32
    tree: I32
    output: F32
    words: int
    end: int


def tables(
    words: Sequence[bytes],
    rows: F32,
    ngrams: I32,
    tree: I32,
    output: F32,
) -> Tables:
    """Lay a classifier out for the kernel.

    Args:
        words: vocabulary, with :data:`END`, then the labels.
        rows: float32, shape (words without labels + n-grams, dim).
        ngrams: int32, shape (g, 2): bucket of an n-gram, and its place among the n-grams' rows.
        tree: int32, shape (2 · labels - 1, 2).
        output: float32, shape (labels, dim).

    """
    letters = np.frombuffer(b"".join(words), np.uint8)
    starts = np.zeros(len(words) + 1, np.int64)
    np.cumsum([len(w) for w in words], out=starts[1:])
    slots = np.full(1 << max(4, (2 * len(words)).bit_length()), -1, np.int32)
    hashes = np.zeros(len(words), np.uint32)
    _enter(letters, starts, slots, hashes)
    n_words = len(words) - (len(tree) + 1) // 2
    bits = np.zeros((BUCKETS >> 6) + 1, np.uint64)
    bucket = ngrams[:, 0].astype(np.uint64)
    np.bitwise_or.at(bits, bucket >> np.uint64(6), np.uint64(1) << (bucket & np.uint64(63)))
    places = np.zeros(BUCKETS + n_words, np.int32)
    places[ngrams[:, 0]] = n_words + ngrams[:, 1]
    places[BUCKETS:] = np.arange(n_words)
    return Tables(
        np.ascontiguousarray(rows), slots, hashes, starts, letters.copy(), bits, places,
        np.ascontiguousarray(tree), np.array(output), n_words, list(words).index(END),
    )  # fmt: skip


@njit(cache=True, inline="always")
def step(h, byte):  # type: ignore[no-untyped-def]
    """One step of FNV-1a; fastText takes bytes as signed numbers, so high ones set the upper bits too."""
    return np.uint32((h ^ np.uint32(np.int32(np.int8(byte)))) * _PRIME)


@njit(cache=True)
def _enter(letters, starts, slots, hashes):  # type: ignore[no-untyped-def]
    for w in range(hashes.size):
        h = BASIS
        for j in range(starts[ix(w)], starts[ix(w + 1)]):
            h = step(h, letters[ix(j)])
        hashes[ix(w)] = h
        slot = np.int64(h) & (slots.size - 1)
        while slots[ix(slot)] >= 0:
            slot = (slot + 1) & (slots.size - 1)
        slots[ix(slot)] = w


@njit(cache=True)
def find_word(data, start, stop, h, t):  # type: ignore[no-untyped-def]
    """Number of a word in the vocabulary, or -1."""
    slot = np.int64(h) & (t.slots.size - 1)
    while True:
        w = np.int64(t.slots[ix(slot)])
        if w < 0:
            return w
        if t.hashes[ix(w)] == h and t.starts[ix(w + 1)] - t.starts[ix(w)] == stop - start:
            same = True
            for j in range(stop - start):
                same &= data[ix(start + j)] == t.letters[ix(t.starts[ix(w)] + j)]
            if same:
                return w
        slot = (slot + 1) & (t.slots.size - 1)
