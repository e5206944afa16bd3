"""Parquet: row groups, read batch by batch; a record's position is its row number in the file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from dataflow_ops.errors import UndecodableText, UnreadableFile
from dataflow_ops.kernels.arrow import is_text
from dataflow_ops.layers.parse.records import BadRecord, Item, RawRecord, RowBatch, SourceFile, SourceOptions
from dataflow_ops.layers.parse.streams import HashedReader

_ROWS = 256
"""Rows decoded at once: large texts in one batch must not break the memory budget."""
_MAX_BYTES = 1 << 30
"""A larger batch is read record by record: its columns might not fit 32-bit offsets."""


def read_parquet(file: SourceFile, raw: HashedReader) -> Iterator[Item]:
    """Yield the rows of row groups ``start … end``: batches where they can be read by columns, else records.

    Raises:
        UnreadableFile: not Parquet, or a page can't be read; ``offset`` is the row number.
        SourceChanged: the bytes are not those that were fetched.
    """
    source = raw.seekable()
    row = 0
    try:
        parquet = pq.ParquetFile(source)
        groups = range(parquet.num_row_groups)[file.start : None if file.end < 0 else file.end]
        row = sum(parquet.metadata.row_group(g).num_rows for g in range(groups.start))
        if not len(groups):
            return
        for batch in parquet.iter_batches(batch_size=_ROWS, row_groups=list(groups), use_threads=False):
            if _suits(batch, file.options):
                yield RowBatch(row, batch, file.media_type, _share(batch))
            else:
                yield from _rows(batch, row, file)
            row += batch.num_rows
    except (pa.ArrowException, OSError) as e:
        raise UnreadableFile(f"not readable as Parquet from row {row} on: {_first_line(e)}", row) from e


def _suits(rows: Any, options: SourceOptions) -> bool:
    """Whether a batch can be read by columns.

    Its text is a column of strings, its other columns hold strings, numbers or truth values, and all strings
    are UTF-8.
    """
    names: list[str] = rows.schema.names
    if len(set(names)) < len(names) or options.text_field not in names or rows.nbytes > _MAX_BYTES:
        return False
    if not is_text(rows.schema.field(options.text_field).type) or not all(map(_is_simple, rows.schema.types)):
        return False
    try:
        rows.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def _is_simple(kind: Any) -> bool:
    return (
        is_text(kind)
        or pa.types.is_integer(kind)
        or pa.types.is_float32(kind)
        or pa.types.is_float64(kind)
        or pa.types.is_boolean(kind)
        or pa.types.is_null(kind)
    )


def _rows(batch: Any, first: int, file: SourceFile) -> Iterator[Item]:
    names: list[str] = batch.schema.names
    columns = [_values(batch.column(i)) for i in range(len(names))]
    share = _share(batch)
    for i in range(batch.num_rows):
        record: dict[str, object] = {}
        error: UndecodableText | None = None
        for name, values in zip(names, columns, strict=True):
            value = values[i]
            if isinstance(value, UnicodeDecodeError):
                error = UndecodableText(f"column {name!r} is not UTF-8: {value.reason} at byte {value.start}")
                break
            record[name] = value
        if error is not None:
            yield BadRecord(first + i, error, file.media_type, share)
        else:
            yield RawRecord(first + i, record, file.media_type, share)


def _share(batch: Any) -> int:
    return int(batch.nbytes // max(1, batch.num_rows))


def _values(column: Any) -> list[Any]:
    """Python values; strings are decoded one by one, so that a bad one costs its own row only."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        column = column.dictionary_decode()
        kind = column.type
    if not (is_text(kind) or kind == pa.string_view()):
        return list(column.to_pylist())
    binary = pc.cast(column, pa.large_binary(), safe=False)
    return [None if value is None else _decoded(value) for value in binary.to_pylist()]


def _decoded(value: bytes) -> str | UnicodeDecodeError:
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError as e:
        return e


def _first_line(error: BaseException) -> str:
    return str(error).split("\n", 1)[0][:300]
