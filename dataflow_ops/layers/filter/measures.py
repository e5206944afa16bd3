"""A view of some documents of a batch, measured group by group, each group once and only when asked for."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dataflow_ops.kernels import codemarks, compress, counts, lines, textstats, unicode_classes
from dataflow_ops.kernels.arrow import F64, I64, U8, U32, U64, string_buffers
from dataflow_ops.kernels.counts import Census
from dataflow_ops.kernels.textstats import Lexicon

_PARAGRAPH = re.compile(rb"\n\s*\n")
_LETTERS = tuple(range(unicode_classes.LATIN, unicode_classes.CLASSES))
_SPACES = (unicode_classes.SPACE, unicode_classes.NEWLINE)
_MEANINGFUL = (unicode_classes.DIGIT, unicode_classes.NUMBER, unicode_classes.MARK, *_LETTERS)


@dataclass(frozen=True, slots=True)
class Context:
    """What measuring needs besides the texts; built once per task.

    Attributes:
        lexicon: function words and phrases.
        targets: words counted by the Gopher stop-word rule.
        tops: sizes of n-grams whose most frequent one is counted.
        repeats: sizes of n-grams whose repeats are counted.
        fold: what characters become in the rules' view.

    """

    lexicon: Lexicon
    targets: U64
    tops: tuple[int, ...]
    repeats: tuple[int, ...]
    fold: U32


class Measures:
    """Some documents of a batch. Immutable; groups of numbers are made when first asked for.

    All arrays have one row per document of the view.
    """

    def __init__(
        self,
        context: Context,
        data: U8,
        offsets: I64,
        rows: I64,
        groups: dict[str, npt.NDArray[Any]],
        columns: pa.Table,
    ) -> None:
        self._context = context
        self._data = data
        self._offsets = offsets
        self._rows = rows
        self._groups = groups
        self._columns = columns

    @classmethod
    def of(cls, batch: pa.Table, context: Context) -> Measures:
        """A view of all rows of a batch with the columns ``text``, ``raw_chars``, ``control_chars``."""
        data, offsets = string_buffers(batch["text"])
        columns = batch.select(["text", "raw_chars", "control_chars"])
        return cls(context, data, offsets, np.arange(batch.num_rows, dtype=np.int64), {}, columns)

    def __len__(self) -> int:
        return int(self._rows.size)

    def take(self, indices: npt.NDArray[np.int64]) -> Measures:
        """A view of some of these documents; what was measured already comes along."""
        groups = {name: values[indices] for name, values in self._groups.items()}
        return Measures(self._context, self._data, self._offsets, self._rows[indices], groups, self._columns)

    def _group(self, name: str, make: Callable[[], npt.NDArray[Any]]) -> npt.NDArray[Any]:
        if name not in self._groups:
            self._groups[name] = make()
        return self._groups[name]

    def _compact(self) -> tuple[U8, I64]:
        """Bytes and offsets of these documents, for kernels that take whole columns."""
        if self._rows.size == self._offsets.size - 1:
            return self._data, self._offsets
        return string_buffers(self.texts())

    @property
    def size(self) -> I64:
        """Bytes of UTF-8, int64."""
        found: I64 = self._offsets[self._rows + 1] - self._offsets[self._rows]
        return found

    def texts(self) -> pa.ChunkedArray:
        """The texts as an Arrow column."""
        return self._columns["text"].take(pa.array(self._rows))

    def column(self, name: str) -> F64:
        """A numeric column of the batch; null becomes NaN."""
        values = self._columns[name].take(pa.array(self._rows)).cast(pa.float64())
        found: F64 = values.to_numpy().astype(np.float64)
        return found

    @property
    def counts(self) -> I64:
        """Characters by class: :class:`counts.Census`."""
        return self._group("counts", lambda: self._census().counts)

    @property
    def chars(self) -> F64:
        """Characters."""
        found: F64 = self.counts[:, counts.CHARS].astype(np.float64)
        return found

    def of_classes(self, *classes: int) -> F64:
        """Characters of the given classes together."""
        found: F64 = self.counts[:, list(classes)].sum(axis=1).astype(np.float64)
        return found

    @property
    def letters(self) -> F64:
        """Letters of all scripts."""
        return self.of_classes(*_LETTERS)

    @property
    def meaningful(self) -> F64:
        """Letters, digits, other numbers, and the marks that belong to letters."""
        return self.of_classes(*_MEANINGFUL)

    @property
    def visible(self) -> F64:
        """Characters other than white space."""
        return self.chars - self.of_classes(*_SPACES)

    def line(self, name: str) -> F64:
        """A column of :func:`lines.line_shape`."""
        shape = self._group("lines", self._lines)
        return lines.column(shape, name).astype(np.float64)

    def _lines(self) -> I64:
        return lines.line_shape(*self._compact(), self._most_lines)

    def code_mark(self, name: str) -> I64:
        """A column of :func:`codemarks.code_marks`."""
        marks = self._group("code_marks", self._code_marks)
        return codemarks.column(marks, name)

    def _code_marks(self) -> I64:
        return codemarks.code_marks(*self._compact(), self._most_lines)

    @property
    def _most_lines(self) -> int:
        return int(self.counts[:, unicode_classes.NEWLINE].max()) if len(self) else 0

    @property
    def _words(self) -> F64:
        c = self._context
        return self._group(
            "words",
            lambda: textstats.measure(
                self._data, self._offsets, self._rows, c.lexicon, c.targets, c.tops, c.repeats, c.fold
            ),
        )

    def word(self, column: int) -> F64:
        """A fixed column of :func:`textstats.measure`."""
        found: F64 = self._words[:, column]
        return found

    def top_ngram(self, size: int) -> F64:
        """Share of the most frequent n-gram."""
        found: F64 = self._words[:, textstats.COLUMNS + self._context.tops.index(size)]
        return found

    def repeated_ngrams(self, size: int) -> F64:
        """Share of characters in repeated n-grams."""
        c = self._context
        found: F64 = self._words[:, textstats.COLUMNS + len(c.tops) + c.repeats.index(size)]
        return found

    def marked(self, index: int) -> F64:
        """Share of characters marked by one class of phrases."""
        c = self._context
        found: F64 = self._words[:, textstats.COLUMNS + len(c.tops) + len(c.repeats) + index]
        return found

    @property
    def entropy(self) -> F64:
        """Entropy of the characters, in bits per character."""
        return self._group("entropy", lambda: self._census().entropy)

    def _census(self) -> Census:
        found = counts.census(*self._compact())
        self._groups |= {"counts": found.counts, "entropy": found.entropy}
        return found

    def _estimated(self) -> F64:
        found = compress.estimate(self._data, self._offsets, self._rows)
        return np.column_stack([found.whole, found.window, found.loops, found.matches, found.far])

    @property
    def estimate(self) -> F64:
        """Columns: estimated zlib ratio, the lowest of a window, share of loops, matches, those from afar."""
        return self._group("estimate", self._estimated)

    @property
    def zlib(self) -> F64:
        """Exact zlib level-1 ratio."""
        return self._group("zlib", lambda: compress.zlib_ratio(self._data, self._offsets, self._rows))

    @property
    def window_zlib(self) -> F64:
        """The lowest zlib level-1 ratio of a window, exact."""
        return self._group(
            "window_zlib", lambda: compress.window_zlib_ratio(self._data, self._offsets, self._rows)
        )

    @property
    def paragraphs(self) -> F64:
        """Columns: shares of paragraphs, and of their bytes, that repeat an earlier paragraph."""
        return self._group("paragraphs", self._paragraphs)

    def _paragraphs(self) -> F64:
        view = memoryview(self._data.data)
        out = np.zeros((len(self), 2))
        for k, row in enumerate(self._rows):
            text = bytes(view[int(self._offsets[row]) : int(self._offsets[row + 1])])
            parts = [part for part in _PARAGRAPH.split(text.strip()) if part]
            seen: set[bytes] = set()
            repeated = 0
            for part in parts:
                repeated += len(part) if part in seen else 0
                seen.add(part)
            if parts:
                out[k] = (len(parts) - len(seen)) / len(parts), repeated / sum(map(len, parts))
        return out


def ratio(part: F64, whole: F64, empty: float = 0.0) -> F64:
    """``part ÷ whole``, and ``empty`` where there is nothing to divide by."""
    found: F64 = np.divide(part, whole, out=np.full(part.shape, empty, np.float64), where=whole > 0)
    return found
