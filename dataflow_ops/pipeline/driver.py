"""Drives one run step by step: plan, skip what is done, run the rest. Both callers use it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from dataflow_ops.engine.context import RunContext
from dataflow_ops.engine.inputs import OutputIndex, plan_step
from dataflow_ops.engine.pool import Pool
from dataflow_ops.engine.runner import TaskOutcome
from dataflow_ops.errors import DataFlowError, LeaseLost, SourceChanged, StorageFull
from dataflow_ops.layers.ingest.numbers import numbers_for
from dataflow_ops.pipeline.flow import STEP_NAMES, STEPS, partitioning, partitions
from dataflow_ops.protocols import Step
from dataflow_ops.state.store import StateStore
from dataflow_ops.storage.chunk_store import ChunkStore
from dataflow_ops.storage.staging import Staging
from dataflow_ops.values import Claim, Counts, Numbers, TaskRecord, TaskSpec

MAX_RETRIES = 100
"""Most times that the dead letters of one task may be put back."""


class RunFailed(DataFlowError):
    """A step of the run could not be completed; what is done stays done, run again to go on."""


class RunPaused(DataFlowError):
    """A pause flag stopped the run at a batch boundary; resume goes on from there."""


class Reporter(Protocol):
    """Hears of progress."""

    def step_planned(self, step: str, tasks: int, skipped: int) -> None:
        """A step begins: so many tasks, of which so many are done already."""

    def task_ended(self, step: str, outcome: TaskOutcome) -> None:
        """One task of the step ended."""

    def step_ended(self, report: StepReport) -> None:
        """A step is complete."""

    def note(self, message: str) -> None:
        """Something a person should read."""


@dataclass(slots=True)
class StepReport:
    """What a step did in this run.

    Attributes:
        step: its name.
        tasks: how many partitions it has.
        skipped: tasks that were done already (by an earlier run or attempt).
        ran: tasks run now.
        dead: partitions given up.
        counts: over all tasks, skipped ones included.
        seconds: wall time now.
    """

    step: str
    tasks: int = 0
    skipped: int = 0
    ran: int = 0
    dead: list[str] = field(default_factory=list)
    counts: Counts = field(default_factory=Counts)
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Planned:
    """A step of which done and open are told apart.

    Attributes:
        todo: tasks to be run, in order.
        numbers: the run's ranges.
        report: counts of what was skipped.
    """

    todo: list[TaskSpec]
    numbers: Numbers
    report: StepReport


class Driver:
    """One run, seen from the process that coordinates it (or from one Airflow task).

    Args:
        context: the run.
        steps: all steps by name.
        state: open state store.
        chunks: chunk store on the run's root.
        pool: where tasks run.
        reporter: hears of progress.
    """

    def __init__(
        self,
        context: RunContext,
        steps: Mapping[str, Step],
        state: StateStore,
        chunks: ChunkStore,
        pool: Pool,
        reporter: Reporter,
    ) -> None:
        self.context = context
        self.steps = steps
        self.state = state
        self.chunks = chunks
        self.pool = pool
        self.reporter = reporter
        self.index = OutputIndex(state, context.run_id)
        self._generation = 0

    def numbers(self) -> Numbers:
        """The ranges that discover fixed for this run."""
        table = self.chunks.read(self.index.output("discover", "chunks", "all"), "", ("bytes",))
        return numbers_for(sum(table.column("bytes").to_pylist()))

    def chunk_ids(self) -> list[str]:
        """All chunks that discover listed, ascending."""
        table = self.chunks.read(self.index.output("discover", "chunks", "all"), "", ("chunk",))
        return sorted(table.column("chunk").to_pylist())

    def dead_chunks(self, before: str | None = None) -> list[str]:
        """Chunks given up by a chunk step (before the named one)."""
        names = STEP_NAMES[: STEP_NAMES.index(before)] if before else STEP_NAMES
        of_chunks = [name for name in names if partitioning(name) == "chunk"]
        return self.state.partitions_in_state(self.context.run_id, of_chunks, "DEAD")

    def _forget_vanished(self) -> None:
        """A run taken up again may list other chunks than before: those that are gone are not its own."""
        numbers, chunks = self.numbers(), self.chunk_ids()
        for other in STEP_NAMES[1:]:
            self.state.keep_partitions(self.context.run_id, other, partitions(other, numbers, chunks))

    def run_step(self, name: str, only: Sequence[str] | None = None) -> StepReport:
        """Bring a step's partitions (all, or some: a bundle) to their end.

        Raises:
            RunPaused: a pause flag was met.
            RunFailed: a reduce could not be completed.
            StorageFull: or another systemic fault.
        """
        for _ in range(self.context.settings.run.max_attempts + 1):
            damaged = self._run_step(name, only)
            if isinstance(damaged, StepReport):
                return damaged
            self._make_again(damaged, name)
        raise RunFailed(f"step '{name}': its input is damaged again and again; check the disk")

    def plan(self, name: str, only: Sequence[str] | None = None) -> Planned:
        """The tasks of a step, or of a bundle of it, enqueued, and which of them are still to be run."""
        step = self.steps[name]
        whole = name == "discover"
        numbers = Numbers(1, 1, 1, 1, 1) if whole else self.numbers()
        dead = [] if whole else self.dead_chunks(before=name)
        lost = set(dead)
        wanted = (
            ["all"] if whole else partitions(name, numbers, [c for c in self.chunk_ids() if c not in lost])
        )
        if only is not None:
            chosen = set(only)
            wanted = [p for p in wanted if p in chosen]
        specs = self._with_retries(plan_step(step, wanted, self.index, numbers, dead))
        self.state.enqueue(self.context.run_id, specs)
        report = StepReport(name, tasks=len(specs))
        return Planned(self._split(specs, report), numbers, report)

    def _run_step(self, name: str, only: Sequence[str] | None) -> StepReport | str:
        step = self.steps[name]
        planned = self.plan(name, only)
        todo, numbers, report = planned.todo, planned.numbers, planned.report
        self.reporter.step_planned(name, report.tasks, report.skipped)
        damaged = self._execute(name, todo, numbers, report) if todo else ""
        self.index.forget(name)
        if damaged:
            return damaged
        if name == "discover":
            self._forget_vanished()
        if report.dead and step.partitioned_by != "chunk":
            raise RunFailed(
                f"step '{name}': partition(s) {', '.join(report.dead[:5])} failed for good; without them"
                " duplicates could be missed, so the run stops here. `dataflow dead-letters list` shows why."
            )
        self.reporter.step_ended(report)
        return report

    def _with_retries(self, specs: list[TaskSpec]) -> list[TaskSpec]:
        """A new key for every time that a task's dead letters were put back: what was committed stays."""
        for _ in range(MAX_RETRIES):
            again = self.state.keys_to_retry([s.key for s in specs])
            if not again:
                return specs
            specs = [
                replace(s, key=hashlib.sha256(f"{s.key} retried".encode()).hexdigest())
                if s.key in again
                else s
                for s in specs
            ]
        raise RunFailed(
            f"dead letters of step '{specs[0].step}' were put back {MAX_RETRIES} times; drop them instead"
        )

    def _split(self, specs: Sequence[TaskSpec], report: StepReport) -> list[TaskSpec]:
        """Tell done from open: one query, one listing. A success whose files are gone is a ghost."""
        records = self.state.records([s.key for s in specs])
        done = [r for r in records.values() if r.state == "SUCCESS"]
        listing = self.chunks.listing(f"data/{specs[0].step}/") if done else {}
        present = {r.key for r in done if self.chunks.check_present(r.outputs, listing)}
        todo = []
        for spec in specs:
            record = records[spec.key]
            if record.state == "SUCCESS" and spec.key in present:
                report.skipped += 1
                report.counts += record.counts or Counts()
            elif record.state == "DEAD":
                report.dead.append(spec.partition)
            else:
                if record.state == "SUCCESS":
                    self.reporter.note(
                        f"{spec.step}/{spec.partition}: recorded as done, but its files are gone or changed;"
                        " made again"
                    )
                    self.state.ghost(spec.key, record.epoch)
                todo.append(spec)
        return todo

    def _execute(self, name: str, todo: list[TaskSpec], numbers: Numbers, report: StepReport) -> str:
        paused = False
        damaged = ""
        while todo and not paused and not damaged:
            again: list[TaskSpec] = []
            for outcome in self.pool.run(todo, numbers, self._generation):
                if outcome.ending == "failed" and outcome.message.startswith("WorkerDied"):
                    outcome = self._record_death(outcome)
                self.reporter.task_ended(name, outcome)
                report.seconds += outcome.seconds
                if outcome.ending in ("done", "skipped"):
                    report.ran += outcome.ending == "done"
                    report.skipped += outcome.ending == "skipped"
                    report.counts += outcome.counts or Counts()
                elif outcome.ending == "paused":
                    paused = True
                elif outcome.systemic:
                    raise StorageFull(f"{name}/{outcome.spec.partition}: {outcome.message}")
                elif outcome.message.startswith("SourceChanged"):
                    Staging(self.chunks.blobs, outcome.spec.key).clear()
                    raise SourceChanged(f"{name}/{outcome.spec.partition}: {outcome.message}")
                elif outcome.damaged:
                    damaged = outcome.damaged
                elif outcome.ending == "dead":
                    report.dead.append(outcome.spec.partition)
                else:
                    again.append(outcome.spec)
            todo = again
        if paused:
            raise RunPaused(f"paused in step '{name}'")
        return damaged

    def _record_death(self, outcome: TaskOutcome) -> TaskOutcome:
        """A worker that died could not say so itself: use up its attempt."""
        record = self.state.records([outcome.spec.key])[outcome.spec.key]
        if record.state != "RUNNING":
            return outcome  # it had not claimed yet, or had just committed: the next look will tell
        claim = Claim(record.key, record.epoch, record.attempt, record.owner or "")
        kind, _, message = outcome.message.partition(": ")
        try:
            state = self.state.fail(claim, kind, message, "", self.context.settings.run.max_attempts)
        except LeaseLost:
            return outcome
        return TaskOutcome(outcome.spec, "dead" if state == "DEAD" else "failed", outcome.message)

    def _make_again(self, producer_key: str, reader: str) -> None:
        """Rerun the task whose output was found damaged, and what lies between it and the reader."""
        record: TaskRecord = self.state.records([producer_key])[producer_key]
        self.reporter.note(f"{record.step}/{record.partition}: stored bytes are damaged; made again")
        self.state.ghost(producer_key)
        self.index.forget()
        self._generation += 1
        first = STEP_NAMES.index(record.step)
        for name, _, _ in STEPS[first : STEP_NAMES.index(reader)]:
            self.run_step(name)
