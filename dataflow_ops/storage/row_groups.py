"""Cutting a stream of rows into row groups whose bounds depend on the rows alone, not on how they came."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from dataflow_ops.errors import StorageError
from dataflow_ops.kernels.arrow import is_text

MAX_ROWS = 10_000
MAX_BYTES = 64 << 20
"""Design §5: a row group holds at most so many rows and so many uncompressed bytes (one row at least)."""


def row_bytes(column: Any) -> npt.NDArray[np.int64]:
    """Uncompressed bytes of each row of a column: the same for the same values however they are chunked.

    Args:
        column: pyarrow Array or ChunkedArray of any type.

    Returns:
        int64 of shape (n,). Variable-length values count their length plus 4, bits count as bytes.
    """
    if _is_variable(column.type):
        return _lengths(pc.binary_length(column)) + 4
    if isinstance(column, pa.ChunkedArray):
        if column.num_chunks == 0:
            return np.zeros(0, np.int64)
        return np.concatenate([row_bytes(chunk) for chunk in column.chunks])
    kind = column.type
    n = len(column)
    if pa.types.is_struct(kind):
        total = np.zeros(n, np.int64)
        for i in range(kind.num_fields):
            total += row_bytes(column.field(i))
        return total
    if pa.types.is_dictionary(kind):
        return row_bytes(column.dictionary_decode())
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        lengths = (
            pc.fill_null(pc.list_value_length(column), 0).to_numpy(zero_copy_only=False).astype(np.int64)
        )
        ends = np.cumsum(lengths)
        inner = np.concatenate([[0], np.cumsum(row_bytes(column.flatten()))])
        return np.asarray(inner[ends] - inner[ends - lengths] + 4, np.int64)
    if pa.types.is_fixed_size_list(kind):
        width = kind.list_size * row_width(kind.value_type)
        return np.full(n, width, np.int64)
    return np.full(n, row_width(kind), np.int64)


def row_width(kind: Any) -> int:
    """Bytes of one value of a fixed-width type, one at least.

    Raises:
        StorageError: the type has no fixed width.
    """
    if pa.types.is_null(kind):
        return 1
    try:
        return max(1, int(kind.bit_width) // 8)
    except ValueError as e:
        raise StorageError(f"columns of type {kind} can't be stored") from e


def _lengths(column: Any) -> npt.NDArray[np.int64]:
    if column.null_count:
        column = pc.fill_null(column, 0)
    return np.asarray(column.to_numpy(zero_copy_only=False), np.int64)


def table_row_bytes(table: pa.Table) -> npt.NDArray[np.int64]:
    """Sum of :func:`row_bytes` over the columns, int64 of shape (rows,)."""
    total, fixed = np.zeros(table.num_rows, np.int64), 0
    for column in table.columns:
        if _is_plain(column.type):
            fixed += row_width(column.type)
        else:
            total += row_bytes(column)
    return total + fixed


def _is_plain(kind: Any) -> bool:
    """Whether every value takes the same bytes."""
    return not (pa.types.is_nested(kind) or pa.types.is_dictionary(kind) or _is_variable(kind))


def _is_variable(kind: Any) -> bool:
    return is_text(kind) or bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind))


def fitting_rows(
    sizes: npt.NDArray[np.int64], start: int, max_rows: int, max_bytes: int, taken: int = 0
) -> int:
    """How many rows from ``start`` on go into a group that already holds ``taken`` bytes.

    Args:
        sizes: bytes of each row.
        start: first row.
        max_rows: most rows.
        max_bytes: most bytes, ``taken`` included.
        taken: bytes already in the group; with none, the first row fits whatever its size.
    """
    window = np.cumsum(sizes[start : start + max_rows]) + taken
    count = int(np.searchsorted(window, max_bytes, side="right"))
    return count if count or taken or not len(window) else 1


class RowCutter:
    """Collects rows and gives them back as row groups.

    Args:
        schema: what each group looks like; columns of what is appended are put in this order and type.
        max_rows: most rows of a group.
        max_bytes: most uncompressed bytes of a group.
    """

    def __init__(self, schema: pa.Schema, max_rows: int = MAX_ROWS, max_bytes: int = MAX_BYTES) -> None:
        self._schema = schema
        self._max_rows = max_rows
        self._max_bytes = max_bytes
        self._pending: list[pa.Table] = []
        self._rows = 0
        self._bytes = 0

    def append(self, table: pa.Table) -> Iterator[pa.Table]:
        """Take rows in and yield each group that they complete, every column one chunk.

        Raises:
            StorageError: a column is missing, or does not convert to the schema's type.
        """
        table = conform(table, self._schema)
        sizes = table_row_bytes(table)
        at = 0
        while at < table.num_rows:
            count = fitting_rows(sizes, at, self._max_rows - self._rows, self._max_bytes, self._bytes)
            if count:
                self._pending.append(table.slice(at, count))
                self._rows += count
                self._bytes += int(sizes[at : at + count].sum())
                at += count
            # Closed only when a further row is there that does not fit, or when full: never by arrival.
            if self._rows == self._max_rows or at < table.num_rows:
                yield self._take()

    def finish(self) -> Iterator[pa.Table]:
        """Yield the last group, if rows are left."""
        if self._rows:
            yield self._take()

    def _take(self) -> pa.Table:
        group = pa.concat_tables(self._pending).combine_chunks()
        self._pending, self._rows, self._bytes = [], 0, 0
        return group


def conform(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """The table's columns in the schema's order and types, without the schema's own metadata.

    Raises:
        StorageError: a column is missing, or does not convert without loss.
    """
    if table.schema.equals(schema, check_metadata=False):
        return table.cast(schema) if table.schema.metadata or schema.metadata else table
    missing = [name for name in schema.names if name not in table.column_names]
    if missing:
        raise StorageError(
            f"column(s) {', '.join(missing)} are missing; there are {', '.join(table.column_names)}"
        )
    try:
        return table.select(schema.names).cast(schema)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, ValueError) as e:
        raise StorageError(f"rows do not have the declared types: {e}") from e
