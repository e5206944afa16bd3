"""A run's recorded outputs, as observe reads them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from dataflow_ops.engine.inputs import OutputIndex
from dataflow_ops.storage.chunk_store import ChunkStore
from dataflow_ops.values import Output


class RunReader:
    """The :class:`~dataflow_ops.observe.reader.StepReader` of one run."""

    def __init__(self, index: OutputIndex, chunks: ChunkStore) -> None:
        self._index = index
        self._chunks = chunks

    def outputs(self, step: str, kind: str) -> Iterator[tuple[str, Output]]:
        """See the protocol."""
        yield from self._index.outputs(step, kind)

    def read(self, output: Output, slice_name: str = "", columns: Sequence[str] = ()) -> pa.Table:
        """See the protocol."""
        return self._chunks.read(output, slice_name, tuple(columns))
