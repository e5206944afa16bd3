"""A JSON file: one object, or an array of objects. For large data JSON Lines is the better format."""

from __future__ import annotations

from collections.abc import Iterator

from dataflow_ops.errors import DocumentError
from dataflow_ops.layers.parse.readers.jsonl import lines
from dataflow_ops.layers.parse.readers.jsonvalue import as_record, load_json, record_or_error
from dataflow_ops.layers.parse.readers.whole import whole_bytes
from dataflow_ops.layers.parse.records import BadRecord, Item, RawRecord, SourceFile
from dataflow_ops.layers.parse.streams import HashedReader


def read_json(file: SourceFile, raw: HashedReader) -> Iterator[Item]:
    """Yield the object (position 0) or the array's elements (position: their number).

    Files named ``.json`` that hold JSON Lines are common; they are read as such (position: offset).
    """
    data = whole_bytes(file, raw)
    if isinstance(data, BadRecord):
        yield data
        return
    body = data.removeprefix(b"\xef\xbb\xbf").strip()
    if not body:
        return
    try:
        value = load_json(body)
    except DocumentError as e:
        if body.startswith(b"{") and b"\n" in body:
            yield from _as_lines(file, data)
        else:
            yield BadRecord(0, e, file.media_type, len(data))
        return
    elements = value if isinstance(value, list) else [value]
    share = len(data) // max(1, len(elements))
    for number, element in enumerate(elements):
        try:
            yield RawRecord(number, as_record(element), file.media_type, share)
        except DocumentError as e:
            yield BadRecord(number, e, file.media_type, share)


def _as_lines(file: SourceFile, data: bytes) -> Iterator[Item]:
    for position, line, size in lines(iter((data,)), len(data)):
        line = (line or b"").removeprefix(b"\xef\xbb\xbf")
        if not line.strip():
            continue
        found = record_or_error(line)
        if isinstance(found, dict):
            yield RawRecord(position, found, file.media_type, size)
        else:
            yield BadRecord(position, found, file.media_type, size)
