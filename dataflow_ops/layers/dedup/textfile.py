"""Texts that are too many for memory: on local disk, those used last in memory."""

from __future__ import annotations

import os
from collections import OrderedDict
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np

from dataflow_ops.kernels.arrow import I64, string_buffers


class TextFile:
    """Texts by number, in the order in which they came; a context, which removes the file.

    Args:
        path: of the file, not there yet.
        limit: bytes of texts kept in memory, but one at least.
    """

    def __init__(self, path: Path, limit: int) -> None:
        self._path, self._limit = path, limit
        self._file = open(path, "w+b", buffering=0)
        self._offsets: list[I64] = [np.zeros(1, np.int64)]
        self._ends: I64 | None = None
        self._size = 0
        self._kept: OrderedDict[int, str] = OrderedDict()
        self._kept_bytes = 0

    def append(self, column: Any) -> None:
        """Take the texts of a string column."""
        data, offsets = string_buffers(column)
        body = data[offsets[0] : offsets[-1]].data
        while body.nbytes:
            body = body[self._file.write(body) :]
        self._offsets.append(offsets[1:] - offsets[0] + self._size)
        self._size += int(offsets[-1] - offsets[0])

    def text(self, i: int) -> str:
        """The text number ``i``, once all have come."""
        known = self._kept.get(i)
        if known is not None:
            self._kept.move_to_end(i)
            return known
        if self._ends is None:
            self._ends = np.concatenate(self._offsets)
        start, end = int(self._ends[i]), int(self._ends[i + 1])
        text = os.pread(self._file.fileno(), end - start, start).decode()
        self._kept[i] = text
        # Characters beyond Latin take two or four bytes each in memory.
        self._kept_bytes += 4 * len(text)
        while self._kept_bytes > self._limit and len(self._kept) > 1:
            self._kept_bytes -= 4 * len(self._kept.popitem(last=False)[1])
        return text

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, e: BaseException | None, at: TracebackType | None
    ) -> None:
        self._file.close()
        self._path.unlink(missing_ok=True)
