"""Bytes of a file, decompressed in bounded memory, and hashed as they are read."""

from __future__ import annotations

import bz2
import hashlib
import lzma
import zlib
from collections.abc import Callable, Iterator
from typing import BinaryIO, Final, Protocol

import zstandard

from dataflow_ops.errors import FileError, SourceChanged, TruncatedFile, UnreadableFile
from dataflow_ops.media import CODECS, Codec, sniff

BLOCK: Final = 1 << 20
"""Most bytes in a block that is handed on (zstd: see ``_ZSTD_SLICE``)."""
_READ: Final = 256 << 10
_ZSTD_SLICE: Final = 2048
"""Stored bytes fed to zstd at once: its output can't be bounded otherwise, and a block of 128 KB may take
4 bytes, so 2 KB give at most 64 MB."""
MAX_WINDOW: Final = 128 << 20
"""Largest zstd window (``--long=27``); a larger one would need that much memory for one file."""


class HashedReader:
    """A file's stored bytes, hashed in the order they are read.

    Args:
        raw: the file, at its start.
        path: for messages.
        sha256: expected hex digest of all its bytes; ``""`` if they were checked already.
    """

    def __init__(self, raw: BinaryIO, path: str, sha256: str) -> None:
        self._raw = raw
        self._path = path
        self._expected = sha256
        self._hash = hashlib.sha256()
        self._verified = not sha256

    def read(self, n: int) -> bytes:
        """Read at most ``n`` bytes; ``b""`` at the end."""
        data = self._raw.read(n)
        if self._expected:
            self._hash.update(data)
        return data

    def plain(self) -> Iterator[bytes]:
        """Yield the bytes in blocks, as they are."""
        while data := self.read(_READ):
            yield data

    def verify(self) -> None:
        """Read what is left and compare.

        Raises:
            SourceChanged: the bytes are not those that were fetched.
        """
        if self._verified:
            return
        while self.read(BLOCK):
            pass
        found = self._hash.hexdigest()
        if found != self._expected:
            raise SourceChanged(
                f"{self._path}: SHA-256 is {found[:16]}…, but {self._expected[:16]}… was listed;"
                " the file changed after it was fetched"
            )
        self._verified = True

    def seekable(self) -> BinaryIO:
        """The file at its start, for formats that are read at random; verified first.

        Raises:
            SourceChanged: as :meth:`verify`.
        """
        self.verify()
        self._raw.seek(0)
        return self._raw

    def again(self) -> HashedReader:
        """The file once more, from its start; verified first.

        Raises:
            SourceChanged: as :meth:`verify`.
        """
        return HashedReader(self.seekable(), self._path, "")


class _Decoder(Protocol):
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


class _Lzish:
    """bzip2 and xz share one interface."""

    def __init__(self, inner: bz2.BZ2Decompressor | lzma.LZMADecompressor) -> None:
        self._d = inner

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


_DECODERS: Final[dict[Codec, tuple[str, bytes, Callable[[], _Decoder]]]] = {
    "gz": ("gzip", b"\x1f\x8b", _Gzip),
    "zst": ("Zstandard", b"\x28\xb5\x2f\xfd", _Zstd),
    "bz2": ("bzip2", b"BZh", lambda: _Lzish(bz2.BZ2Decompressor())),
    "xz": ("xz", b"\xfd7zXZ\x00", lambda: _Lzish(lzma.LZMADecompressor(memlimit=256 << 20))),
}

_BROKEN: Final = (zlib.error, OSError, EOFError, ValueError, lzma.LZMAError, zstandard.ZstdError)


def blocks(raw: HashedReader, path: str) -> Iterator[bytes]:
    """Decompressed bytes of a file, block by block.

    The codec is told by the first bytes; a name that promises one the bytes don't have is an error. All
    that could be read is yielded before an error is raised, and the error's ``offset`` says how many
    decompressed bytes that was. Any number of members (gzip, bzip2), streams and frames may follow each
    other; zero padding is ignored.

    Raises:
        TruncatedFile: the compressed data end too early.
        UnreadableFile: the data are damaged, are not what the name says, need too much memory, or are
            followed by bytes that are not part of them.
    """
    head = raw.read(_READ)
    named = CODECS.get("." + path.rsplit(".", 1)[-1].lower(), "") if "." in path else ""
    codec: Codec = sniff(head[:16]).codec or named
    if not codec or not head:
        if head:
            yield head
        yield from raw.plain()
        return
    yield from _members(head, raw, codec)


def _members(data: bytes, raw: HashedReader, codec: Codec) -> Iterator[bytes]:
    name, magic, make = _DECODERS[codec]
    delivered = 0
    decoder: _Decoder | None = None
    members = 0
    while data:
        if decoder is None:
            data = data.lstrip(b"\x00") if members else data
            while len(data) < len(magic):
                more = raw.read(_READ)
                if not more:
                    break
                data = (data + more).lstrip(b"\x00") if members else data + more
            if not data:
                return
            if not _begins(data, magic, codec):
                raise _foreign(data, magic, name, members, delivered)
            decoder = make()
        try:
            for block in decoder.feed(data):
                delivered += len(block)
                yield block
            rest = decoder.unused
        except _BROKEN as e:
            raise _damaged(e, name, delivered) from e
        if rest is not None:
            decoder, data, members = None, rest, members + 1
            if data:
                continue
        data = raw.read(_READ)
    if decoder is not None:
        raise TruncatedFile(f"{name} data end before their end mark; the file was cut off", delivered)


def _begins(data: bytes, magic: bytes, codec: Codec) -> bool:
    skippable = codec == "zst" and data[1:4] == b"\x2a\x4d\x18" and 0x50 <= data[0] <= 0x5F
    return data.startswith(magic) or skippable


def _foreign(data: bytes, magic: bytes, name: str, members: int, delivered: int) -> FileError:
    if magic.startswith(data):
        return TruncatedFile(f"{name} data end inside their header; the file was cut off", delivered)
    if members:
        return UnreadableFile(f"bytes after the end of the {name} data are not {name}", delivered)
    return UnreadableFile(f"named as {name}, but its first bytes are not {name}", 0)


def _damaged(error: Exception, name: str, delivered: int) -> UnreadableFile:
    text = str(error)
    if "too much memory" in text or "Memory usage limit" in text:
        return UnreadableFile(
            f"{name} data need more than {MAX_WINDOW >> 20} MB of memory to unpack;"
            " compress the file again with a smaller window (zstd --long=27 or less)",
            delivered,
        )
    return UnreadableFile(f"{name} data are damaged: {text}", delivered)
