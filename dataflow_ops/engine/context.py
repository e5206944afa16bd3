"""What every process of a run needs to know, in one picklable value."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from dataflow_ops.engine.base_records import BasePart
from dataflow_ops.engine.owner import owner_is_gone as owner_is_gone
from dataflow_ops.engine.owner import owner_name as owner_name
from dataflow_ops.protocols import Step
from dataflow_ops.settings import JobSettings
from dataflow_ops.state.database import PATIENCE_S
from dataflow_ops.storage.disk import Disk
from dataflow_ops.storage.opening import Root


class Hooks(Protocol):
    """Called around every durable action; tests pass one that kills the process there."""

    def reached(self, point: str) -> None:
        """``point`` is ``<before|after> <stage|publish|commit|pointer> <step>``."""


@dataclass(frozen=True, slots=True)
class NoHooks:
    """The hooks of a normal run: nothing happens."""

    def reached(self, point: str) -> None:
        """Do nothing."""


@dataclass(frozen=True, slots=True)
class RunContext:
    """Where a run's state and bytes are, and what it is to do.

    Attributes:
        run_id: the run's name in state.
        settings: the job, overrides merged.
        root: storage root: data, staging, indexes, versions.
        state_url: SQLAlchemy URL.
        lease_s: a task whose owner has not been heard of for so long may be claimed by another.
        batch_rows: most rows in a batch; never shapes output.
        batch_bytes: most payload bytes in a batch.
        stage_every_s: work between two staged checkpoints of one task.
        hooks: see :class:`Hooks`.
        redis_url: where pause flags have a fast copy; ``None`` for none.
        patience_s: how long work waits for a state database that is away.
        urgent: its workers keep their full share of the processors; those of other runs stand back.
        base: versions that the run builds on, the lowest first.
        disk: the operations that durability rests on; tests pass one that fails on purpose.
    """

    run_id: str
    settings: JobSettings
    root: Root
    state_url: str
    lease_s: float = 60.0
    batch_rows: int = 2_000
    batch_bytes: int = 64 << 20
    stage_every_s: float = 5.0
    redis_url: str | None = None
    patience_s: float = PATIENCE_S
    urgent: bool = False
    base: tuple[BasePart, ...] = ()
    hooks: Hooks = field(default_factory=NoHooks)
    disk: Disk = field(default_factory=Disk)


StepBuilder = Callable[[RunContext], Mapping[str, Step]]
"""Builds a run's steps by name inside the process that runs them; must be importable by name."""
