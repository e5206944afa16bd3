"""One day at a time: an incremental run takes its turn after step ``sign`` and gives it up once published.

Never two at once is strict: a lease. The order of days is kept as long as the earlier day shows signs of life
(``docs/backfill.md`` says for how long); after that it is passed over, and a note at it says by whom.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Final

from dataflow_ops.errors import DataFlowError
from dataflow_ops.pipeline.flow import LAYERS, STEP_NAMES
from dataflow_ops.pipeline.lease_beat import LeaseBeat
from dataflow_ops.pipeline.tally import RunPaused
from dataflow_ops.state.day_order import OpenDay
from dataflow_ops.state.leases import Lease
from dataflow_ops.state.machine import LIVE_RUNS
from dataflow_ops.state.records import COMPACT, INCREMENTAL, RunRecord
from dataflow_ops.state.store import StateStore

FIRST_ORDERED: Final = "supersede"
"""First step that days take in turn; the ones before it may overlap."""
GATE: Final = "dedup"
"""Layer of the lease that stands for all ordered steps of a data set."""
PROCESS_S: Final = 60.0
"""How long the gate outlives a process that died with it."""
ORCHESTRATED_S: Final = 1800.0
"""The same for a run whose tasks wait for slots in between, when nobody renews it."""
ORDERED_LAYERS: Final = LAYERS[LAYERS.index("dedup") :]
"""Layers that hold ordered steps; a run that stops before them takes no turn."""


class WaitsForTurn(DataFlowError):
    """Another day of the data set is at the ordered steps, or comes first: ask again in a few seconds."""

    retryable = True


@dataclass(frozen=True, slots=True)
class Patience:
    """How long an earlier day that stands still keeps later ones waiting, in seconds.

    Attributes:
        process_s: a run in a process of its own that shows no sign of life.
        orchestrated_s: a run of an orchestrator; its tasks may wait long for a slot.
        failed_s: a run of an orchestrator that failed; it may be tried again by itself.
        planned_s: days that a backfill has not begun, while it makes no progress.
    """

    process_s: float = 300.0
    orchestrated_s: float = 3600.0
    failed_s: float = 300.0
    planned_s: float = 300.0


def is_ordered(step: str) -> bool:
    """Whether a step (or ``publish``) is one that days take in turn."""
    return step not in STEP_NAMES[: STEP_NAMES.index(FIRST_ORDERED)]


def needs_turn(run: RunRecord) -> bool:
    """Whether a run takes part: incremental, with a day, and not stopping before the ordered steps; or a
    compaction, which lets no day build on what it is about to replace.
    """
    return run.mode == COMPACT or (
        run.mode == INCREMENTAL
        and bool(run.data_date)
        and (run.until_layer is None or run.until_layer in ORDERED_LAYERS)
    )


def enter_ordered(
    state: StateStore, run: RunRecord, seconds: float = ORCHESTRATED_S, patience: Patience | None = None
) -> str | None:
    """Take (or keep) a run's turn at the ordered steps.

    Args:
        state: open state store.
        run: the run; the same run may ask as often as it likes, and so renews its turn.
        seconds: how long the turn holds unless renewed.
        patience: how long earlier days are waited for.

    Returns:
        None when it is the run's turn, else what it waits for, as a sentence for people. The reason is noted
        in the run's row.
    """
    if not needs_turn(run):
        return None
    gate = state.lease(run.dataset, GATE, "")
    if gate is not None and gate.held and gate.owner == run.run_id:
        if state.acquire_lease(run.dataset, GATE, "", run.run_id, seconds) is not None:
            return None
        gate = state.lease(run.dataset, GATE, "")
    patience = patience or Patience()
    # A compaction is no day: it waits for none, only for the one that is at work.
    days = (
        []
        if run.mode == COMPACT
        else state.open_days_before(run.dataset, run.data_date or "", ORDERED_LAYERS)
    )
    first, passed = _judge(days, run.urgent, patience)
    why = None
    if first is not None:
        why = _sentence(first)
    else:
        over = gate if gate is not None and gate.held and _is_over(state, gate, patience) else None
        got = state.acquire_lease(run.dataset, GATE, "", run.run_id, seconds, instead_of=over)
        if got is None:
            now = state.lease(run.dataset, GATE, "")
            holder = state.get_run(now.owner) if now is not None else None
            day = f" ({holder.data_date})" if holder is not None else ""
            why = f"run {now.owner if now else 'of another day'}{day} is at the steps that days take in turn"
    if why is not None:
        state.run_waits(run.run_id, why)
        return why
    for open_day, reason in passed:
        state.pass_over(open_day, run.run_id, reason)
    state.run_goes_on(run.run_id)
    return None


def is_silent(open_day: OpenDay, patience: Patience) -> bool:
    """Whether a run that is planned or running gave no sign of life for longer than one waits for it."""
    limit = patience.orchestrated_s if open_day.orchestrated else patience.process_s
    return open_day.state in ("PLANNED", "RUNNING") and open_day.silent_s > limit


def leave_ordered(state: StateStore, run: RunRecord) -> None:
    """Give the turn back, if the run holds it."""
    gate = state.lease(run.dataset, GATE, "")
    if gate is not None and gate.owner == run.run_id:
        state.release_lease(gate)


class Turn(AbstractContextManager["Turn"]):
    """A run's turn in a process that drives it from end to end: waits for it, keeps it, gives it back.

    Args:
        state: open state store.
        run: the run.
        note: told what is waited for, each time that it changes.
        every_s: seconds between two looks.
    """

    def __init__(
        self,
        state: StateStore,
        run: RunRecord,
        note: Callable[[str], object],
        every_s: float = 2.0,
        patience: Patience | None = None,
    ) -> None:
        self._state = state
        self._run = run
        self._note = note
        self._every_s = every_s
        self._patience = patience
        self._beat: LeaseBeat | None = None

    def take(self) -> None:
        """Return once it is the run's turn.

        Raises:
            RunPaused: a pause flag was met while waiting.
        """
        said = ""
        while (why := enter_ordered(self._state, self._run, PROCESS_S, self._patience)) is not None:
            if self._state.paused(self._run.run_id, self._run.dataset) is not None:
                raise RunPaused(f"paused while it waited: {why}")
            if why != said:
                self._note(f"Waits for its turn: {why}")
                said = why
            time.sleep(self._every_s)
        if self._beat is None or self._beat.lost:
            self._beat = _keep(self._state, self._run, PROCESS_S)

    def keep(self) -> None:
        """Before publishing: a turn that was taken and lost meanwhile is waited for again."""
        if self._beat is not None:
            self.take()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._beat is None:
            return
        self._beat.stop()
        try:
            leave_ordered(self._state, self._run)
        except DataFlowError as e:
            # The lease expires by itself; what ended the run must not be hidden by this.
            self._note(f"the turn could not be given back and expires in {PROCESS_S:.0f} s: {e}")


@contextmanager
def in_turn(state: StateStore, run: RunRecord, step: str) -> Iterator[None]:
    """Around one bundle of a step: go on only if it is the run's turn, and keep it meanwhile.

    Raises:
        WaitsForTurn: another day comes first.
    """
    if not (is_ordered(step) and needs_turn(run)):
        yield
        return
    why = enter_ordered(state, run)
    if why is not None:
        raise WaitsForTurn(why)
    beat = _keep(state, run, ORCHESTRATED_S)
    try:
        yield
    finally:
        if beat is not None:
            beat.stop()


def _judge(
    open_days: Sequence[OpenDay], urgent: bool, patience: Patience
) -> tuple[OpenDay | None, list[tuple[OpenDay, str]]]:
    """The day that must be waited for, if any; and those that need not be, with the reason."""
    passed: list[tuple[OpenDay, str]] = []
    for open_day in open_days:
        silent = f"{open_day.silent_s / 60:.0f} min"
        if open_day.backfill_id:
            if urgent:
                passed.append((open_day, "that run is urgent"))
            elif open_day.silent_s > patience.planned_s:
                passed.append((open_day, f"the backfill made no progress for {silent}"))
            else:
                return open_day, passed
        elif open_day.state == "FAILED":
            if open_day.orchestrated and open_day.silent_s <= patience.failed_s:
                return open_day, passed
            passed.append((open_day, "this run failed"))
        elif open_day.state == "PAUSED":
            return open_day, passed
        elif is_silent(open_day, patience):
            passed.append((open_day, f"this run showed no sign of life for {silent}"))
        else:
            return open_day, passed
    return None, passed


def _sentence(open_day: OpenDay) -> str:
    if open_day.backfill_id:
        return (
            f"{open_day.day} comes first, which backfill {open_day.backfill_id} has not begun;"
            f" `dataflow backfills pause {open_day.backfill_id}` lets later days go ahead"
        )
    what = f"{open_day.day} comes first: run {open_day.run_id} is {open_day.state}"
    if open_day.state == "PAUSED":
        return f"{what}; `dataflow resume {open_day.run_id}`, or `dataflow cancel {open_day.run_id}`"
    if open_day.state == "FAILED":
        return f"{what} and may be tried again"
    return what


def _is_over(state: StateStore, gate: Lease, patience: Patience) -> bool:
    """Whether the run that holds the gate has ended, and so will never give it back by itself."""
    holder = state.get_run(gate.owner)
    if holder is None:
        return True
    if holder.state == "FAILED":
        orchestrated = holder.origin is not None and '"airflow"' in holder.origin
        return not orchestrated or state.seconds_since(holder.updated_at) > patience.failed_s
    return holder.state not in LIVE_RUNS


def _keep(state: StateStore, run: RunRecord, seconds: float) -> LeaseBeat | None:
    """Begin to renew the run's turn; None where it has none to keep."""
    held = state.lease(run.dataset, GATE, "")
    return LeaseBeat(state.hasty(), held, seconds) if held is not None and held.owner == run.run_id else None
