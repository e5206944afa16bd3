"""Rows of a database, as ``fetch`` stored them: one a line, ``position TAB id TAB fields``.

The position is the row's key, or 63 bits of its hash, so a row keeps its identity when others come and go.
The id is a JSON text, the fields are a JSON object; what the database held of odd bytes is in them as it was.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Final

from dataflow_ops.errors import DocumentTooCostly, UnreadableFile
from dataflow_ops.layers.parse.readers.jsonl import lines
from dataflow_ops.layers.parse.readers.jsonvalue import record_or_error
from dataflow_ops.layers.parse.records import BadRecord, Item, RawRecord, SourceFile
from dataflow_ops.layers.parse.streams import HashedReader

_HEAD: Final = 24
"""Bytes that hold any position and the tabulator behind it."""


def read_rows(file: SourceFile, raw: HashedReader) -> Iterator[Item]:
    """Yield the rows of a range of keys.

    Raises:
        UnreadableFile: a line does not begin as fetch writes it.
    """
    for offset, line, size in lines(raw.plain(), file.max_document, head=_HEAD):
        number, tab, rest = (line or b"").partition(b"\t")
        if not tab or not number.isdigit():
            raise UnreadableFile("not rows as fetch stores them", offset)
        position = int(number)
        if size > file.max_document:
            limit = file.max_document / (1 << 20)
            error = DocumentTooCostly(f"the row has {size} bytes; parse.max_document_mb allows {limit:g} MB")
            yield BadRecord(position, error, file.media_type, size)
            continue
        record_id, _, fields = rest.partition(b"\t")
        found = record_or_error(fields)
        if isinstance(found, dict):
            name = json.loads(record_id)
            yield RawRecord(position, found, file.media_type, size, record_id=name)
        else:
            yield BadRecord(position, found, file.media_type, size)
