"""A task's view of the world: reads its declared inputs, and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import BinaryIO, Protocol

import numpy as np
import pyarrow as pa

from dataflow_ops.engine.asking import AskingFile, asked
from dataflow_ops.engine.base_records import BASE
from dataflow_ops.engine.inputs import OutputIndex, Pieces
from dataflow_ops.engine.pace import Pace
from dataflow_ops.errors import BaseDamaged, CorruptOutput, StateError
from dataflow_ops.protocols import Input, Step
from dataflow_ops.storage.chunk_store import ChunkStore
from dataflow_ops.values import Numbers


class RawFiles(Protocol):
    """Access to raw source files and to fetched blobs."""

    def open(self, source_id: str, path: str, location: str) -> BinaryIO:
        """Open a source file (``location`` empty) or a fetched blob, seekable."""

    def store(self, data: Iterable[bytes], mark: str = "") -> tuple[str, str, int]:
        """Store fetched bytes; return ``(location, hex SHA-256, size)``."""

    def known(self, mark: str) -> str:
        """Where bytes of that mark are, ``""`` where there are none."""


@dataclass(frozen=True, slots=True)
class TaskSide:
    """The :class:`~dataflow_ops.protocols.Side` of one task."""

    step: Step
    partition: str
    numbers: Numbers
    memory_budget: int
    scratch: Path
    pieces: Pieces
    index: OutputIndex
    chunks: ChunkStore
    raw: RawFiles
    schema_of: Callable[[str, str], pa.Schema]
    ask: Callable[[], None]

    def checkpoint(self) -> None:
        """See :class:`~dataflow_ops.protocols.Side`."""
        self.ask()

    def tables(self, step: str, kind: str) -> Iterator[tuple[str, pa.Table]]:
        """See :class:`~dataflow_ops.protocols.Side`."""
        columns = self._declared(step, kind).columns
        for piece in self.pieces[(step, kind)]:
            if piece.slice.length:
                self.ask()
                with self.blamed(step, piece.partition):
                    table = self.chunks.read(piece.output, piece.slice.name, columns, verify=True)
                yield piece.partition, table

    def table(self, step: str, kind: str) -> pa.Table:
        """See :class:`~dataflow_ops.protocols.Side`."""
        found = [table for _, table in self.tables(step, kind)]
        if found:
            return pa.concat_tables(found).combine_chunks()
        schema = self.schema_of(step, kind)
        columns = self._declared(step, kind).columns
        return (pa.schema([schema.field(c) for c in columns]) if columns else schema).empty_table()

    def stream(self, step: str, kind: str) -> Iterator[pa.Table]:
        """See :class:`~dataflow_ops.protocols.Side`."""
        columns = self._declared(step, kind).columns
        for piece in self.pieces[(step, kind)]:
            if piece.slice.length:
                with self.blamed(step, piece.partition):
                    reader = self.chunks.rows(piece.output, columns, 0, piece.slice.name, verify=True)
                batches = reader.batches()
                while True:
                    self.ask()
                    with self.blamed(step, piece.partition):
                        table = next(batches, None)
                    if table is None:
                        break
                    yield table

    def lookup(self, step: str, kind: str, partition: str, slice_name: str = "") -> pa.Table:
        """See :class:`~dataflow_ops.protocols.Side`."""
        item = self._pointer(step, kind)
        self.ask()
        output = self.index.output(step, kind, partition)
        with self.blamed(step, partition):
            return self.chunks.read(
                output, slice_name, item.columns, verify=True, schema=self.schema_of(step, kind)
            )

    def slices(self, step: str, kind: str, name: str) -> Iterator[pa.Table]:
        """See :class:`~dataflow_ops.protocols.Side`."""
        item = self._pointer(step, kind)
        for piece in self.index.pieces(Input(step, kind, "slice"), name):
            self.ask()
            with self.blamed(step, piece.partition):
                yield self.chunks.read(piece.output, name, item.columns, verify=True)

    def rows(self, step: str, kind: str, partition: str, rows: Sequence[int]) -> Iterator[pa.Table]:
        """See :class:`~dataflow_ops.protocols.Side`."""
        item = self._pointer(step, kind)
        output = self.index.output(step, kind, partition)
        wanted = np.asarray(rows, np.int64)
        while len(wanted):
            self.ask()
            with self.blamed(step, partition):
                stream = self.chunks.rows(output, item.columns, int(wanted[0]))
                found = next(stream.batches(), None)
            if found is None or wanted[0] >= output.rows:
                raise CorruptOutput(f"{output.uri} has {output.rows} rows; row {wanted[0]} is not there")
            here = int(np.searchsorted(wanted, stream.next_row))
            yield found.take(pa.array(wanted[:here] - (stream.next_row - found.num_rows)))
            wanted = wanted[here:]

    def open_source(self, source_id: str, path: str, location: str = "") -> BinaryIO:
        """See :class:`~dataflow_ops.protocols.Side`."""
        if not location:
            return AskingFile.over(self.raw.open(source_id, path, location), self.ask)
        with self.blamed("fetch", self.partition):
            return AskingFile.over(self.raw.open(source_id, path, location), self.ask)

    def store_raw(self, data: Iterable[bytes], mark: str = "") -> tuple[str, str, int]:
        """See :class:`~dataflow_ops.protocols.Side`."""
        return self.raw.store(asked(data, self.ask), mark)

    def known_raw(self, mark: str) -> str:
        """See :class:`~dataflow_ops.protocols.Side`."""
        return self.raw.known(mark)

    @contextmanager
    def blamed(self, step: str, partition: str) -> Iterator[None]:
        """Name the task whose output is damaged, so that the driver can have it made again."""
        try:
            yield
        except CorruptOutput as e:
            if step == BASE:
                raise BaseDamaged(
                    f"{e}; it is of the version that this run builds on: run the job in full mode"
                ) from e
            maker = self.index.finished(step).get(partition)
            e.producer_key = maker.key if maker is not None else ""
            raise

    def _pointer(self, step: str, kind: str) -> Input:
        item = self._declared(step, kind)
        if item.take != "pointer":
            raise StateError(
                f"step '{self.step.name}' looks up {step}.{kind}, which it declared as '{item.take}'"
            )
        return item

    def _declared(self, step: str, kind: str) -> Input:
        for item in self.step.inputs:
            if (item.step, item.kind) == (step, kind):
                return item
        raise StateError(f"step '{self.step.name}' reads {step}.{kind} without declaring it")


def batches(side: TaskSide, first_row: int, max_rows: int, max_bytes: int) -> Iterator[tuple[int, pa.Table]]:
    """Yield ``(first row, rows)`` of a map step's aligned inputs, joined side by side.

    The first aligned input is streamed; the others are narrow columns and are read whole.

    Raises:
        StateError: two aligned inputs differ in their number of rows.
    """
    aligned = [i for i in side.step.inputs if i.take == "aligned"]
    lead, others = aligned[0], aligned[1:]
    [piece] = side.pieces[(lead.step, lead.kind)]
    beside = []
    for item in others:
        table = side.table(item.step, item.kind)
        if table.num_rows != piece.output.rows:
            raise StateError(
                f"{item.step}.{item.kind} has {table.num_rows} rows for chunk {side.partition},"
                f" {lead.step}.{lead.kind} has {piece.output.rows}"
            )
        beside.append((item, table))
    if piece.output.rows == 0:
        # A chunk without documents still has its say once: scatter tells the fates of what parse rejected.
        empty = side.table(lead.step, lead.kind)
        for _, table in beside:
            for name in table.column_names:
                empty = empty.append_column(table.schema.field(name), table.column(name))
        yield 0, empty
        return
    row = first_row
    with side.blamed(lead.step, piece.partition):
        stream = side.chunks.rows(piece.output, lead.columns, first_row, verify=True)
    pace = Pace(max_rows, max_bytes)
    for rows in chain.from_iterable(map(pace.cut, stream.batches(max_rows, max_bytes))):
        joined = rows
        for _, table in beside:
            part = table.slice(row, rows.num_rows)
            for name in part.column_names:
                joined = joined.append_column(part.schema.field(name), part.column(name))
        yield row, joined
        row += rows.num_rows
