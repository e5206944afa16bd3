"""Decompressors of one member each, with one interface and bounded output."""

from __future__ import annotations

import bz2
import lzma
import zlib
from collections.abc import Callable, Iterator
from typing import Final, Protocol

import zstandard

from dataflow_ops.media import Codec

BLOCK: Final = 1 << 20
"""Most bytes in a block that is handed on (zstd: see ``_ZSTD_SLICE``)."""
_ZSTD_SLICE: Final = 2048
"""Stored bytes fed to zstd at once: its output can't be bounded otherwise, and a block of 128 KB may take
4 bytes, so 2 KB give at most 64 MB."""
_BZIP2_SLICE: Final = 64
"""Stored bytes fed to bzip2 at once: room for few block ends (a block of 46 MB may take 40 bytes), so that
few blocks are held until their checksums are known."""
MAX_WINDOW: Final = 128 << 20
"""Largest zstd window (``--long=27``); a larger one would need that much memory for one file."""


class Decoder(Protocol):
    """One member (frame) of a compressed file."""

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Decompressed blocks for the next stored bytes."""

    @property
    def unused(self) -> bytes | None:
        """Bytes after the end of the member; None until its end was seen."""


class _Gzip:
    def __init__(self) -> None:
        self._z = zlib.decompressobj(wbits=31)

    def feed(self, data: bytes) -> Iterator[bytes]:
        while True:
            out = self._z.decompress(data, BLOCK)
            if out:
                yield out
            data = self._z.unconsumed_tail
            # A full block may leave output inside zlib although all input was taken.
            if self._z.eof or (not data and len(out) < BLOCK):
                return

    @property
    def unused(self) -> bytes | None:
        return self._z.unused_data if self._z.eof else None


class _Bzip2:
    """Gives a block once its checksum was right: damage scrambles a whole block, not only what follows."""

    def __init__(self) -> None:
        self._d = bz2.BZ2Decompressor()
        self._rest = b""

    def feed(self, data: bytes) -> Iterator[bytes]:
        for at in range(0, len(data), _BZIP2_SLICE):
            piece = data[at : at + _BZIP2_SLICE]
            held: list[bytes] = []
            # It may ask for input while output is left inside, and checks a block when the last of it is out.
            while (out := self._d.decompress(piece, BLOCK)) or not (self._d.needs_input or self._d.eof):
                held.append(out)
                piece = b""
                if self._d.eof:
                    break
            yield from held
            if self._d.eof:
                self._rest = self._d.unused_data + data[at + _BZIP2_SLICE :]
                return

    @property
    def unused(self) -> bytes | None:
        return self._rest if self._d.eof else None


class _Xz:
    def __init__(self) -> None:
        self._d = lzma.LZMADecompressor(memlimit=256 << 20)

    def feed(self, data: bytes) -> Iterator[bytes]:
        while True:
            out = self._d.decompress(data, BLOCK)
            if out:
                yield out
            data = b""
            if self._d.eof or (self._d.needs_input and len(out) < BLOCK):
                return

    @property
    def unused(self) -> bytes | None:
        return self._d.unused_data if self._d.eof else None


class _Zstd:
    def __init__(self) -> None:
        self._d = zstandard.ZstdDecompressor(max_window_size=MAX_WINDOW).decompressobj()

    def feed(self, data: bytes) -> Iterator[bytes]:
        for at in range(0, len(data), _ZSTD_SLICE):
            out = self._d.decompress(data[at : at + _ZSTD_SLICE])
            if out:
                yield out
            if self._d.eof:
                self._rest = self._d.unused_data + data[at + _ZSTD_SLICE :]
                return

    @property
    def unused(self) -> bytes | None:
        return self._rest if self._d.eof else None


DECODERS: Final[dict[Codec, tuple[str, bytes, Callable[[], Decoder]]]] = {
    "gz": ("gzip", b"\x1f\x8b", _Gzip),
    "zst": ("Zstandard", b"\x28\xb5\x2f\xfd", _Zstd),
    "bz2": ("bzip2", b"BZh", _Bzip2),
    "xz": ("xz", b"\xfd7zXZ\x00", _Xz),
}
"""Codec -> its name, the first bytes of a member, and what makes a decoder of one member."""

BROKEN: Final = (zlib.error, OSError, EOFError, ValueError, lzma.LZMAError, zstandard.ZstdError)
"""What a decompressor raises when it meets damage."""
