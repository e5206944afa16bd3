"""Drives a backfill: day by day in order, each under a lease, taken up again where it was left."""

from __future__ import annotations

import datetime as dt
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from typing import Final, Protocol

from dataflow_ops.control.flags import PauseFlags
from dataflow_ops.engine.context import owner_is_gone, owner_name
from dataflow_ops.errors import DataFlowError, StateError
from dataflow_ops.pipeline.backfill_days import DayEnd, DayRunner
from dataflow_ops.pipeline.backfill_plan import DayPlan, Request, plan_day
from dataflow_ops.pipeline.lease_beat import LeaseBeat
from dataflow_ops.pipeline.ordered import ORDERED_LAYERS, Patience, is_silent
from dataflow_ops.state.backfills import OPEN_DAYS, BackfillDay, BackfillRecord
from dataflow_ops.state.leases import Lease
from dataflow_ops.state.machine import LIVE_RUNS
from dataflow_ops.state.store import StateStore

DAY: Final = "day"
"""Layer of the lease on all of one day."""
LEASE_S: Final = 60.0
"""How long a day or a backfill stays taken after its process died."""
LOOK_EVERY_S: Final = 2.0
FAILURES_IN_A_ROW: Final = 3
"""After so many the fault is hardly the days': the backfill stops."""
INTERRUPTED: Final = "interrupted; the same command goes on from there"


def driver_layer(backfill_id: str) -> str:
    """Layer of the lease that the process which drives a backfill holds."""
    return f"backfill {backfill_id}"


class Watch(Protocol):
    """Hears how a backfill goes."""

    def begins(self, record: BackfillRecord, days: int, done: int, where: str) -> None:
        """So many days in all, so many ended before."""

    def day_begins(self, day: str, why: str) -> None:
        """A day is being run."""

    def day_ended(self, day: str, state: str, detail: str) -> None:
        """A day has ended, or was left out."""

    def note(self, message: str) -> None:
        """Something to read."""


class Backfill:
    """One backfill, driven by this process.

    Args:
        state: open state store.
        flags: sets and clears pause flags.
        request: what was asked for.
        record: as state keeps it.
        runner: runs a day.
        watch: hears how it goes.
        parallel: how many days may be under way at once; the ordered steps take turns all the same.
        every_s: seconds between two looks while something is waited for.
        patience: how long a run of which nothing is heard is waited for.
    """

    def __init__(
        self,
        state: StateStore,
        flags: PauseFlags,
        request: Request,
        record: BackfillRecord,
        runner: DayRunner,
        watch: Watch,
        parallel: int = 1,
        every_s: float = LOOK_EVERY_S,
        patience: Patience | None = None,
    ) -> None:
        self._state = state
        self._flags = flags
        self._request = request
        self._record = record
        self._id = record.backfill_id
        self._runner = runner
        self._watch = watch
        self._parallel = parallel
        self._every_s = every_s
        self._patience = patience or Patience()
        self._lock = threading.Lock()
        self._failed_in_a_row = 0
        self._fault: BaseException | None = None

    def go(self) -> BackfillRecord:
        """Run what is open, in order; return the backfill as it stands then.

        Raises:
            StateError: another process drives this backfill.
            DataFlowError: a systemic fault; the same command goes on once it is mended.
        """
        if self._record.state == "PAUSED":
            return self._record
        held = self._take("", driver_layer(self._id), owner_name())
        if isinstance(held, str):
            raise StateError(
                f"backfill {self._id} is under way already, driven by {held};"
                f" `dataflow backfills show {self._id}` says how far it is"
            )
        beat = LeaseBeat(self._state.hasty(), held, LEASE_S)
        try:
            self._state.move_backfill(self._id, "RUNNING", only_from=("RUNNING", "FAILED"))
            days = self._state.backfill_days(self._id)
            todo = [d for d in days if d.state in OPEN_DAYS]
            self._watch.begins(self._record, len(days), len(days) - len(todo), self._runner.where)
            self._all(todo)
            return self._settle()
        except KeyboardInterrupt:
            self._state.move_backfill(self._id, "RUNNING", INTERRUPTED, only_from=("RUNNING",))
            raise
        except DataFlowError as e:
            with suppress(DataFlowError):  # what broke it may keep that from being recorded
                self._state.hasty().move_backfill(
                    self._id, "FAILED", f"{type(e).__name__}: {e}", only_from=("RUNNING",)
                )
            raise
        finally:
            beat.stop()
            with suppress(DataFlowError):  # it expires by itself
                self._state.hasty().release_lease(held)

    def _all(self, todo: Sequence[BackfillDay]) -> None:
        if self._parallel == 1:
            for day in todo:
                self._day(day.day)
        else:
            with ThreadPoolExecutor(self._parallel, thread_name_prefix="backfill-day") as pool:
                try:
                    wait([pool.submit(self._guarded, day.day) for day in todo])
                except KeyboardInterrupt as e:
                    self._fault = e
                    self._stop_runs([d.day for d in todo])
        if self._fault is not None:
            raise self._fault

    def _guarded(self, day: str) -> None:
        try:
            self._day(day)
        except BaseException as e:  # noqa: BLE001 - carried to the thread that asked, and raised there
            with self._lock:
                self._fault = self._fault or e

    def _stop_runs(self, days: Sequence[str]) -> None:
        """Interrupted with several days under way: let each stop at its next batch boundary."""
        for day in days:
            self._flags.pause("run", self._runner.run_id(self._id, day), "interrupt", INTERRUPTED)

    def _halted(self) -> bool:
        """Whether no further day may begin."""
        if self._fault is not None or self._failed_in_a_row >= FAILURES_IN_A_ROW:
            return True
        now = self._state.get_backfill(self._id)
        return now is None or now.state != "RUNNING"

    # One day

    def _day(self, day: str) -> None:
        held = self._taken(day)
        if held is None:
            return
        beat = LeaseBeat(self._state.hasty(), held, LEASE_S)
        try:
            plan = self._planned(day)
            if plan is None:
                return
            if plan.action in ("skip", "done"):
                self._ended(day, DayEnd("DONE" if plan.action == "done" else "SKIPPED", plan.why))
                return
            own = self._runner.run_id(self._id, day)
            if self._state.move_day(self._id, day, "RUNNING", plan.why, run_id=own) is None:
                return  # cancelled a moment ago
            self._watch.day_begins(day, plan.why)
            self._ended(day, self._runner.run(self._id, day, self._halted))
        finally:
            beat.stop()
            with suppress(DataFlowError):  # it expires by itself
                self._state.hasty().release_lease(held)

    def _taken(self, day: str) -> Lease | None:
        """The lease on a day, waited for while another backfill holds it; None when there is no going on."""
        said = ""
        while not self._halted():
            held = self._take(day, DAY, f"{self._id} {owner_name()}")
            if not isinstance(held, str):
                return held
            other, _, process = held.partition(" ")
            if held != said:
                self._watch.note(f"{day} is taken by backfill {other} ({process}); waits for it")
                said = held
            time.sleep(self._every_s)
        return None

    def _planned(self, day: str) -> DayPlan | None:
        """What the day needs now; waited for while a run that another started is at it."""
        own, said = self._runner.run_id(self._id, day), ""
        after = (dt.date.fromisoformat(day) + dt.timedelta(days=1)).isoformat()
        while not self._halted():
            runs = self._state.day_runs(self._request.dataset, day, day).get(day, [])
            open_days = self._state.open_days_before(self._request.dataset, after, ORDERED_LAYERS)
            gone = {d.run_id for d in open_days if d.day == day and is_silent(d, self._patience)}
            plan = plan_day(self._request, day, runs, own, gone)
            if plan.action != "wait":
                return plan
            if plan.why != said:
                self._watch.note(f"{day}: {plan.why}")
                said = plan.why
            time.sleep(self._every_s)
        return None

    def _take(self, day: str, layer: str, owner: str) -> Lease | str:
        """A lease, also one whose process on this host is gone; else the name of its holder."""
        there = self._state.lease(self._request.dataset, layer, day)
        gone = there if there is not None and owner_is_gone(there.owner.rpartition(" ")[2]) else None
        held = self._state.acquire_lease(self._request.dataset, layer, day, owner, LEASE_S, instead_of=gone)
        if held is not None:
            return held
        now = self._state.lease(self._request.dataset, layer, day)
        return now.owner if now is not None else "another process"

    def _ended(self, day: str, end: DayEnd) -> None:
        now = self._state.get_backfill(self._id)
        if now is not None and now.state == "CANCELLED":
            end = DayEnd(
                "CANCELLED", end.detail if end.state == "CANCELLED" else "the backfill was cancelled"
            )
            give_up_run(self._state, self._flags, self._runner.run_id(self._id, day), now.detail)
        elif end.state == "PAUSED" and isinstance(self._fault, KeyboardInterrupt):
            # Not a person's wish to pause, which would keep later days waiting.
            run_id = self._runner.run_id(self._id, day)
            self._flags.resume("run", run_id, "interrupt")
            self._state.set_run_state(run_id, "FAILED", INTERRUPTED)
            end = DayEnd("PENDING", INTERRUPTED)
        elif end.state == "PAUSED":
            self._state.move_backfill(self._id, "PAUSED", f"{day}: {end.detail}", only_from=("RUNNING",))
        self._state.move_day(self._id, day, end.state, end.detail)
        with self._lock:
            if end.state == "FAILED":
                self._failed_in_a_row += 1
            elif end.state == "DONE":
                self._failed_in_a_row = 0
        self._watch.day_ended(day, end.state, end.detail)

    # The end

    def _settle(self) -> BackfillRecord:
        days = self._state.backfill_days(self._id)
        failed = [d.day for d in days if d.state == "FAILED"]
        left = [d.day for d in days if d.state in OPEN_DAYS]
        if self._failed_in_a_row >= FAILURES_IN_A_ROW and left:
            state, detail = (
                "FAILED",
                (
                    f"{FAILURES_IN_A_ROW} days in a row failed, so {len(left)} were not begun; mend it, then"
                    " the same command goes on, and --reprocess failed does the failed ones again"
                ),
            )
        elif failed:
            state, detail = (
                "FAILED",
                (
                    f"{len(failed)} of {len(days)} days failed ({', '.join(failed[:3])}"
                    f"{', …' if len(failed) > 3 else ''}); --reprocess failed does them again"
                ),
            )
        else:
            state, detail = "DONE", ""
        if not left or failed:
            self._state.move_backfill(self._id, state, detail, only_from=("RUNNING",))
        now = self._state.get_backfill(self._id)
        return now if now is not None else self._record


def give_up_run(state: StateStore, flags: PauseFlags, run_id: str, why: str) -> None:
    """Cancel a run, if it is there and still wants something; its pause flag goes with it."""
    row = state.get_run(run_id)
    if row is not None and row.state in (*LIVE_RUNS, "FAILED"):
        state.cancel(run_id, why)
    flags.resume("run", run_id, "backfill")
