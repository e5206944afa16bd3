"""A run's recorded outputs, as observe reads them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa

from dataflow_ops.engine.inputs import OutputIndex
from dataflow_ops.protocols import Step
from dataflow_ops.storage.chunk_store import ChunkStore
from dataflow_ops.values import Output


class RunReader:
    """The :class:`~dataflow_ops.observe.reader.StepReader` of one run."""

    def __init__(self, index: OutputIndex, chunks: ChunkStore, steps: Mapping[str, Step]) -> None:
        self._index = index
        self._chunks = chunks
        self._schemas = {(step.name, o.kind): o.schema for step in steps.values() for o in step.outputs}

    def outputs(self, step: str, kind: str) -> Iterator[tuple[str, Output]]:
        """See the protocol."""
        yield from self._index.outputs(step, kind)

    def read(self, output: Output, slice_name: str = "", columns: Sequence[str] = ()) -> pa.Table:
        """See the protocol."""
        step = output.uri.split("/")[1]
        return self._chunks.read(output, slice_name, tuple(columns), schema=self._schemas[step, output.kind])

    def read_rows(self, output: Output, rows: Sequence[int], columns: Sequence[str] = ()) -> pa.Table:
        """A few rows by number; only their row groups are read."""
        parts = [self._chunks.rows(output, tuple(columns), row).take(1) for row in rows]
        return pa.concat_tables(parts) if parts else self.read(output, columns=columns).slice(0, 0)
