"""A task's view of the world that lives in memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa
import pyarrow.compute as pc

from dataflow_ops.values import Numbers

Stored = Mapping[tuple[str, str], list[tuple[str, pa.Table]]]
"""``(step, kind)`` -> ``(producer's partition, rows)`` in ascending order of partition."""


@dataclass
class FakeSide:
    """Implements :class:`dataflow_ops.protocols.Side` over tables held in memory.

    Tables with a ``slice`` column are cut by it for inputs that the test lists in ``sliced``.
    """

    stored: Stored
    partition: str = "all"
    numbers: Numbers = field(default_factory=lambda: Numbers(4, 4, 4, 4, 2))
    scratch: Path = Path()
    memory_budget: int = 1 << 30
    sliced: frozenset[tuple[str, str]] = frozenset()
    same: frozenset[tuple[str, str]] = frozenset()
    reads: list[tuple[str, str]] = field(default_factory=list)

    def tables(self, step: str, kind: str) -> Iterator[tuple[str, pa.Table]]:
        self.reads.append((step, kind))
        for partition, table in self.stored[(step, kind)]:
            if (step, kind) in self.same and partition != self.partition:
                continue
            rows = table
            if (step, kind) in self.sliced:
                rows = rows.filter(pc.equal(rows["slice"], self.partition)).drop_columns(["slice"])
            if rows.num_rows:
                yield partition, rows

    def table(self, step: str, kind: str) -> pa.Table:
        found = [t for _, t in self.tables(step, kind)]
        if found:
            return pa.concat_tables(found).combine_chunks()
        schema = self.stored[(step, kind)][0][1].schema
        if "slice" in schema.names:
            schema = schema.remove(schema.get_field_index("slice"))
        return schema.empty_table()

    def stream(self, step: str, kind: str) -> Iterator[pa.Table]:
        for _, table in self.tables(step, kind):
            yield from (table.slice(start, 7) for start in range(0, table.num_rows, 7))

    def lookup(self, step: str, kind: str, partition: str, slice_name: str = "") -> pa.Table:
        [table] = [t for p, t in self.stored[(step, kind)] if p == partition]
        return table

    def checkpoint(self) -> None:
        """Nobody asks for a pause."""

    def open_source(self, source_id: str, path: str, location: str = "") -> BinaryIO:
        raise AssertionError("this step reads no source")

    def store_raw(self, data: Iterable[bytes], mark: str = "") -> tuple[str, str, int]:
        raise AssertionError("this step stores no raw bytes")

    def known_raw(self, mark: str) -> str:
        raise AssertionError("this step stores no raw bytes")
