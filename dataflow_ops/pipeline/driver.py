"""Drives one run step by step: plan, skip what is done, run the rest. Both callers use it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

from dataflow_ops.engine.base_records import record_source
from dataflow_ops.engine.context import RunContext, owner_is_gone
from dataflow_ops.engine.inputs import BySource, OutputIndex, plan_step, retried
from dataflow_ops.engine.pool import Pool
from dataflow_ops.engine.runner import TaskOutcome
from dataflow_ops.engine.watching import pause_watch
from dataflow_ops.errors import CommitUnknown, CorruptOutput, DatabaseUnavailable, LeaseLost, SourceChanged
from dataflow_ops.layers.ingest.numbers import numbers_for
from dataflow_ops.pipeline.complete import need_inputs
from dataflow_ops.pipeline.flow import ONLY_ABOVE, STEP_NAMES, partitioning, partitions
from dataflow_ops.pipeline.tally import Planned, RunFailed, RunPaused, StepReport, Tally, error_of
from dataflow_ops.protocols import Step
from dataflow_ops.state.database import no_collections
from dataflow_ops.state.lookup import Standings
from dataflow_ops.state.store import StateStore
from dataflow_ops.storage.chunk_store import ChunkStore, Listing
from dataflow_ops.storage.staging import Staging
from dataflow_ops.values import Claim, Numbers, TaskSpec

__all__ = ["Driver", "Planned", "Reporter", "RunFailed", "RunPaused", "StepReport"]

MAX_RETRIES = 100
"""Most times that the dead letters of one task may be put back."""
MOST_BREAKS = 5
"""So often a step goes on by itself after a connection to the state database broke in the midst of it."""
LIST_DAMAGED = "the stored list of sources is damaged: start the run again, so that it is listed anew"


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


class Driver:
    """One run, seen from the process that coordinates it (or from one Airflow task).

    Args:
        context: the run.
        steps: all steps by name.
        state: open state store.
        chunks: chunk store on the run's root.
        pool: where tasks run.
        reporter: hears of progress.
        has_listing: whether ``discover`` among ``steps`` knows what the sources hold.
    """

    def __init__(
        self,
        context: RunContext,
        steps: Mapping[str, Step],
        state: StateStore,
        chunks: ChunkStore,
        pool: Pool,
        reporter: Reporter,
        has_listing: bool = False,
    ) -> None:
        self.context = context
        self.steps = steps
        self.state = state
        self.chunks = chunks
        self.pool = pool
        self.reporter = reporter
        self.has_listing = has_listing
        self._pause = pause_watch(state.hasty(), context)
        self._unclaimed: Counter[str] = Counter()
        self._generation = 0
        self._look_up()

    def numbers(self) -> Numbers:
        """The ranges that discover fixed for this run; those of the version that it builds on, if any."""
        interval = self.context.settings.interval
        return numbers_for(self.input_bytes(), None if interval is None else interval.ranges)

    def input_bytes(self) -> int:
        """Unpacked bytes of the run's input."""
        return sum(self._discovered("bytes"))

    def chunk_ids(self) -> list[str]:
        """All chunks that discover listed, ascending."""
        return sorted(self._discovered("chunk"))

    def _sources(self, step: Step) -> dict[str, str]:
        """Chunk -> its source, for steps whose settings differ by source."""
        if not isinstance(step, BySource):
            return {}
        return dict(zip(self._discovered("chunk"), self._discovered("source_id"), strict=True))

    def _discovered(self, column: str) -> list[Any]:
        output = self.index.output("discover", "chunks", "all")
        try:
            table = self.chunks.read(output, "", (column,), verify=True)
        except CorruptOutput as e:
            if not self.has_listing:
                raise RunFailed(LIST_DAMAGED) from e
            e.producer_key = self.index.finished("discover")["all"].key
            raise
        return list(table.column(column).to_pylist())

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

    def take_up(self) -> None:
        """Mark a run that had failed or was paused as running again, unless a pause flag holds.

        Raises:
            RunPaused: one does; nothing was begun.
        """
        flag = self.state.take_up(self.context.run_id)
        if flag is not None:
            raise RunPaused(f"{flag.told}; nothing was begun", flag)

    def _stop_if_paused(self, name: str) -> None:
        """Between tasks: stop where a flag holds, and leave the run PAUSED unless others still work on it.

        A run that was marked so while nothing ran, by a flag that is gone again, goes on as RUNNING.
        """
        flag = self.state.take_up(self.context.run_id)
        if flag is not None:
            raise RunPaused(f"{flag.told}, in step '{name}'", flag)

    def take_over(self, context: RunContext, steps: Mapping[str, Step]) -> None:
        """Go on with the run as it is now: it has learned what it builds on."""
        self.context, self.steps = context, steps
        self._look_up()
        self.pool.renew(context)

    def _look_up(self) -> None:
        self.index = OutputIndex(record_source(self.state, self.context.base), self.context.run_id)

    def forget(self) -> None:
        """Earlier steps are made again: no process may go on with what it knows of their outputs."""
        self.index.forget()
        self._generation += 1

    def run_step(self, name: str, only: Sequence[str] | None = None) -> StepReport:
        """Bring a step's partitions (all, or some: a bundle) to their end.

        Raises:
            RunPaused: a pause flag was met.
            RunFailed: a reduce could not be completed.
            SourceChanged: a source is no longer what was listed.
            StorageFull: or another systemic fault.
        """
        met: Counter[str] = Counter()
        breaks = 0
        row = self.state.get_run(self.context.run_id)
        self.pool.set_urgent(row is not None and row.urgent)
        while True:
            if self._pause.flag() is not None or (row is not None and row.state == "PAUSED"):
                self._stop_if_paused(name)
            try:
                done = self._run_step(name, only)
            except CorruptOutput as e:
                if not e.producer_key:
                    raise
                done = [e.producer_key]
            except (DatabaseUnavailable, CommitUnknown) as e:
                breaks += 1
                if breaks > MOST_BREAKS or not self.context.patience_s:
                    raise
                # Waits for the database; where it stays away, that ends the run.
                row = self.state.get_run(self.context.run_id)
                self.reporter.note(f"step '{name}' goes on after a fault of the state database: {e}")
                continue
            if isinstance(done, StepReport):
                # Others may have stopped meanwhile, for a flag that left nothing to stop for here.
                self.state.settle_pause(self.context.run_id)
                return done
            met.update(done)
            if max(met.values()) > self.context.settings.run.max_attempts:
                raise RunFailed(f"step '{name}': its input is damaged again and again; check the disk")
            self.make_again(done, name)

    def discover(self) -> StepReport:
        """Run ``discover`` in this process: it alone holds the listing.

        Raises:
            RunFailed: this process has listed nothing.
        """
        if not self.has_listing:
            raise RunFailed(LIST_DAMAGED)
        steps = self.steps
        with Pool(self.context, lambda _: steps, 0) as pool:
            self.pool, before = pool, self.pool
            try:
                return self.run_step("discover")
            finally:
                self.pool = before

    def plan(self, name: str, only: Sequence[str] | None = None) -> Planned:
        """The tasks of a step, or of a bundle of it, enqueued, and which of them are still to be run."""
        with no_collections():
            return self._plan(name, only)

    def _plan(self, name: str, only: Sequence[str] | None) -> Planned:
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
        if name in ONLY_ABOVE and not self.context.base:
            wanted = []
        if wanted and not whole:
            need_inputs(self, step, numbers, lost)
        specs = self._with_retries(plan_step(step, wanted, self.index, numbers, dead, self._sources(step)))
        self.state.enqueue(self.context.run_id, specs)
        report = StepReport(name, tasks=len(specs))
        return Planned(self._split(specs, report), numbers, report)

    def _run_step(self, name: str, only: Sequence[str] | None) -> StepReport | list[str]:
        step = self.steps[name]
        planned = self.plan(name, only)
        todo, numbers, report = planned.todo, planned.numbers, planned.report
        self.reporter.step_planned(name, report.tasks, report.skipped)
        damaged = self._execute(name, todo, numbers, report) if todo else []
        self.index.forget(name)
        if damaged:
            return damaged
        if name == "discover":
            self._forget_vanished()
        if report.dead and step.partitioned_by != "chunk":
            raise RunFailed(
                f"step '{name}': partition(s) {', '.join(report.dead[:5])} failed for good; without them"
                " the result would not be whole, so the run stops here. `dataflow dead-letters list` shows"
                " why; once that is mended, `dataflow dead-letters retry --all` and run again."
            )
        self.reporter.step_ended(report)
        return report

    def _with_retries(self, specs: list[TaskSpec]) -> list[TaskSpec]:
        """A new key for every time that a task's dead letters were put back: what was committed stays."""
        for _ in range(MAX_RETRIES):
            again = self.state.keys_to_retry([s.key for s in specs], self.context.run_id)
            if not again:
                return specs
            specs = [replace(s, key=retried(s.key)) if s.key in again else s for s in specs]
        raise RunFailed(
            f"dead letters of step '{specs[0].step}' were put back {MAX_RETRIES} times; drop them instead"
        )

    def _split(self, specs: Sequence[TaskSpec], report: StepReport) -> list[TaskSpec]:
        """Tell done from open: one look at state, one listing. A success whose files are gone is a ghost."""
        known = self.state.standings([s.key for s in specs])
        lost = self._lost(specs[0].step, known) if known.stored else set()
        todo, done = [], []
        for spec in specs:
            state = known.state(spec.key)
            if state == "SUCCESS" and spec.key not in lost:
                done.append(spec.key)
            elif state == "DEAD":
                report.dead.append(spec.partition)
            else:
                if state == "SUCCESS":
                    self.reporter.note(
                        f"{spec.step}/{spec.partition}: recorded as done, but its files are gone or changed;"
                        " made again"
                    )
                    self.state.ghost(spec.key, known.epoch(spec.key))
                todo.append(spec)
        report.skipped += len(done)
        report.counts += known.counts(done)
        return todo

    def _lost(self, step: str, known: Standings) -> set[str]:
        """Keys of finished tasks of which an output is gone or broken."""
        listing = self.chunks.listing(f"data/{step}/")
        doubtful = _doubtful(known, listing)
        if doubtful:
            # Only now: who needs nothing of the cold tier goes on while it is away.
            listing = self.chunks.cold_listing(f"data/{step}/") | listing
            doubtful = _doubtful(known, listing)
        records = self.state.records(sorted(doubtful)).values()
        return {r.key for r in records if not self.chunks.check_present(r.outputs, listing)}

    def _execute(self, name: str, todo: list[TaskSpec], numbers: Numbers, report: StepReport) -> list[str]:
        """Run tasks until all have ended or one ends in a way that concerns the whole step."""
        tally = Tally(report)
        left = {spec.key for spec in todo}

        def halted() -> bool:
            return tally.stops or self._pause.flag() is not None

        while todo:
            if self._pause.flag() is not None:
                self._stop_if_paused(name)
            tally.paused = False
            for outcome in self.pool.run(todo, numbers, self._generation, halted):
                if outcome.ending == "failed" and outcome.message.startswith("WorkerDied"):
                    outcome = self._record_death(outcome)
                self.reporter.task_ended(name, outcome)
                tally.add(outcome)
                if outcome.ending in ("done", "skipped", "dead"):
                    left.discard(outcome.spec.key)
            if tally.broken:
                break
            # Those that failed are tried again; paused ones too, where the flag was taken back meanwhile.
            todo = [spec for spec in todo if spec.key in left]
        if tally.fault is not None:
            raise error_of(tally.fault)
        if tally.changed is not None:
            Staging(self.chunks.blobs, tally.changed.spec.key).clear()
            self._fetch_again(tally.changed.spec.partition)
            raise SourceChanged(f"{name}/{tally.changed.spec.partition}: {tally.changed.message}")
        return list(tally.damaged)

    def _fetch_again(self, chunk: str) -> None:
        """Put what was fetched of a changed chunk aside: size and time may be as listed, so that listing it
        again would find the same key and skip it.
        """
        record = self.index.finished("fetch").get(chunk)
        if record is not None and self.state.ghost(record.key, record.epoch):
            for output in record.outputs:
                self.chunks.blobs.quarantine(output.uri)

    def _record_death(self, outcome: TaskOutcome) -> TaskOutcome:
        """A worker that died could not say so itself: use up its attempt."""
        record = self.state.records([outcome.spec.key])[outcome.spec.key]
        if record.state != "RUNNING" or not owner_is_gone(record.owner):
            # It had not claimed yet, or had just committed, or another run holds the task: look again.
            self._unclaimed[record.key] += 1
            if self._unclaimed[record.key] > self.context.settings.run.max_attempts:
                raise RunFailed(
                    f"{record.step}/{record.partition}: workers end before they begin ({outcome.message});"
                    " is there enough memory for so many?"
                )
            return outcome
        claim = Claim(record.key, record.epoch, record.attempt, record.owner or "")
        kind, _, message = outcome.message.partition(": ")
        try:
            state = self.state.fail(claim, kind, message, "", self.context.settings.run.max_attempts)
        except LeaseLost:
            return outcome
        return TaskOutcome(outcome.spec, "dead" if state == "DEAD" else "failed", outcome.message)

    def make_again(self, producer_keys: Iterable[str], reader: str) -> None:
        """Rerun tasks whose outputs were found damaged, and what lies between them and the reader.

        Args:
            producer_keys: their keys.
            reader: step that met the damage, or ``publish``.

        Raises:
            RunFailed: the list of sources is damaged, and this process has none.
        """
        records = self.state.records(list(producer_keys))
        for key, record in records.items():
            self.reporter.note(f"{record.step}/{record.partition}: stored bytes are damaged; made again")
            self.state.ghost(key)
        self.forget()
        last = STEP_NAMES.index(reader) if reader in STEP_NAMES else len(STEP_NAMES)
        first = min(STEP_NAMES.index(record.step) for record in records.values())
        for name in STEP_NAMES[first:last]:
            if name == "discover":
                self.discover()
            else:
                self.run_step(name)


def _doubtful(known: Standings, listing: Listing) -> set[str]:
    return {key for key, uri, size, mtime in known.stored if listing.get(uri) != (size, mtime)}
