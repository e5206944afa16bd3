"""Frozen values that travel between rooms: references, counts, results. No behaviour beyond checks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from dataflow_ops.errors import ConservationError

if TYPE_CHECKING:  # state is opened by tasks that touch no rows, and in parents of forked tasks
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Slice:
    """One consumer's part of an output file: a byte range that is a whole Parquet file by itself.

    Attributes:
        name: ``""`` for the whole output, else the consumer's partition (a prefix number or chunk id).
        offset: first byte inside the output file.
        length: bytes; 0 means no rows and nothing to read.
        sha256: hex digest of exactly these bytes; ``""`` when ``length`` is 0.
        rows: rows inside.
    """

    name: str
    offset: int
    length: int
    sha256: str
    rows: int


@dataclass(frozen=True, slots=True)
class Output:
    """One published file of a task, as recorded in state.

    Attributes:
        kind: which of the step's outputs it is (``verdicts``, ``rejects``, ``shard/…``).
        uri: path relative to the storage root, with forward slashes.
        size: bytes.
        mtime_ns: modification time in nanoseconds when it was published.
        sha256: hex digest of the whole file.
        rows: rows inside, over all slices.
        slices: in ascending order of name; one unnamed slice where the output is not sliced.
        attributes: small facts a consumer needs without opening the file (tokens of a shard, …).
    """

    kind: str
    uri: str
    size: int
    mtime_ns: int
    sha256: str
    rows: int
    slices: tuple[Slice, ...] = ()
    attributes: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Counts:
    """What became of the records that a step took in: each is in exactly one of four places.

    Attributes:
        documents_in: input records.
        kept: went on.
        rejected: refused by a rule, or removed as a duplicate.
        dead: could not be processed (dead letters).
        skipped: records that were not this step's business, by reason (``rejected_before``).
        documents_out: rows written for the next step; differs from ``kept`` where one record gives several.
        bytes_in: payload bytes read (text or raw), for rates.
        tokens_out: tokens behind ``documents_out`` where known, else 0.
    """

    documents_in: int = 0
    kept: int = 0
    rejected: int = 0
    dead: int = 0
    skipped: Mapping[str, int] = field(default_factory=dict)
    documents_out: int = 0
    bytes_in: int = 0
    tokens_out: int = 0

    def __add__(self, other: Counts) -> Counts:
        skipped = dict(self.skipped)
        for reason, n in other.skipped.items():
            skipped[reason] = skipped.get(reason, 0) + n
        return Counts(
            self.documents_in + other.documents_in,
            self.kept + other.kept,
            self.rejected + other.rejected,
            self.dead + other.dead,
            skipped,
            self.documents_out + other.documents_out,
            self.bytes_in + other.bytes_in,
            self.tokens_out + other.tokens_out,
        )

    def check(self, where: str) -> None:
        """Raise :class:`ConservationError` unless every input record is accounted for exactly once."""
        skipped = sum(self.skipped.values())
        if self.documents_in != self.kept + self.rejected + self.dead + skipped:
            raise ConservationError(
                f"{where}: {self.documents_in} records in, but {self.kept} kept + {self.rejected} rejected"
                f" + {self.dead} dead + {skipped} skipped"
            )


@dataclass(frozen=True, slots=True)
class FileOut:
    """A finished file in the task's scratch folder, to be published as it is (a shard).

    Attributes:
        kind: unique within the task, e.g. ``shard/domain=web/part-00017-of-01024.parquet``.
        path: where it lies now.
        rows: rows inside.
        attributes: recorded beside it (tokens, partition values).
    """

    kind: str
    path: Path
    rows: int
    attributes: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StepResult:
    """What a step gives back for one batch, or for one stretch of a reduce.

    Attributes:
        outputs: kind -> rows to append. Tables of sliced kinds carry a ``slice`` column (string: the
            consumer's partition name), which is not written.
        counts: of this batch.
        rule_hits: rule name -> records rejected by it in this batch.
        metrics: name -> number; summed over batches and over tasks.
        files: finished files to publish.
        cursor: for steps that read their own input (parse): the position after this result.
    """

    outputs: Mapping[str, pa.Table] = field(default_factory=dict)
    counts: Counts = field(default_factory=Counts)
    rule_hits: Mapping[str, int] = field(default_factory=dict)
    metrics: Mapping[str, float] = field(default_factory=dict)
    files: tuple[FileOut, ...] = ()
    cursor: int | None = None


@dataclass(frozen=True, slots=True)
class Numbers:
    """How many ranges each reduce is cut into: powers of two from the input's bytes, fixed by discover."""

    key_prefixes: int
    band_prefixes: int
    blocks: int
    root_prefixes: int
    shard_groups: int


@dataclass(frozen=True, slots=True)
class TaskSpec:
    """One unit of work: a step applied to one partition.

    Attributes:
        key: hex SHA-256 over step, step fingerprint, partition and the digests of the slices it reads.
        step: step name.
        layer: layer name.
        partition: chunk id (16 hex digits), prefix number (decimal text) or ``all``.
    """

    key: str
    step: str
    layer: str
    partition: str


@dataclass(frozen=True, slots=True)
class Claim:
    """The right to run one task, fenced by its epoch.

    Attributes:
        key: the task's key.
        epoch: bumped by every claim; each later move names it, so a late attempt loses.
        attempt: 1 for the first try; failures, not pauses, use it up.
        owner: who holds it (host, process id).
    """

    key: str
    epoch: int
    attempt: int
    owner: str


@dataclass(frozen=True, slots=True)
class TaskRecord:
    """What state knows of a task."""

    key: str
    step: str
    layer: str
    partition: str
    state: str
    attempt: int
    epoch: int
    owner: str | None = None
    heartbeat_at: float | None = None
    error_type: str | None = None
    error_message: str | None = None
    error_trace: str | None = None
    outputs: tuple[Output, ...] = ()
    counts: Counts | None = None
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A record, a file's rest, or a chunk that could not be processed.

    Attributes:
        level: ``document``, ``file`` or ``chunk``.
        step: where it died.
        source_id: the source it belongs to.
        path: path inside the source.
        position: byte offset in the decompressed file (Parquet: row number); -1 for whole files.
        doc_id: hex id, or ``""``.
        error: class name from ``errors.py``.
        message: for a person.
        parser: parser name, or ``""``.
        media_type: or ``""``.
        host: host of the url, or ``""``.
    """

    level: str
    step: str
    source_id: str
    path: str
    position: int
    doc_id: str
    error: str
    message: str
    parser: str = ""
    media_type: str = ""
    host: str = ""
