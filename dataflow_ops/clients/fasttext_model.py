"""Reads a compressed fastText classifier (``.ftz``) into arrays; no C++ and nothing beside the file.

The format is little-endian without padding: arguments, dictionary with the n-grams that survived pruning,
product-quantised input matrix, output matrix. Sources: Joulin et al. 2016, "FastText.zip: Compressing text
classification models" (arXiv 1612.03651), and the reference implementation's version 12 of the file.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dataflow_ops.errors import UnreadableFile

F32 = npt.NDArray[np.float32]
I32 = npt.NDArray[np.int32]

_MAGIC, _VERSION = 793712314, 12
_ARGUMENTS = (
    "dim", "ws", "epoch", "min_count", "neg", "word_ngrams",
    "loss", "model", "bucket", "minn", "maxn", "lr_update_rate",
)  # fmt: skip
_UNDERSTOOD = {"loss": 1, "model": 3, "word_ngrams": 1, "bucket": 2_000_000, "minn": 2, "maxn": 4}
"""Hierarchical softmax, supervised, single words, n-grams of 2 to 4 characters in two million buckets."""
_CENTROIDS = 256
_END = b"</s>"  # the word that ends every line


@dataclass(frozen=True, slots=True)
class FastTextModel:
    """A supervised model with hierarchical softmax, as the file has it.

    Attributes:
        labels: names of the classes, with their ``__label__``.
        words: the words of the vocabulary, then the labels, as UTF-8.
        rows: float32, shape (m, dim): vectors of the words, then of the n-grams that were kept.
        ngrams: int32, shape (g, 2): bucket of an n-gram, and its place among the vectors of n-grams.
        tree: int32, shape (2 · labels - 1, 2): left and right child of each node, -1 for leaves, which come
            first and in order of label; the root is last.
        output: float32, shape (labels, dim): vector of each inner node, in order.

    """

    labels: tuple[str, ...]
    words: tuple[bytes, ...]
    rows: F32
    ngrams: I32
    tree: I32
    output: F32


class _Reader:
    """Takes values off the front of the file."""

    def __init__(self, raw: bytes) -> None:
        self._raw = raw
        self.at = 0

    def numbers(self, form: str) -> tuple[Any, ...]:
        try:
            found = struct.unpack_from("<" + form, self._raw, self.at)
        except struct.error as e:
            raise UnreadableFile(
                "the language model ends too early: install its package again", self.at
            ) from e
        self.at += struct.calcsize("<" + form)
        return found

    def array(self, dtype: str, count: int) -> npt.NDArray[Any]:
        size = np.dtype(dtype).itemsize * count
        if count < 0 or self.at + size > len(self._raw):
            raise UnreadableFile("the language model ends too early: install its package again", self.at)
        found = np.frombuffer(self._raw, dtype, count, self.at)
        self.at += size
        return found

    def word(self) -> bytes:
        end = self._raw.find(b"\0", self.at)
        if end < 0:
            raise UnreadableFile("the language model ends too early: install its package again", self.at)
        found = self._raw[self.at : end]
        self.at = end + 1
        return found


def read_model(raw: bytes) -> FastTextModel:
    """Read a model.

    Args:
        raw: the file.

    Raises:
        UnreadableFile: it is damaged, or a fastText model of another kind.

    """
    reader = _Reader(raw)
    if reader.numbers("ii") != (_MAGIC, _VERSION):
        raise UnreadableFile("this is no fastText model of version 12", 0)
    arguments = dict(zip(_ARGUMENTS, reader.numbers("12i"), strict=True))
    reader.numbers("d")
    found = {name: arguments[name] for name in _UNDERSTOOD}
    if found != _UNDERSTOOD:
        raise UnreadableFile(f"this fastText model has {found}; only {_UNDERSTOOD} is understood", 8)
    entries, n_words, n_labels = reader.numbers("iii")
    _, n_ngrams = reader.numbers("qq")
    if n_ngrams < 0:
        raise UnreadableFile("only fastText models whose n-grams were pruned are read", reader.at)
    words, counts = [], []
    for i in range(entries):
        words.append(reader.word())
        count, is_label = reader.numbers("qb")
        counts.append(count)
        if is_label != (i >= n_words):
            raise UnreadableFile("labels stand among the words of this fastText model", reader.at)
    ngrams = reader.array("<i4", 2 * n_ngrams).reshape(-1, 2)
    (is_quantised,) = reader.numbers("?")
    if not is_quantised:
        raise UnreadableFile("only compressed fastText models (.ftz) are read", reader.at)
    rows = _quantised(reader)
    if reader.numbers("?")[0]:
        raise UnreadableFile("only fastText models with a plain output matrix are read", reader.at)
    m, n = reader.numbers("qq")
    output = reader.array("<f4", m * n).reshape(m, n)
    fits = rows.shape == (n_words + n_ngrams, n) and m == n_labels and entries == n_words + n_labels
    if reader.at != len(raw) or not fits or _END not in words[:n_words]:
        raise UnreadableFile("the parts of this fastText model don't fit each other", reader.at)
    return FastTextModel(
        labels=tuple(word.decode() for word in words[n_words:]),
        words=tuple(words),
        rows=rows,
        ngrams=ngrams,
        tree=_huffman(counts[n_words:]),
        output=output,
    )


def _quantised(reader: _Reader) -> F32:
    """The input matrix: each row is a norm times the nearest centroids of its pieces.

    The products are rounded to float32 here as fastText rounds them while it adds them up, so that sums over
    these rows have the very bits of its sums.
    """
    (has_norms,) = reader.numbers("?")
    m, n = reader.numbers("qq")
    (size,) = reader.numbers("i")
    codes = reader.array("u1", size)
    rows = _decode(codes, m, n, reader)
    if has_norms:
        norms = _decode(reader.array("u1", m), m, 1, reader)
        rows = rows * norms
    return rows


def _decode(codes: npt.NDArray[np.uint8], m: int, n: int, reader: _Reader) -> F32:
    """Rows of m × n values from the codes and the centroids that come next in the file."""
    dim, pieces, width, last = reader.numbers("iiii")
    centroids = reader.array("<f4", dim * _CENTROIDS)
    if dim != n or len(codes) != m * pieces or width * (pieces - 1) + last != dim:
        raise UnreadableFile("the parts of this fastText model don't fit each other", reader.at)
    codes = codes.reshape(m, pieces)
    rows = np.empty((m, n), np.float32)
    for piece in range(pieces):
        start = piece * width
        columns = last if piece == pieces - 1 else width
        book = centroids[start * _CENTROIDS :][: columns * _CENTROIDS].reshape(_CENTROIDS, columns)
        rows[:, start : start + columns] = book[codes[:, piece]]
    return rows


def _huffman(counts: list[int]) -> I32:
    """Huffman tree over labels that are sorted by falling count, built as fastText builds it.

    Two queues give the two smallest nodes: the labels from the rarest on, and the inner nodes in the order
    they were made. At equal counts the inner node comes first.
    """
    leaves = len(counts)
    weight = [*counts, *[10**15] * (leaves - 1)]
    children = np.full((2 * leaves - 1, 2), -1, np.int32)
    leaf, inner = leaves - 1, leaves
    for node in range(leaves, 2 * leaves - 1):
        for side in range(2):
            if leaf >= 0 and weight[leaf] < weight[inner]:
                children[node, side], leaf = leaf, leaf - 1
            else:
                children[node, side], inner = inner, inner + 1
        weight[node] = weight[children[node, 0]] + weight[children[node, 1]]
    return children
