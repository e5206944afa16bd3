"""Columns of few values as numbers, so that nothing is done row by row in Python."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa


def coded(column: Any) -> tuple[npt.NDArray[np.int64], list[Any]]:
    """The number of each row's value, and the values by number; null is a value like any other.

    Args:
        column: pyarrow Array or ChunkedArray.

    Returns:
        int64 of shape ``(n,)``, and the distinct values in order of appearance.

    """
    if isinstance(column, pa.ChunkedArray):
        column = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    found = column.dictionary_encode(null_encoding="encode")
    return found.indices.to_numpy().astype(np.int64), found.dictionary.to_pylist()


class Words:
    """A text column that is filled in bit by bit, each distinct text held once; ``""`` to begin with.

    Args:
        n: rows.

    """

    def __init__(self, n: int) -> None:
        self.codes = np.zeros(n, np.int64)
        self._numbers: dict[str, int] = {"": 0}

    def put(self, at: npt.NDArray[np.int64], text: str) -> None:
        """Write one text into some rows."""
        self.codes[at] = self._number(text)

    def put_each(self, at: npt.NDArray[np.int64], texts: Any) -> None:
        """Write a text of its own into each of some rows.

        Args:
            at: rows.
            texts: pyarrow column of strings, as long.

        """
        codes, values = coded(texts)
        self.codes[at] = np.array([self._number(v) for v in values], np.int64)[codes]

    def column(self) -> Any:
        """All rows as a pyarrow array of strings."""
        words = pa.array(list(self._numbers), pa.string())
        return words.take(pa.array(self.codes))

    def _number(self, text: str) -> int:
        return self._numbers.setdefault(text, len(self._numbers))
