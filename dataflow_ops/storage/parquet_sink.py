"""Parquet into a staged file: complete buffers one after another, each with its own hash."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterable
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from dataflow_ops.storage.blob import Staged
from dataflow_ops.storage.row_groups import RowCutter
from dataflow_ops.values import Slice


class Window(io.RawIOBase):
    """What is written from here on, as a file of its own that starts at 0 and hashes itself.

    The first window of a staged file has the file's own hash: its bytes are not hashed twice.
    """

    def __init__(self, staged: Staged) -> None:
        self._staged = staged
        self._start = staged.size
        self._digest = hashlib.sha256() if self._start else None
        self.abandoned = False

    def writable(self) -> bool:
        """Always."""
        return True

    def tell(self) -> int:
        """Bytes written through this window."""
        return self._staged.size - self._start

    def write(self, data: Any) -> int:
        """Append; once abandoned, pretend to."""
        if self.abandoned:
            return memoryview(data).nbytes
        if self._digest is not None:
            self._digest.update(data)
        return self._staged.write(data)

    def as_slice(self, name: str, rows: int) -> Slice:
        """What was written, as recorded in state."""
        sha256 = self._staged.sha256() if self._digest is None else self._digest.hexdigest()
        return Slice(name, self._start, self.tell(), sha256, rows)


class ParquetPart:
    """One complete Parquet buffer inside a staged file, written row group by row group.

    zstd level 1; no dictionary for long or unique values (``large_string``, binary, numbers): it costs
    time and saves nothing there. The same rows give the same bytes, however they were appended.
    """

    def __init__(self, staged: Staged, schema: pa.Schema) -> None:
        self._window = Window(staged)
        self._cutter = RowCutter(schema)
        self._writer = pq.ParquetWriter(
            self._window,
            schema,
            compression="zstd",
            compression_level=1,
            use_dictionary=[field.name for field in schema if pa.types.is_string(field.type)],
            write_statistics=True,
            store_schema=True,
        )
        self.rows = 0

    def append(self, table: pa.Table) -> None:
        """Take rows in; full row groups go to the file at once."""
        self.rows += table.num_rows
        self._write(self._cutter.append(table))

    def finish(self, name: str = "") -> Slice:
        """Write the rest and the footer."""
        try:
            self._write(self._cutter.finish())
            self._writer.close()
        except BaseException:
            self.abandon()
            raise
        return self._window.as_slice(name, self.rows)

    def abandon(self) -> None:
        """Let go of the writer. Its closing footer must not reach a disk that is full."""
        self._window.abandoned = True
        self._writer.close()

    def _write(self, groups: Iterable[pa.Table]) -> None:
        for group in groups:
            self._writer.write_table(group, row_group_size=group.num_rows)
