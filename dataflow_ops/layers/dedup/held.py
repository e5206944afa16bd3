"""A few documents through the steps of dedup in memory: one chunk, one prefix, one block."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import cast

import pyarrow as pa

from dataflow_ops.protocols import RunStep, Side
from dataflow_ops.schema import chunk_name
from dataflow_ops.values import Numbers, StepResult

CHUNK = chunk_name(0)


class Held:
    """As much of a :class:`~dataflow_ops.protocols.Side` as match, gather and verify use of a full run."""

    def __init__(self) -> None:
        self.partition = CHUNK
        self.numbers = Numbers(1, 1, 1, 1, 1)
        self.memory_budget = 1 << 62  # all of it is held anyway
        self._tables: dict[tuple[str, str], list[pa.Table]] = {}
        self._schemas: dict[tuple[str, str], pa.Schema] = {}

    @property
    def side(self) -> Side:
        """To be handed to steps."""
        return cast("Side", self)

    def give(self, step: str, kind: str, table: pa.Table) -> None:
        """Hold rows of an output."""
        self._schemas.setdefault((step, kind), table.schema)
        self._tables.setdefault((step, kind), []).append(table)

    def hold(self, step: str, results: Iterable[StepResult]) -> dict[str, float]:
        """Hold what a step gave; returns its metrics, added up."""
        metrics: dict[str, float] = {}
        for result in results:
            for kind, table in result.outputs.items():
                sliced = "slice" in table.column_names
                self.give(step, kind, table.drop_columns(["slice"]) if sliced else table)
            for name, value in result.metrics.items():
                metrics[name] = metrics.get(name, 0.0) + value
        return metrics

    def run(self, step: RunStep, partition: str) -> dict[str, float]:
        """Run a reduce over what is held, and hold what it gives; returns its metrics."""
        self.partition = partition
        for spec in step.outputs:
            self._schemas[step.name, spec.kind] = spec.schema
        return self.hold(step.name, step.run(self.side, 0))

    def tables(self, step: str, kind: str) -> Iterator[tuple[str, pa.Table]]:
        """See the protocol."""
        if found := self._tables.get((step, kind)):
            yield CHUNK, pa.concat_tables(found)

    def stream(self, step: str, kind: str) -> Iterator[pa.Table]:
        """See the protocol."""
        yield from (table for _, table in self.tables(step, kind))

    def table(self, step: str, kind: str) -> pa.Table:
        """See the protocol."""
        found = self._tables.get((step, kind))
        return pa.concat_tables(found).combine_chunks() if found else self._schemas[step, kind].empty_table()

    def checkpoint(self) -> None:
        """Nobody asks for a pause here."""
