"""WARC 1.0 and 1.1 (ISO 28500): response, resource and conversion records, plain or compressed.

A record whose length is wrong must not take its neighbours with it: a record counts only if the next one
(or the end) follows it; else the next header is looked for from the end of the bad record's own header, at
the start of any line. What stands inside a record that is framed well is never taken for a header.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from dataflow_ops.errors import DocumentError, DocumentTooCostly, MalformedRecord, TruncatedFile
from dataflow_ops.layers.parse.readers.http import content_type, parse_http
from dataflow_ops.layers.parse.readers.window import Window
from dataflow_ops.layers.parse.records import BadRecord, Item, RawRecord, Skipped, SourceFile
from dataflow_ops.layers.parse.streams import HashedReader, blocks

_MAGIC: Final = b"WARC/1."
_MARKER: Final = b"\n" + _MAGIC
_VERSION: Final = re.compile(rb"(?:\d(?:\r\n?)?)?")
"""What follows the magic, or as much of it as a cut file has."""
_MAX_HEADER: Final = 64 << 10
_PROBE: Final = 256
"""Bytes in which a header shows its version and the name of its first field."""
_OTHER_TYPES: Final = frozenset({"warcinfo", "request", "metadata", "revisit", "continuation"})


def read_warc(file: SourceFile, raw: HashedReader) -> Iterator[Item]:
    """Yield the records of a file; a record belongs to the range in which it begins.

    Raises:
        FileError: as :func:`blocks`, or the last record ends too early.
    """
    window = Window(blocks(raw, file.path), lambda: blocks(raw.again(), file.path))
    while _to_next(window):
        if 0 <= file.end <= window.offset:
            return
        before = window.offset < file.start
        item = _record(window, file)
        if not before:
            yield item
    if window.failure:
        raise window.failure


def _to_next(window: Window) -> bool:
    """Skip the empty lines between records; False at the end of the file."""
    while window.ensure(1):
        if window.peek(0, 1) not in (b"\r", b"\n"):
            return True
        window.drop(1)
    return False


def _record(window: Window, file: SourceFile) -> Item:
    start = window.offset
    header, header_size = _header(window)
    if header is None:
        return _bad(window, header_size, start, MalformedRecord("no WARC header here"), file)
    url = header.get("warc-target-uri", "").strip("<>")
    length_text = header.get("content-length", "")
    if not (length_text.isascii() and length_text.isdigit() and len(length_text) < 20):
        error = MalformedRecord(f"Content-Length is {length_text[:40]!r}, not a number of bytes")
        return _bad(window, header_size, start, error, file, url)
    length = int(length_text)
    if length > file.max_document:
        return _too_large(window, header_size, length, start, file, url)
    stop = header_size + length
    available = window.ensure(stop + 4 + len(_MAGIC))
    if available < stop and not _header_within(window, header_size - 1, available):
        message = f"the last record promises {length} bytes, {available - header_size} are there"
        raise window.failure or TruncatedFile(message, start)
    if available < stop or not _ends_well(window, stop, available):
        error = MalformedRecord(f"Content-Length is {length}, but no record ends there")
        return _bad(window, header_size, start, error, file, url)
    body = window.peek(header_size, stop)
    window.drop(stop)
    return _item(header, body, start, url, file)


def _header(window: Window) -> tuple[dict[str, str] | None, int]:
    """Fields by lower-case name and the header's size; None and the bytes to skip if there is none."""
    available = window.ensure(16)
    begin = window.peek(0, len(_MAGIC))
    if begin != _MAGIC:
        if len(begin) < len(_MAGIC) and _MAGIC.startswith(begin):
            raise window.failure or TruncatedFile("the file ends inside a record's header", window.offset)
        return None, 0
    end = window.find(b"\r\n\r\n", 0, available)
    while end < 0 and available < _MAX_HEADER:
        more = window.ensure(min(available + 4096, _MAX_HEADER))
        if more == available:
            break
        available = more
        end = window.find(b"\r\n\r\n", 0, available)
    if window.find(_MARKER, 0, available if end < 0 else end) >= 0:
        return None, len(_MAGIC)  # the header was cut, and another record begins before its end
    if end < 0:
        if available < _MAX_HEADER:
            raise window.failure or TruncatedFile("the file ends inside a record's header", window.offset)
        return None, len(_MAGIC)
    fields: dict[str, str] = {}
    last = ""
    for row in window.peek(0, end).decode("utf-8", "replace").split("\r\n")[1:]:
        if row[:1] in (" ", "\t") and last:
            fields[last] += " " + row.strip()
            continue
        name, _, value = row.partition(":")
        last = name.strip().lower()
        fields.setdefault(last, value.strip())
    return fields, end + 4


def _ends_well(window: Window, stop: int, available: int) -> bool:
    """Whether a record's end (two CRLF; some writers: one), or the end of the file, stands at ``stop``."""
    tail = window.peek(stop, min(available, stop + 11))
    rest = tail.lstrip(b"\r\n")
    return not rest or tail.startswith(b"\r\n\r\n") or (rest != tail and _MAGIC.startswith(rest[:7]))


def _bad(
    window: Window, skip: int, start: int, error: DocumentError, file: SourceFile, url: str = ""
) -> BadRecord:
    """Isolate the record and move to the next header."""
    # The header's own blank line may be the one before the next header.
    window.drop(max(0, skip - 1))
    _to_header(window)
    return BadRecord(start, error, file.media_type, window.offset - start, url)


def _too_large(
    window: Window, header_size: int, length: int, start: int, file: SourceFile, url: str
) -> BadRecord:
    """Isolate a record that must not be kept in memory, by its length if a record ends there.

    If none does, the file is read again from the first header that was passed. Once per file: one in which
    every record lies would be read again for each, so after that the first header is believed.
    """
    limit = file.max_document / (1 << 20)
    error = DocumentTooCostly(f"{length} bytes; parse.max_document_mb allows {limit:g} MB")
    if window.rewound:
        return _bad(window, header_size, start, error, file, url)
    stop = start + header_size + length
    window.drop(header_size - 1)
    passed = window.offset if _to_header(window, stop) else -1
    window.skip_to(stop)
    if window.offset < stop or not _ends_well(window, 0, window.ensure(4 + len(_MAGIC))):
        if passed < 0:
            _to_header(window)
        elif passed < window.offset:
            window.rewind(passed)
    return BadRecord(start, error, file.media_type, window.offset - start, url)


def _to_header(window: Window, limit: int | None = None) -> bool:
    """Move to the next line that begins a header; False, at ``limit`` or at the end, if there is none."""
    while window.seek_marker(_MARKER, limit):
        window.ensure(_PROBE)
        window.drop(1)
        if _is_header(window.peek(0, _PROBE)):
            return True
    return False


def _header_within(window: Window, start: int, stop: int) -> bool:
    """Whether a line among the buffered bytes ``start … stop`` begins a header."""
    while (start := window.find(_MARKER, start, stop) + 1) > 0:
        if _is_header(window.peek(start, min(stop, start + _PROBE))):
            return True
    return False


def _is_header(line: bytes) -> bool:
    """Whether a version and a field follow, as far as the bytes go: text may quote a version alone."""
    version, rest = line[len(_MAGIC) : len(_MAGIC) + 3], line[len(_MAGIC) + 3 :]
    if not _VERSION.fullmatch(version):
        return False
    field, ended, _ = rest.partition(b"\r\n")
    return not ended or b":" in field


def _item(header: dict[str, str], body: bytes, start: int, url: str, file: SourceFile) -> Item:
    kind = header.get("warc-type", "").lower()
    media_type, charset = content_type(header.get("content-type", ""))
    if kind in _OTHER_TYPES:
        return Skipped(start, f"warc_{kind}", len(body))
    if kind != "response" or media_type != "application/http":
        if kind in ("response", "resource", "conversion"):
            return RawRecord(start, body, media_type, len(body), url, charset, _record_id(header))
        return BadRecord(
            start, MalformedRecord(f"unknown WARC-Type {kind[:40]!r}"), file.media_type, len(body), url
        )
    try:
        http = parse_http(body, file.max_document)
    except DocumentError as e:
        return BadRecord(start, e, file.media_type, len(body), url)
    if not 200 <= http.status < 300:
        return Skipped(start, "http_status", len(body))
    return RawRecord(start, http.body, http.media_type, len(body), url, http.charset, _record_id(header))


def _record_id(header: dict[str, str]) -> str:
    return header.get("warc-record-id", "").strip("<>")
