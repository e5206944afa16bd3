"""A run's recorded outputs, as observe reads them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa

from dataflow_ops.engine.inputs import OutputIndex
from dataflow_ops.errors import CorruptOutput
from dataflow_ops.kernels.arrow import I64
from dataflow_ops.protocols import Step
from dataflow_ops.storage.chunk_store import ChunkStore
from dataflow_ops.values import Output

_FAR = 10_000
"""Rows between two wanted ones from which on the second one's row group is looked for by its number."""


class RunReader:
    """The :class:`~dataflow_ops.observe.reader.StepReader` of one run."""

    def __init__(self, index: OutputIndex, chunks: ChunkStore, steps: Mapping[str, Step]) -> None:
        self._index = index
        self._chunks = chunks
        self._steps = steps
        self._hashed: set[str] = set()

    def outputs(self, step: str, kind: str) -> Iterator[tuple[str, Output]]:
        """See the protocol."""
        yield from self._index.outputs(step, kind)

    def read(self, output: Output, slice_name: str = "", columns: Sequence[str] = ()) -> pa.Table:
        """See the protocol."""
        schema = self._schema(output, slice_name)
        return self._chunks.read(output, slice_name, tuple(columns), schema=schema)

    def checked(self, output: Output, columns: Sequence[str] = ()) -> pa.Table:
        """All rows of an unsliced output, its bytes hashed first.

        Raises:
            CorruptOutput: they are gone, or not what was recorded.
        """
        schema = self._schema(output)
        return self._chunks.read(output, "", tuple(columns), verify=True, schema=schema)

    def pieces(self, output: Output, rows: I64, columns: Sequence[str]) -> Iterator[tuple[I64, pa.Table]]:
        """Many rows by number (ascending) in bounded tables, each with the numbers of its rows.

        Raises:
            CorruptOutput: the bytes, hashed before the first of them is read, are gone or not what was
                recorded.
        """
        at = 0
        while at < rows.size:
            new = output.uri not in self._hashed
            stream = self._chunks.rows(output, tuple(columns), int(rows[at]), verify=new)
            self._hashed.add(output.uri)
            for table in stream.batches():
                upto = int(np.searchsorted(rows, stream.next_row))
                mine = rows[at:upto]
                if mine.size:
                    yield mine, table.take(pa.array(mine - (stream.next_row - table.num_rows)))
                at = upto
                if at == rows.size or rows[at] - stream.next_row > _FAR:
                    break
            else:
                if at < rows.size:
                    raise CorruptOutput(f"{output.uri} has no row {rows[at]}")

    def read_rows(self, output: Output, rows: Sequence[int], columns: Sequence[str] = ()) -> pa.Table:
        """A few rows by number; only their row groups are read."""
        parts = [self._chunks.rows(output, tuple(columns), row).take(1) for row in rows]
        return pa.concat_tables(parts) if parts else self.read(output, columns=columns).slice(0, 0)

    def _schema(self, output: Output, slice_name: str = "") -> pa.Schema | None:
        """Columns where there are no rows. Elsewhere the file says them, and no step is made for that."""
        if any(part.length and slice_name in ("", part.name) for part in output.slices):
            return None
        step = self._steps[output.uri.split("/")[1]]
        return next(spec.schema for spec in step.outputs if spec.kind == output.kind)
