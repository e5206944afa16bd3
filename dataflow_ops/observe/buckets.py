"""Rows put aside on disk by the head of a hash: two large tables are joined a small part at a time."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.ipc

from dataflow_ops.kernels.digest import prefix_of

ROWS = 500_000
"""Rows of a bucket, on average: what is in memory at once."""


def bucket_count(rows: int) -> int:
    """Buckets for so many rows: a power of two, 1,024 at most (as many files are open at once)."""
    return min(1024, 1 << max(0, (rows // ROWS)).bit_length())


class Buckets(AbstractContextManager["Buckets"]):
    """Tables of one schema, cut by hash.

    Args:
        folder: a folder of its own, which exists.
        name: start of the files' names.
        schema: of every table.
        count: number of buckets, a power of two.
    """

    def __init__(self, folder: Path, name: str, schema: pa.Schema, count: int) -> None:
        self._folder, self._name, self._schema, self._count = folder, name, schema, count
        self._writers: dict[int, Any] = {}
        self.rows = 0

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    def add(self, table: pa.Table, hashes: npt.NDArray[np.uint64]) -> None:
        """Put rows aside.

        Args:
            table: n rows of the schema.
            hashes: uint64 of shape ``(n,)``, well mixed.
        """
        if not table.num_rows:
            return
        self.rows += table.num_rows
        bucket = prefix_of(hashes, self._count)
        order = np.argsort(bucket, kind="stable")
        sorted_table, sorted_bucket = table.take(pa.array(order)), bucket[order]
        starts = np.flatnonzero(np.diff(sorted_bucket, prepend=-1))
        ends = [*starts[1:].tolist(), len(order)]
        for start, end in zip(starts.tolist(), ends, strict=True):
            self._writer(int(sorted_bucket[start])).write_table(sorted_table.slice(start, end - start))

    def tables(self) -> list[int]:
        """Numbers of the buckets that hold rows, ascending. Nothing can be added afterwards."""
        used = sorted(self._writers)
        self._end()
        self._writers = dict.fromkeys(used)
        return used

    def read(self, bucket: int) -> pa.Table:
        """One bucket's rows; none where it holds none."""
        path = self._path(bucket)
        if not path.exists():
            return self._schema.empty_table()
        with pa.memory_map(str(path)) as file:
            return pa.ipc.open_stream(file).read_all()

    def _writer(self, bucket: int) -> Any:
        if bucket not in self._writers:
            self._writers[bucket] = pa.ipc.new_stream(str(self._path(bucket)), self._schema)
        return self._writers[bucket]

    def _path(self, bucket: int) -> Path:
        return self._folder / f"{self._name}.{bucket}.arrows"

    def _end(self) -> None:
        for writer in self._writers.values():
            if writer is not None:
                writer.close()
