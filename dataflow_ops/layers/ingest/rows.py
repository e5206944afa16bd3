"""Bringing rows of a database, for ``fetch``: a range of keys becomes one stored file."""

from __future__ import annotations

from collections.abc import Iterator

from dataflow_ops.errors import SourceChanged
from dataflow_ops.layers.ingest import rowform
from dataflow_ops.layers.ingest.outcomes import (
    Outcome,
    Row,
    awaited,
    dead,
    fetched,
    kept_before,
    mark_of,
)
from dataflow_ops.layers.ingest.outside import Table
from dataflow_ops.layers.ingest.sources.sql import read_range
from dataflow_ops.protocols import Side
from dataflow_ops.source_settings import SourceSettings

_BLOCK = 1 << 20


def bring_rows(side: Side, row: Row, source: SourceSettings, table: Table) -> Outcome:
    """Read one range and keep it, unless it was read before as it is listed now.

    Raises:
        SourceAway: the database does not answer: no fault of the range.
        SourceRefused: it refuses.
    """
    mark = mark_of(row, rowform.VERSION)
    if (kept := kept_before(side, row, mark)) is not None:
        return fetched(row, {"sha256": kept.sha256, "size": kept.size, "location": kept.location})
    try:
        lines = _joined(read_range(source, row["etag"], table))
        location, sha256, size = side.store_raw(awaited(lines, side), mark)
    except SourceChanged as e:
        return dead(row, SourceChanged.__name__, str(e))
    return fetched(row, {"sha256": sha256, "size": size, "location": location})


def _joined(lines: Iterator[bytes]) -> Iterator[bytes]:
    held: list[bytes] = []
    size = 0
    for line in lines:
        held.append(line)
        size += len(line)
        if size >= _BLOCK:
            yield b"".join(held)
            held, size = [], 0
    if held:
        yield b"".join(held)
