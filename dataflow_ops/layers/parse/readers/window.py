"""A buffer over a block stream, for formats framed by headers and lengths."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from dataflow_ops.errors import FileError


class Window:
    """Look ahead in a stream without consuming it.

    Args:
        stream: blocks from the beginning of the file.
        reopen: gives them once more.

    Attributes:
        offset: position in the stream of the first byte in the buffer.
        failure: what broke the stream; to be raised once the buffer holds no whole record any more.
        rewound: whether the file is being read a second time.
    """

    def __init__(self, stream: Iterator[bytes], reopen: Callable[[], Iterator[bytes]]) -> None:
        self._stream = stream
        self._reopen = reopen
        self._buffer = bytearray()
        self.offset = 0
        self.failure: FileError | None = None
        self.rewound = False

    def ensure(self, n: int) -> int:
        """Buffer at least ``n`` bytes if the stream has them; return how many are buffered."""
        while len(self._buffer) < n and self.failure is None:
            try:
                block = next(self._stream, None)
            except FileError as e:
                self.failure = e
                break
            if block is None:
                break
            self._buffer += block
        return len(self._buffer)

    def peek(self, start: int, stop: int) -> bytes:
        """Buffered bytes ``start … stop`` from the current position."""
        return bytes(memoryview(self._buffer)[start:stop])

    def find(self, marker: bytes, start: int, stop: int) -> int:
        """Offset of ``marker`` among the buffered bytes, or -1."""
        return self._buffer.find(marker, start, stop)

    def drop(self, n: int) -> None:
        """Move ``n`` buffered bytes forward."""
        del self._buffer[:n]
        self.offset += n

    def skip_to(self, offset: int) -> None:
        """Move forward to a position of the stream, or to its end if that comes first; nothing is kept."""
        while self.offset < offset and self.ensure(1):
            self.drop(min(len(self._buffer), offset - self.offset))

    def rewind(self, offset: int) -> None:
        """Move back to a position of the stream, at the cost of reading it anew."""
        self._stream = self._reopen()
        self._buffer.clear()
        self.offset = 0
        self.failure = None
        self.rewound = True
        self.skip_to(offset)

    def seek_marker(self, marker: bytes, limit: int | None = None) -> bool:
        """Move forward to the next ``marker``, however far.

        Args:
            marker: bytes to find.
            limit: position in the stream before which it must begin.

        Returns:
            False, at ``limit`` or at the end of the stream, if there is none.
        """
        overlap = len(marker) - 1
        while True:
            within = len(self._buffer) if limit is None else min(len(self._buffer), limit - self.offset)
            at = self._buffer.find(marker, 0, within + overlap)
            if at >= 0:
                self.drop(at)
                return True
            keep = min(len(self._buffer), overlap)
            if limit is not None and limit <= self.offset + len(self._buffer) - keep:
                self.drop(limit - self.offset)
                return False
            self.drop(len(self._buffer) - keep)
            if self.ensure(keep + 1) <= keep:
                self.drop(keep if limit is None else min(keep, limit - self.offset))
                return False
