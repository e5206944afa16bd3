"""Rows waiting to be sorted into their consumers' slices; beyond a budget they wait on local disk."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dataflow_ops.errors import StorageError
from dataflow_ops.storage.row_groups import conform

SLICE_COLUMN = "slice"
SPILL_BYTES = 64 << 20


class SliceBuffer:
    """Collects rows with a ``slice`` column and gives them back slice by slice, in order of arrival.

    Args:
        schema: columns without ``slice``.
        scratch: folder for spilled rows; a temporary one is made when None.
        spill_bytes: rows of so many bytes are sorted and put aside on disk.
    """

    def __init__(
        self, schema: pa.Schema, scratch: Path | None = None, spill_bytes: int = SPILL_BYTES
    ) -> None:
        self._schema = schema
        self._with_slice = schema.append(pa.field(SLICE_COLUMN, pa.string()))
        self._scratch = scratch
        self._spill_bytes = spill_bytes
        self._waiting: list[pa.Table] = []
        self._waiting_bytes = 0
        self._runs: list[tuple[dict[str, tuple[int, int]], pa.Table]] = []
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    def append(self, table: pa.Table) -> None:
        """Take rows in.

        Raises:
            StorageError: no ``slice`` column, or a null in it. An empty name is found when rows are sorted.
        """
        if SLICE_COLUMN not in table.column_names:
            raise StorageError("rows of a sliced output need a 'slice' column")
        if table[SLICE_COLUMN].null_count:
            raise StorageError("a row of a sliced output names no slice")
        if not table.num_rows:
            return
        table = conform(table, self._with_slice)
        self._waiting.append(table)
        self._waiting_bytes += table.nbytes
        if self._waiting_bytes >= self._spill_bytes:
            self._spill(self._sorted_run())

    def slices(self) -> Iterator[tuple[str, Iterator[pa.Table]]]:
        """Yield ``(name, its tables in order of arrival)`` in ascending order of name."""
        if self._waiting:
            self._runs.append(self._sorted_run())
        names = sorted({name for index, _ in self._runs for name in index})
        for name in names:
            yield name, self._rows_of(name)

    def close(self) -> None:
        """Remove what was spilled."""
        self._runs, self._waiting, self._waiting_bytes = [], [], 0
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    def _rows_of(self, name: str) -> Iterator[pa.Table]:
        for index, table in self._runs:
            if name in index:
                start, count = index[name]
                yield table.slice(start, count)

    def _sorted_run(self) -> tuple[dict[str, tuple[int, int]], pa.Table]:
        table = pa.concat_tables(self._waiting)
        self._waiting, self._waiting_bytes = [], 0
        codes = pa.concat_arrays(table[SLICE_COLUMN].chunks).dictionary_encode()
        names = codes.dictionary.to_pylist()
        if "" in names:
            raise StorageError("a row of a sliced output names no slice")
        ranks = np.empty(len(names), np.int64)
        order = sorted(range(len(names)), key=lambda i: str(names[i]))
        ranks[order] = np.arange(len(names))
        by_rank = ranks[codes.indices.to_numpy(zero_copy_only=False)]
        rows = np.argsort(by_rank, kind="stable")
        counts = np.bincount(by_rank, minlength=len(names))
        starts = np.concatenate([[0], np.cumsum(counts)])
        index = {names[i]: (int(starts[r]), int(counts[r])) for r, i in enumerate(order)}
        table = table.drop_columns([SLICE_COLUMN])
        # Taking joins the chunks on its way: the rows, with their texts, are copied once.
        return index, pc.take(table, pa.array(rows)) if len(names) > 1 else table

    def _spill(self, run: tuple[dict[str, tuple[int, int]], pa.Table]) -> None:
        index, table = run
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="slices_", dir=self._scratch)
        path = Path(self._folder.name, f"run_{len(self._runs)}.arrow")
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table)
        mapped = pa.ipc.open_file(pa.memory_map(str(path))).read_all()
        self._runs.append((index, mapped))
