"""Reading rows of a published output: whole slices, or a stream from any row on."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from dataflow_ops.errors import CorruptOutput
from dataflow_ops.storage.blob import BlobStore
from dataflow_ops.storage.remote import IN_ONE, PartFile, brought
from dataflow_ops.storage.row_groups import MAX_BYTES, MAX_ROWS, fitting_rows, table_row_bytes
from dataflow_ops.values import Output, Slice


def slice_file(blobs: BlobStore, output: Output, part: Slice, verify: bool) -> Any:
    """One slice as a file for pyarrow: memory-mapped, or read in ranges where it is not on this machine.

    Raises:
        CorruptOutput: the file is gone or too short, or (``verify``) the bytes do not hash as recorded.
        StorageFull: a slice that must be brought here finds no room.
    """
    path = blobs.local_path(output.uri)
    if path is not None:
        return pa.BufferReader(_local(blobs, path, output, part, verify))
    if verify or part.length <= IN_ONE:
        return pa.BufferReader(brought(blobs, output, part, verify))
    return PartFile(blobs.open(output.uri), part.offset, part.length)


def _local(blobs: BlobStore, path: Path, output: Output, part: Slice, verify: bool) -> pa.Buffer:
    try:
        try:
            buffer = _mapped(path, part)
        except FileNotFoundError:
            # Moved to the cold tier between the two looks: asked again, its path is another one.
            buffer = _mapped(blobs.local_path(output.uri) or path, part)
    except (OSError, pa.ArrowInvalid) as e:
        raise CorruptOutput(f"{output.uri} can't be read: {e}") from e
    if buffer.size != part.length:
        raise CorruptOutput(
            f"{output.uri} ends at byte {part.offset + buffer.size};"
            f" {part.offset + part.length} were recorded"
        )
    if verify and hashlib.sha256(buffer).hexdigest() != part.sha256:
        raise CorruptOutput(f"{output.uri}, slice {part.name!r}: the bytes do not hash to what was recorded")
    return buffer


def _mapped(path: Path, part: Slice) -> pa.Buffer:
    with pa.memory_map(str(path)) as mapped:
        mapped.seek(part.offset)
        return mapped.read_buffer(part.length)


class RowReader:
    """One slice (or an unsliced output) as a stream of rows, one row group in memory at a time.

    Args:
        blobs: where the file is.
        output: as recorded.
        part: which slice.
        columns: projection; empty reads all.
        first_row: where to begin; row groups before it are never read.
        verify: hash the bytes first.

    Raises:
        CorruptOutput: the bytes are not those that were recorded, or are no Parquet.
    """

    def __init__(
        self,
        blobs: BlobStore,
        output: Output,
        part: Slice,
        columns: Sequence[str] = (),
        first_row: int = 0,
        verify: bool = False,
    ) -> None:
        self._where = output.uri
        try:
            self._file = pq.ParquetFile(slice_file(blobs, output, part, verify))
        except (pa.ArrowInvalid, OSError) as e:
            raise CorruptOutput(f"{self._where} is not readable Parquet: {e}") from e
        self._columns = list(columns) or None
        self.num_rows = int(self._file.metadata.num_rows)
        self.next_row = min(first_row, self.num_rows)
        self._next_group = 0
        self._group: pa.Table | None = None
        self._at = 0
        self._skip_to(self.next_row)

    @property
    def schema(self) -> pa.Schema:
        """Columns of what is read."""
        schema = self._file.schema_arrow
        return schema if self._columns is None else pa.schema([schema.field(name) for name in self._columns])

    def take(self, count: int) -> pa.Table:
        """The next ``count`` rows (fewer at the end), for walking several outputs side by side."""
        parts = []
        while count > 0 and (group := self._current()) is not None:
            piece = group.slice(self._at, count)
            parts.append(piece)
            count -= piece.num_rows
            self._advance(piece.num_rows)
        return pa.concat_tables(parts) if parts else self.schema.empty_table()

    def batches(self, max_rows: int = MAX_ROWS, max_bytes: int = MAX_BYTES) -> Iterator[pa.Table]:
        """The remaining rows in tables of at most so many rows and uncompressed bytes (one row at least)."""
        while (group := self._current()) is not None:
            sizes = table_row_bytes(group)
            while self._at < group.num_rows:
                count = fitting_rows(sizes, self._at, max_rows, max_bytes)
                piece = group.slice(self._at, count)
                self._advance(count)
                yield piece

    def read_all(self) -> pa.Table:
        """All rows, wherever the stream stands."""
        try:
            return self._file.read(columns=self._columns, use_threads=False)
        except (pa.ArrowInvalid, OSError) as e:
            raise CorruptOutput(f"{self._where} is not readable Parquet: {e}") from e

    def _skip_to(self, row: int) -> None:
        metadata = self._file.metadata
        while self._next_group < metadata.num_row_groups:
            rows = metadata.row_group(self._next_group).num_rows
            if row < rows:
                break
            row -= rows
            self._next_group += 1
        self._at = row

    def _current(self) -> pa.Table | None:
        if self._group is not None and self._at < self._group.num_rows:
            return self._group
        if self._group is not None:
            self._group, self._at = None, 0
        if self._next_group >= self._file.metadata.num_row_groups:
            return None
        try:
            self._group = self._file.read_row_group(
                self._next_group, columns=self._columns, use_threads=False
            )
        except (pa.ArrowInvalid, OSError) as e:
            raise CorruptOutput(f"{self._where} is not readable Parquet: {e}") from e
        self._next_group += 1
        return self._group

    def _advance(self, count: int) -> None:
        self._at += count
        self.next_row += count
