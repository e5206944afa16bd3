"""The likeliest label of lines of text by a fastText classifier, bit for bit as the reference computes it.

A line is the mean of the vectors of its words and of their character n-grams (Joulin et al. 2016, "Bag of
tricks for efficient text classification", arXiv 1607.01759); a Huffman tree of logistic regressions above it
gives the label. Sums run in the reference's order and in float32, so probabilities agree to the last bit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numba import njit

from dataflow_ops.kernels.arrow import I64, U8, ix
from dataflow_ops.kernels.fasttext_tables import (
    BASIS,
    BUCKETS,
    END,
    F32,
    I32,
    Tables,
    find_word,
    step,
    tables,
)

SHORTEST, LONGEST = 2, 4  # characters of an n-gram
PAD = 8
"""Bytes behind the last line, which may be read."""
_LABEL = np.frombuffer(b"__label__", np.uint8)  # what begins so is no word
_OPEN, _CLOSE = np.uint8(ord("<")), np.uint8(ord(">"))  # around a word while it is cut into n-grams
_SURE = np.float32(np.log(0.51))
"""Log-probability above which no other label can be as likely: fastText adds 1e-5 at each node, and a label
is some ten nodes deep."""


@dataclass(frozen=True, slots=True)
class Lines:
    """Lines to classify, as one buffer that is written to.

    Attributes:
        data: uint8, UTF-8. A line begins and ends with a space, which belongs to it; spaces and NULs separate
            words, and no other white space stands in it. Eight bytes follow the last line.
        offsets: int64, shape (n + 1,).

    """

    data: U8
    offsets: I64


@njit(cache=True)
def _is_label(data, start, stop):  # type: ignore[no-untyped-def]
    if stop - start < _LABEL.size:
        return False
    for j in range(_LABEL.size):
        if data[ix(start + j)] != _LABEL[ix(j)]:
            return False
    return True


@njit(cache=True, inline="always")
def _push(found, k, h, t, counts):  # type: ignore[no-untyped-def]
    """Note an n-gram's bucket, and return how many stay noted: only those that have a vector."""
    bucket = np.int64(np.uint32(h) % np.uint32(BUCKETS))
    found[ix(k)] = bucket
    return k + (np.int64(t.bits[ix(bucket >> 6)] >> np.uint64(bucket & 63)) & counts)


@njit(cache=True, inline="always")
def _ascii_ngrams(data, first, last, t, found, k):  # type: ignore[no-untyped-def]
    """N-grams of a marked word without a byte above 127; ``last`` is its closing mark."""
    for i in range(first, last):
        two = step(step(BASIS, data[ix(i)]), data[ix(i + 1)])
        three = step(two, data[ix(i + 2)])
        four = step(three, data[ix(i + 3)])
        k = _push(found, k, two, t, 1)
        k = _push(found, k, three, t, np.int64(i + 2 <= last))
        k = _push(found, k, four, t, np.int64(i + 3 <= last))
    return k


@njit(cache=True, inline="always")
def _ngrams(data, first, last, t, found, k):  # type: ignore[no-untyped-def]
    """N-grams of a marked word; ``last`` is its closing mark."""
    for i in range(first, last):
        if data[ix(i)] & 0xC0 == 0x80:
            continue
        h = BASIS
        j = i
        for n in range(1, LONGEST + 1):
            h = step(h, data[ix(j)])
            j += 1
            while data[ix(j)] & 0xC0 == 0x80:
                h = step(h, data[ix(j)])
                j += 1
            if n >= SHORTEST:
                k = _push(found, k, h, t, 1)
            if j > last:
                break
    return k


@njit(cache=True)
def _collect(data, start, stop, t, found):  # type: ignore[no-untyped-def]
    """Vectors that a line is the mean of, as places in ``t.places``, in fastText's order; how many."""
    k = 0
    p = start
    while p < stop:
        if data[ix(p)] == 32 or data[ix(p)] == 0:
            p += 1
            continue
        first = p
        h = BASIS
        high = np.uint8(0)
        while data[ix(p)] != 32 and data[ix(p)] != 0:
            h = step(h, data[ix(p)])
            high |= data[ix(p)]
            p += 1
        word = find_word(data, first, p, h, t)
        if word == t.end:
            break
        if word >= t.words or (word < 0 and _is_label(data, first, p)):
            continue
        if word >= 0:
            found[ix(k)] = BUCKETS + word
            k += 1
        # The separators at both sides make room for the marks; nobody reads them again.
        data[ix(first - 1)], data[ix(p)] = _OPEN, _CLOSE
        if high < 0x80:
            k = _ascii_ngrams(data, first - 1, p, t, found, k)
        else:
            k = _ngrams(data, first - 1, p, t, found, k)
        p += 1
    found[ix(k)] = BUCKETS + t.end
    return k + 1


@njit(cache=True)
def _average(rows, places, found, k, mean):  # type: ignore[no-untyped-def]
    mean[:] = 0
    for j in range(k):
        row = places[ix(found[ix(j)])]
        for d in range(mean.size):
            mean[ix(d)] += rows[ix(row), ix(d)]
    share = np.float32(1.0 / k)
    for d in range(mean.size):
        mean[ix(d)] *= share


@njit(cache=True, inline="always")
def _right(node, mean, t):  # type: ignore[no-untyped-def]
    """Probability of a node's right child, float32."""
    total = np.float32(0)
    weights = t.output[node - t.output.shape[0]]
    for d in range(mean.size):
        total += mean[ix(d)] * weights[ix(d)]
    return np.float32(np.float32(1) / (np.float32(1) + math.exp(-total)))


@njit(cache=True, inline="always")
def _log(share):  # type: ignore[no-untyped-def]
    return np.float32(math.log(np.float64(share) + 1e-5))


@njit(cache=True)
def _greedy(mean, t):  # type: ignore[no-untyped-def]
    """Follow the likelier child from the root down: a label and the logarithm of its probability."""
    node = t.tree.shape[0] - 1
    score = np.float32(0)
    while t.tree[node, 0] >= 0:
        right = _right(node, mean, t)
        if right > np.float32(0.5):
            score += _log(right)
            node = np.int64(t.tree[node, 1])
        else:
            score += _log(np.float32(1.0 - np.float64(right)))
            node = np.int64(t.tree[node, 0])
    return node, score


@njit(cache=True)
def _search(mean, t, nodes, scores):  # type: ignore[no-untyped-def]
    """Walk the tree as fastText does, depth first and left child first.

    It would give no label below 1e-5; the best of some hundred labels is never as unlikely.
    """
    best, best_score = np.int64(-1), np.float32(0)
    nodes[0], scores[0] = t.tree.shape[0] - 1, 0
    depth = 1
    while depth > 0:
        depth -= 1
        node, score = np.int64(nodes[depth]), scores[depth]
        if best >= 0 and score < best_score:
            continue
        if t.tree[node, 0] < 0:
            best, best_score = node, score  # at equal scores the later one stays
            continue
        right = _right(node, mean, t)
        nodes[depth], scores[depth] = t.tree[node, 1], score + _log(right)
        nodes[depth + 1] = t.tree[node, 0]
        scores[depth + 1] = score + _log(np.float32(1.0 - np.float64(right)))
        depth += 2
    return best, best_score


@njit(cache=True, nogil=True)
def _classify(data, offsets, t, found, labels, chances):  # type: ignore[no-untyped-def]
    mean = np.empty(t.rows.shape[1], np.float32)
    nodes, scores = np.empty(t.tree.shape[0], np.int32), np.empty(t.tree.shape[0], np.float32)
    for i in range(labels.size):
        k = _collect(data, offsets[i], offsets[i + 1], t, found)
        _average(t.rows, t.places, found, k, mean)
        label, score = _greedy(mean, t)
        if score < _SURE:
            label, score = _search(mean, t, nodes, scores)
        labels[i] = label
        chances[i] = math.exp(score)


def enclose(texts: Sequence[str]) -> Lines:
    """Lines of texts that hold no white space but single spaces."""
    bodies = [b" " + text.encode() + b" " for text in texts]
    offsets = np.zeros(len(bodies) + 1, np.int64)
    np.cumsum([len(body) for body in bodies], out=offsets[1:])
    return Lines(np.frombuffer(bytearray(b"".join(bodies) + bytes(PAD)), np.uint8), offsets)


def classify(lines: Lines, t: Tables) -> tuple[I32, F32]:
    """The likeliest label of each line.

    Args:
        lines: they are overwritten.
        t: from :func:`tables`.

    Returns:
        Label of each line, int32, and its probability, float32, which may be above 1 by a rounding; both of
        shape (n,). An empty line has the label of the mark that ends lines.

    """
    n = lines.offsets.size - 1
    longest = int(np.diff(lines.offsets).max()) if n else 0
    # Each byte begins at most one n-gram of each length, as does each mark, or is a word.
    found = np.empty((LONGEST - SHORTEST + 2) * (longest + 4), np.int32)
    labels, chances = np.empty(n, np.int32), np.empty(n, np.float32)
    _classify(lines.data, lines.offsets, t, found, labels, chances)
    return labels, chances


def warm() -> None:
    """Compile the kernels of this module."""
    tree = np.array([[-1, -1], [-1, -1], [1, 0]], np.int32)
    made = tables([END, b"__label__a", b"__label__b"], np.zeros((2, 16), np.float32),
                  np.array([[5, 0]], np.int32), tree, np.zeros((2, 16), np.float32))  # fmt: skip
    classify(enclose(["a é"]), made)
