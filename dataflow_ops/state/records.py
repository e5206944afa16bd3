"""Rows of the state database as frozen values, where ``dataflow_ops.values`` has none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from dataflow_ops.values import Counts, DeadLetter

INCREMENTAL = "incremental"
"""Mode of runs that take one interval's documents."""
COMPACT = "compact"
"""Mode of runs that put the versions of a chain together into one."""


@dataclass(frozen=True, slots=True)
class RunRecord:
    """One run. Times are seconds since 1970; ``settings`` is the job as JSON text.

    ``origin`` is JSON of what started the run (``{"kind": "airflow", "dag_id": …, "run_id": …}``); ``None``
    means the command line.
    """

    run_id: str
    dataset: str
    job_name: str
    mode: str
    settings: str
    data_date: str | None
    promote: bool
    urgent: bool
    until_layer: str | None
    origin: str | None
    state: str
    detail: str | None
    created_at: float
    started_at: float | None
    ended_at: float | None
    updated_at: float


@dataclass(frozen=True, slots=True)
class PauseFlag:
    """A wish to pause. ``scope`` is ``run``, ``dataset`` or ``all`` (with an empty ``target``)."""

    scope: str
    target: str
    who: str
    why: str
    created_at: float

    @property
    def told(self) -> str:
        """For people: by whom, and why where they said so; and what it covers beyond one run."""
        covers = {"run": "", "dataset": f", with all runs of {self.target}", "all": ", with all runs"}
        why = f": {self.why}" if self.why else ""
        return f"paused by {self.who or 'somebody'}{covers[self.scope]}{why}"


@dataclass(frozen=True, slots=True)
class CursorRecord:
    """How far somebody got.

    Attributes:
        file_id: file in which the offset counts; ``None`` where there are no files.
        offset: first row (or byte, or sub-range) that is not yet done.
        processed_rows: rows done over all files.
        detail: whatever else the owner needs to go on.
    """

    file_id: str | None
    offset: int
    processed_rows: int
    detail: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LetterRecord:
    """A dead letter with its place in state: ``open``, ``retried`` or ``dropped``."""

    id: str
    task_key: str
    state: str
    created_at: float
    letter: DeadLetter


@dataclass(frozen=True, slots=True)
class VersionRecord:
    """A published version of a data set; ``mode`` and ``data_date`` are those of the run that made it.

    ``base`` is the version that it builds on: its documents are those of the base and its own. Of a compacted
    one it is the version whose documents it holds, all of them in shards of its own: nobody reads the base's.
    """

    dataset: str
    version_id: str
    manifest_sha256: str
    manifest_uri: str
    run_id: str
    state: str
    created_at: float
    is_current: bool
    mode: str = "full"
    data_date: str | None = None
    base: str | None = None

    @property
    def is_increment(self) -> bool:
        """Whether it holds one interval's documents and builds on nothing, so that it can't be current."""
        return self.mode == INCREMENTAL and self.base is None

    @property
    def is_compact(self) -> bool:
        """Whether it holds the documents of its base and those below it in shards of its own."""
        return self.mode == COMPACT


@dataclass(frozen=True, slots=True)
class StepMetrics:
    """One step of one run, summed over its finished tasks.

    Attributes:
        step: name.
        layer: name.
        tasks: state → tasks in it, over all tasks of the step.
        counts: sum over tasks in SUCCESS.
        metrics: name → sum over tasks in SUCCESS.
        seconds: worker seconds over tasks in SUCCESS (not wall time).
        first_start: earliest start of a task, seconds since 1970.
        last_end: latest end of a task.
    """

    step: str
    layer: str
    tasks: Mapping[str, int]
    counts: Counts
    metrics: Mapping[str, float]
    seconds: float
    first_start: float | None
    last_end: float | None
