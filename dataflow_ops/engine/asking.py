"""Reading that asks for a pause on the way, so that a large file or a slow source keeps none waiting."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator
from typing import Any, BinaryIO, Self, TypeVar, cast

Ask = Callable[[], None]
"""Raises :class:`~dataflow_ops.errors.Paused` (or LeaseLost) when the task must be given back."""

_BUFFER = 256 << 10
T = TypeVar("T")


def asked(items: Iterable[T], ask: Ask) -> Iterator[T]:
    """The same items, with a question before each."""
    for item in items:
        ask()
        yield item


class AskingFile(io.RawIOBase):
    """A file opened for reading that asks before each read.

    Args:
        file: the file, seekable.
        ask: called before bytes are read.
    """

    def __init__(self, file: BinaryIO, ask: Ask) -> None:
        self._file = file
        self._ask = ask

    @classmethod
    def over(cls, file: BinaryIO, ask: Ask) -> BinaryIO:
        """The file behind a buffer, as if it had just been opened."""
        return cast("BinaryIO", io.BufferedReader(cls(file, ask), _BUFFER))

    def readable(self) -> bool:
        """Always."""
        return True

    def seekable(self) -> bool:
        """As the file."""
        return self._file.seekable()

    def readinto(self, buffer: Any) -> int:
        """Fill as much of a buffer as there is."""
        self._ask()
        view = memoryview(buffer).cast("B")
        data = self._file.read(len(view))
        view[: len(data)] = data
        return len(data)

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """As the file."""
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        """As the file."""
        return self._file.tell()

    def close(self) -> None:
        """Close the file too."""
        if not self.closed:
            self._file.close()
        super().close()

    def __enter__(self) -> Self:
        return self
