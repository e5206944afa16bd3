"""A buffer over a block stream, for formats framed by headers and lengths."""

from __future__ import annotations

from collections.abc import Iterator

from dataflow_ops.errors import FileError


class Window:
    """Look ahead in a stream without consuming it.

    Args:
        stream: blocks from the beginning of the file.

    Attributes:
        offset: position in the stream of the first byte in the buffer.
        failure: what broke the stream; to be raised once the buffer holds no whole record any more.
    """

    def __init__(self, stream: Iterator[bytes]) -> None:
        self._stream = stream
        self._buffer = bytearray()
        self.offset = 0
        self.failure: FileError | None = None

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

    def seek_marker(self, marker: bytes) -> bool:
        """Move forward to the next ``marker``, however far; False (and at the end) if there is none."""
        while True:
            at = self._buffer.find(marker)
            if at >= 0:
                self.drop(at)
                return True
            keep = min(len(self._buffer), len(marker) - 1)
            self.drop(len(self._buffer) - keep)
            if self.ensure(keep + 1) <= keep:
                self.drop(keep)
                return False
