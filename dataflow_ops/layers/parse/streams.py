"""Bytes of a file, decompressed in bounded memory, and hashed as they are read."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import BinaryIO, Final

from dataflow_ops.errors import FileError, SourceChanged, TruncatedFile, UnreadableFile
from dataflow_ops.layers.parse.decoders import BLOCK, BROKEN, DECODERS, MAX_WINDOW, Decoder
from dataflow_ops.media import CODECS, Codec, sniff

_READ: Final = 256 << 10


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


def blocks(raw: HashedReader, path: str) -> Iterator[bytes]:
    """Decompressed bytes of a file, block by block.

    The codec is told by the first bytes; a name that promises one the bytes don't have is an error. All
    that could be read is yielded before an error is raised, and the error's ``offset`` says how many
    decompressed bytes that was (of bzip2, whole blocks of up to 900 kB). Any number of members (gzip,
    bzip2), streams and frames may follow each other; zero padding is ignored.

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


def _members(data: bytes, raw: HashedReader, codec: Codec, careful: int | None = None) -> Iterator[bytes]:
    """Decompressed blocks of all members.

    A decompressor that meets damage keeps to itself what the same call had unpacked before it. Then the file
    is read once more, and from the call that failed on (stored byte ``careful``) fed byte by byte.
    """
    name, magic, make = DECODERS[codec]
    delivered = 0
    decoder: Decoder | None = None
    members = 0
    taken = len(data)
    while data:
        if decoder is None:
            data = data.lstrip(b"\x00") if members else data
            while len(data) < len(magic):
                more = raw.read(_READ)
                if not more:
                    break
                taken += len(more)
                data = (data + more).lstrip(b"\x00") if members else data + more
            if not data:
                return
            if not _begins(data, magic, codec):
                raise _foreign(data, magic, name, members, delivered)
            decoder = make()
        piece = len(data) if careful is None or taken <= careful else 1
        rest: bytes | None = None
        try:
            for at in range(0, len(data), piece):
                for block in decoder.feed(data[at : at + piece]):
                    delivered += len(block)
                    yield block
                if decoder.unused is not None:
                    rest = decoder.unused + data[at + piece :]
                    break
        except BROKEN as e:
            if careful is None:
                yield from _once_more(raw, codec, taken - len(data), delivered)
            raise _damaged(e, name, delivered) from e
        if rest is not None:
            decoder, data, members = None, rest, members + 1
            if data:
                continue
        data = raw.read(_READ)
        taken += len(data)
    if decoder is not None:
        raise TruncatedFile(f"{name} data end before their end mark; the file was cut off", delivered)


def _once_more(raw: HashedReader, codec: Codec, careful: int, delivered: int) -> Iterator[bytes]:
    """What a second, careful reading gives beyond the bytes already ``delivered``; raises where it ends."""
    again = raw.again()
    for block in _members(again.read(_READ), again, codec, careful):
        beyond = block[delivered:]
        delivered -= len(block) - len(beyond)
        if beyond:
            yield beyond


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
