"""Readers of containers: one small file per format, listed in one literal table.

A reader takes a file apart into records. What is wrong with one record becomes a :class:`BadRecord`; what
ends the file early is raised as a :class:`FileError` after everything before it was yielded. Positions
identify records, so they must not depend on ranges, block sizes or earlier records being bad.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from dataflow_ops import media
from dataflow_ops.layers.parse.readers.json_array import read_json
from dataflow_ops.layers.parse.readers.jsonl import read_jsonl
from dataflow_ops.layers.parse.readers.parquet import read_parquet
from dataflow_ops.layers.parse.readers.rows import read_rows
from dataflow_ops.layers.parse.readers.warc import read_warc
from dataflow_ops.layers.parse.readers.whole import read_whole
from dataflow_ops.layers.parse.records import Item, SourceFile
from dataflow_ops.layers.parse.streams import HashedReader

Reader = Callable[[SourceFile, HashedReader], Iterator[Item]]

READERS: Final[dict[str, Reader]] = {
    media.JSONL: read_jsonl,
    media.JSON: read_json,
    media.PARQUET: read_parquet,
    media.WARC: read_warc,
    media.ROWS: read_rows,
}
"""Media type of the container -> its reader; every other type is one document per file."""

VERSIONS: Final[dict[str, int]] = {"jsonl": 3, "json": 3, "parquet": 1, "warc": 3, "whole": 3}
ROWS_VERSION: Final = 1
"""Of :func:`read_rows`; beside the others, because it acts on sources of ``kind: sql`` alone."""


def reader_of(media_type: str) -> Reader:
    """The reader of a container."""
    return READERS.get(media_type, read_whole)
