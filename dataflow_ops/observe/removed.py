"""What each step removed from a chunk, as rows of one shape whatever removed it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dataflow_ops import schema
from dataflow_ops.observe.chunks import Chunks

REMOVED = pa.schema(
    [
        ("doc_id", schema.DOC_ID),
        ("step", pa.string()),
        ("rule", pa.string()),
        ("source_id", pa.string()),
        ("row", pa.int64()),  # in parse.text; in parse.rejects where step is parse
        ("gate", pa.string()),
        ("value", pa.float64()),
        ("bound", pa.float64()),
        ("side", pa.string()),
        ("detail", pa.string()),
        ("survivor_chunk", pa.uint64()),
        ("survivor_row", pa.uint32()),
        ("survivor_id", schema.DOC_ID),
        ("similarity", pa.float32()),
    ]
)
"""One row per removed document."""


def removed(chunks: Chunks, chunk: str, rule: str | None = None) -> Iterator[pa.Table]:
    """Yield tables of ``REMOVED``: parse, filter, duplicates (rules ``exact`` and ``near``), label.

    Args:
        chunks: index of the run's outputs.
        chunk: chunk id, 16 hex digits.
        rule: only what this rule removed.

    """
    for table in (
        _parse(chunks, chunk),
        _filter(chunks, chunk),
        _duplicates(chunks, chunk),
        _labels(chunks, chunk),
    ):
        if table is not None and rule is not None:
            table = table.filter(pc.equal(table["rule"], rule))
        if table is not None and table.num_rows:
            yield table


def _parse(chunks: Chunks, chunk: str) -> pa.Table | None:
    table = chunks.table("parse", "rejects", chunk)
    if table is None:
        return None
    return _shaped(
        table.num_rows,
        step="parse",
        row=pa.array(np.arange(table.num_rows)),
        **{c: table[c] for c in ("doc_id", "rule", "source_id", "value", "bound", "detail")},
    )


def _filter(chunks: Chunks, chunk: str) -> pa.Table | None:
    table = chunks.table("filter", "rejects", chunk)
    if table is None:
        return None
    return _shaped(
        table.num_rows,
        step="filter",
        source_id=_of_text(chunks, chunk, "source_id", table["row"]),
        **{c: table[c] for c in ("doc_id", "rule", "row", "gate", "value", "bound", "side")},
    )


def _duplicates(chunks: Chunks, chunk: str) -> pa.Table | None:
    table = chunks.duplicates(chunk)
    table = table.filter(pc.not_equal(table["verdict"], "survivor"))
    if table.num_rows == 0:
        return None
    return _shaped(
        table.num_rows,
        step="confirm",
        doc_id=_of_text(chunks, chunk, "doc_id", table["row"]),
        source_id=_of_text(chunks, chunk, "source_id", table["row"]),
        rule=table["verdict"],
        value=table["similarity"],
        **{c: table[c] for c in ("row", "survivor_chunk", "survivor_row", "survivor_id", "similarity")},
    )


def _labels(chunks: Chunks, chunk: str) -> pa.Table | None:
    columns = ("row", "doc_id", "language", "language_score", "verdict")
    table = chunks.table("label", "labels", chunk, columns)
    if table is None:
        return None
    table = table.filter(pc.not_equal(table["verdict"], ""))
    return _shaped(
        table.num_rows,
        step="label",
        source_id=_of_text(chunks, chunk, "source_id", table["row"]),
        rule=table["verdict"],
        value=table["language_score"],
        detail=table["language"],
        **{c: table[c] for c in ("row", "doc_id")},
    )


def _of_text(chunks: Chunks, chunk: str, column: str, rows: Any) -> Any:
    table = chunks.table("parse", "text", chunk, (column,))
    if table is None:
        return pa.nulls(len(rows), REMOVED.field(column).type)
    return table[column].take(rows)


def _shaped(n: int, **columns: Any) -> pa.Table:
    given = {}
    for field in REMOVED:
        value = columns.get(field.name)
        if value is None:
            given[field.name] = pa.nulls(n, field.type)
        elif isinstance(value, str):
            given[field.name] = pa.array([value] * n, field.type)
        else:
            given[field.name] = value.cast(field.type)
    return pa.table(given, schema=REMOVED)
