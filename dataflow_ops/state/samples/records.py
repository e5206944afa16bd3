"""Rows of the sample tables as frozen values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from dataflow_ops.state.records import CursorRecord

CURSOR_TYPE: Final = "samples"
"""``task_type`` of the cursors of sample tasks; ``stage`` is the kind of the task."""
LOCK_SAMPLES: Final = 40
"""Advisory lock: two who ask for the same new task or file don't both insert it."""
KINDS: Final = ("import", "clean", "augment", "export", "delete", "restore")
"""What a sample task may do."""


@dataclass(frozen=True, slots=True)
class SampleTask:
    """One long piece of work on the rows of a data set. Times are seconds since 1970.

    Attributes:
        task_id: chosen by whoever asks.
        dataset: whose files it works on.
        kind: one of :data:`KINDS`.
        state: PENDING, RUNNING, PAUSED, SUCCESS, FAILED, CANCELLED.
        settings: all that decides the result.
        files: ids in the order in which they are read.
        highest_id: of ``sample`` when the task began; nothing above it is read. None before, and for imports.
        snapshot_rows: turns of its files up to there; processing more is an alarm.
        counts: name → sum so far.
        attempt: times that it was begun; a pause costs none.
        epoch: of the last claim.
        owner: who holds or held it.
        silent: RUNNING, but its owner has not been heard for longer than its lease.
        error_type: class of the last error.
        error_message: for a person.
        who: who asked for it.
        created_at: when it was asked for.
        started_at: when it was first begun.
        ended_at: when it ended or paused.
        updated_at: its last sign of life.
    """

    task_id: str
    dataset: str
    kind: str
    state: str
    settings: Mapping[str, Any]
    files: tuple[str, ...]
    highest_id: int | None
    snapshot_rows: int | None
    counts: Mapping[str, float]
    attempt: int
    epoch: int
    owner: str | None
    silent: bool
    error_type: str | None
    error_message: str | None
    who: str
    created_at: float
    started_at: float | None
    ended_at: float | None
    updated_at: float


@dataclass(frozen=True, slots=True)
class Claim:
    """The right to work on a task, until another claim raises its epoch.

    Attributes:
        task: as it stood when it was claimed.
        epoch: of this claim.
        owner: who holds it.
        lease_s: seconds of silence after which others may take it.
        cursor: where to go on; None from the start.
    """

    task: SampleTask
    epoch: int
    owner: str
    lease_s: float
    cursor: CursorRecord | None
