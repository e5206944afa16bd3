"""The seams. A step sees the world only through :class:`Side`; the engine sees steps only through these."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Literal, Protocol, runtime_checkable

import pyarrow as pa

from dataflow_ops.values import Numbers, StepResult

Partitioning = Literal["all", "chunk", "key_prefix", "band_prefix", "block", "root_prefix", "shard_group"]
Take = Literal["aligned", "same", "slice", "all", "pointer"]


@dataclass(frozen=True, slots=True)
class Input:
    """What a step reads of another step's output.

    Attributes:
        step: producer.
        kind: which of its outputs.
        take: ``aligned``: the same chunk's rows, joined side by side into the batches of a map step ·
            ``same``: the same partition's whole output · ``slice``: the slice named like this task's
            partition, from every partition of the producer · ``all``: every partition's whole output ·
            ``pointer``: read on demand by address; not part of the key, because what is read is
            determined by the other inputs and checked against a hash they carry.
        columns: projection; empty reads all.
    """

    step: str
    kind: str
    take: Take
    columns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class OutputSpec:
    """What a step writes.

    Attributes:
        kind: name of the output.
        schema: columns, without the ``slice`` column.
        slice_by: the partitioning of the consumer when the output is cut into slices, else ``""``.
            Tables for a sliced kind carry a string column ``slice`` with the consumer's partition.
    """

    kind: str
    schema: pa.Schema
    slice_by: Partitioning | Literal[""] = ""


class Side(Protocol):
    """All I/O of a step, handed in by the engine."""

    @property
    def partition(self) -> str:
        """This task's partition: chunk id, prefix number or ``all``."""

    @property
    def numbers(self) -> Numbers:
        """How many ranges each reduce is cut into."""

    @property
    def scratch(self) -> Path:
        """A private folder on local disk, removed when the task ends."""

    @property
    def memory_budget(self) -> int:
        """Bytes that this worker may use at its peak."""

    def tables(self, step: str, kind: str) -> Iterator[tuple[str, pa.Table]]:
        """Yield ``(producer's partition, rows)`` in ascending order of partition; empty slices left out."""

    def table(self, step: str, kind: str) -> pa.Table:
        """All rows of :meth:`tables` in one table (with the producer's schema when there are none)."""

    def stream(self, step: str, kind: str) -> Iterator[pa.Table]:
        """All rows of :meth:`tables` in the same order, in bounded tables."""

    def lookup(self, step: str, kind: str, partition: str, slice_name: str = "") -> pa.Table:
        """Rows of one slice of one producer partition, for inputs declared ``pointer``."""

    def slices(self, step: str, kind: str, name: str) -> Iterator[pa.Table]:
        """Rows of the slices so named of all producer partitions, for inputs declared ``pointer``."""

    def rows(self, step: str, kind: str, partition: str, rows: Sequence[int]) -> Iterator[pa.Table]:
        """Some rows, by number and ascending, of an unsliced output declared ``pointer``, in bounded tables.

        Only the row groups that hold one are read; their bytes are not hashed, so the caller must be able to
        tell whether a row is the one that it means.
        """

    def open_source(self, source_id: str, path: str, location: str = "") -> BinaryIO:
        """Raw bytes of a source file (``location`` as recorded by fetch), seekable."""

    def store_raw(self, data: Iterable[bytes], mark: str = "") -> tuple[str, str, int]:
        """Store fetched bytes durably; return ``(location, hex SHA-256, size)``.

        ``mark`` says what they are of, in all that tells whether it changed; ``""`` for what nothing tells.
        """

    def known_raw(self, mark: str) -> str:
        """Where bytes of that mark were stored, in whatever run; ``""`` where none were."""

    def checkpoint(self) -> None:
        """To be called every second or so by whatever computes for long between two results.

        Cheap enough for every pair of texts compared. The methods above do it themselves, and so do files
        that :meth:`open_source` opened, when they are read.

        Raises:
            Paused: somebody asked for a pause; to be let through.
            LeaseLost: another attempt owns the task; to be let through.
        """


class Step(Protocol):
    """What the engine needs to know of every step.

    A step is built once per worker from the job's settings and must not hold state between tasks.
    """

    @property
    def name(self) -> str:
        """Unique; part of keys and file names."""

    @property
    def layer(self) -> str:
        """The layer it belongs to."""

    @property
    def partitioned_by(self) -> Partitioning:
        """What its tasks are cut by."""

    @property
    def inputs(self) -> tuple[Input, ...]:
        """What it reads."""

    @property
    def outputs(self) -> tuple[OutputSpec, ...]:
        """What it writes."""

    def fingerprint(self) -> Mapping[str, object]:
        """Everything that shapes the output besides the inputs: settings used, versions of the step, its
        rules, parsers and kernels, identities of models and Unicode tables. JSON-able. Never workers,
        batch sizes, priorities or memory.
        """


@runtime_checkable
class MapStep(Step, Protocol):
    """A step that turns aligned rows into rows; the engine drives it batch by batch."""

    def open(self, side: Side) -> object:
        """Called once per task: load side inputs; what it returns is handed to :meth:`process`."""

    def process(self, batch: pa.Table, first_row: int, state: object) -> StepResult:
        """Process the rows ``first_row … first_row + batch.num_rows`` of the chunk.

        Output bytes must not depend on how rows were cut into batches.
        """


@runtime_checkable
class RunStep(Step, Protocol):
    """A step that reads its inputs itself: a reduce, or a reader of raw files."""

    def run(self, side: Side, start: int) -> Iterator[StepResult]:
        """Yield results in a fixed order. ``start`` is the last ``cursor`` staged by an earlier attempt
        (0 at first): results up to it must not be given again. Steps that never set a cursor always
        start from 0.
        """
