"""A JSON array, element by element, in bounded memory: dialogues often come as one huge array."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from dataflow_ops.errors import FileError, TruncatedFile, UnreadableFile
from dataflow_ops.layers.parse.readers.jsonl import HEAD
from dataflow_ops.layers.parse.readers.jsonvalue import record_or_error
from dataflow_ops.layers.parse.records import BadRecord, Item, RawRecord, SourceFile
from dataflow_ops.layers.parse.streams import HashedReader, blocks

_TOKEN: Final = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|["{}\[\],]', re.DOTALL)
_BOM: Final = b"\xef\xbb\xbf"
_MUCH: Final = 1 << 16
"""Bytes behind the end that are looked at."""


def read_array(file: SourceFile, raw: HashedReader) -> Iterator[Item]:
    """Yield the elements (position: their number). One that is no valid object is isolated.

    Raises:
        FileError: as :func:`~dataflow_ops.layers.parse.streams.blocks`; no array; it has no end, or something
            behind it; an element is above ``max_document``.
    """
    for number, element in enumerate(_elements(blocks(raw, file.path), file.max_document)):
        found = record_or_error(element)
        if isinstance(found, dict):
            yield RawRecord(number, found, file.media_type, len(element))
        else:
            yield BadRecord(number, found, file.media_type, len(element), head=element[:HEAD])


class _Feed:
    """A stream that gives what could be read before it tells of its fault."""

    def __init__(self, stream: Iterator[bytes]) -> None:
        self._stream = stream
        self._fault: FileError | None = None

    def more(self, least: int) -> bytes:
        """At least so many further bytes, where the stream has them; none at its end."""
        if self._fault is not None:
            raise self._fault
        parts: list[bytes] = []
        size = 0
        try:
            while size < least and (block := next(self._stream, None)) is not None:
                parts.append(block)
                size += len(block)
        except FileError as e:
            if not parts:
                raise
            self._fault = e
        return b"".join(parts)


def _elements(stream: Iterator[bytes], limit: int) -> Iterator[bytes]:
    """Texts between the commas of the outermost array."""
    feed = _Feed(stream)
    buffer, gone = _start(feed)
    at, depth, begin, first = 1, 1, 1, True
    while depth:
        token = _TOKEN.search(buffer, at)
        if token is None or token[0] == b'"':
            # Nothing more, or a string that goes on: at least as much again is read before it is looked at.
            at = len(buffer) if token is None else token.start()
            if len(buffer) - begin > limit:
                raise UnreadableFile(f"an element of the array has more than {limit >> 20} MB", gone + begin)
            buffer, gone, at = buffer[begin:], gone + begin, at - begin
            begin = 0
            more = feed.more(max(1, len(buffer) - at))
            if not more:
                raise TruncatedFile("the JSON array has no end; the file was cut off", gone + len(buffer))
            buffer += more
            continue
        at = token.end()
        mark = token[0]
        if mark in (b"{", b"["):
            depth += 1
        elif mark in (b"}", b"]"):
            depth -= 1
        if (mark == b"," and depth == 1) or depth == 0:
            element = buffer[begin : token.start()].strip()
            if element or depth or not first:
                yield element
            begin, first = at, False
    if (buffer[at:] + feed.more(_MUCH)).strip():
        raise UnreadableFile("something stands behind the end of the JSON array", gone + at)


def _start(feed: _Feed) -> tuple[bytes, int]:
    """The first bytes from the bracket on, and how many stand before it."""
    head = feed.more(1)
    while head and not (body := head.removeprefix(_BOM).lstrip()):
        if not (more := feed.more(1)):
            break
        head += more
    if not head or not body.startswith(b"["):
        raise UnreadableFile("no JSON array", 0)
    return body, len(head) - len(body)
