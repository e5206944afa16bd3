"""Backfills as people handle them: begin or take up, list, show, pause, resume, cancel."""

from __future__ import annotations

import datetime as dt
import secrets
import time
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType
from typing import Any

from dataflow_ops.clients.airflow_api import AirflowApi
from dataflow_ops.control.flags import PauseFlags
from dataflow_ops.engine.context import owner_is_gone
from dataflow_ops.errors import ConfigError
from dataflow_ops.pipeline.backfill import driver_layer, give_up_run
from dataflow_ops.pipeline.backfill_days import (
    BY_AIRFLOW,
    dag_of,
    dag_run_id,
)
from dataflow_ops.pipeline.backfill_plan import DayPlan, Request, plan_days, request_of
from dataflow_ops.pipeline.home import open_home
from dataflow_ops.state.backfills import OPEN_BACKFILLS, OPEN_DAYS, BackfillDay, BackfillRecord
from dataflow_ops.state.store import StateStore

LET_END_S = 20.0
"""How long a cancelled backfill's process is given to stop at its batch boundary."""


class BackfillBook(AbstractContextManager["BackfillBook"]):
    """All backfills of a home.

    Args:
        home_path: home folder.
        create: make it if need be.
    """

    def __init__(self, home_path: Path, *, create: bool = False) -> None:
        self.home = open_home(home_path, create=create)
        self.state = StateStore(self.home.state_url)
        self.flags = PauseFlags(self.state, self.home.redis_url)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.state.close()

    def begin(self, request: Request, who: str) -> tuple[BackfillRecord | None, list[DayPlan]]:
        """The backfill that this very request began earlier and did not end, else a new one.

        Returns:
            The backfill, and the plan of a new one. None where no day needs anything: nothing is written.
        """
        kept = request.kept()
        first, last = request.first.isoformat(), request.last.isoformat()
        wanted = (str(request.job), first, last, request.reprocess, kept)
        for known in self.state.list_backfills(request.dataset, 1000):
            asked = (known.job, known.first_day, known.last_day, known.reprocess, dict(known.settings))
            if asked == wanted and self._goes_on(known):
                return known, []
        plans = plan_days(request, self.state.day_runs(request.dataset, first, last))
        todo = [p.day for p in plans if p.action != "skip"]
        if not todo:
            return None, plans
        stamp = dt.datetime.now(dt.UTC).strftime("%Y%m%dT%H%M%S")
        record = self.state.create_backfill(
            f"{stamp}-{secrets.token_hex(2)}",
            dataset=request.dataset,
            job=str(request.job),
            reprocess=request.reprocess,
            settings=kept,
            who=who,
            first_day=first,
            last_day=last,
            days=todo,
        )
        return record, plans

    def _goes_on(self, known: BackfillRecord) -> bool:
        return known.state in OPEN_BACKFILLS and (known.state != "FAILED" or bool(self.open_days(known)))

    def open_days(self, record: BackfillRecord) -> list[BackfillDay]:
        """Days that are still to be brought to their end, the earliest first."""
        return [d for d in self.state.backfill_days(record.backfill_id) if d.state in OPEN_DAYS]

    def find(self, backfill_id: str) -> BackfillRecord:
        """A backfill by its id, or by the start of one.

        Raises:
            ConfigError: there is none, or more than one.
        """
        exact = self.state.get_backfill(backfill_id)
        if exact is not None:
            return exact
        near = [b for b in self.state.list_backfills(None, 1000) if b.backfill_id.startswith(backfill_id)]
        if len(near) == 1:
            return near[0]
        what = "several backfills begin with" if near else "there is no backfill"
        raise ConfigError(f"{what} '{backfill_id}'; `dataflow backfills list` shows them")

    def list(self, dataset: str | None, limit: int) -> list[dict[str, Any]]:
        """One mapping per backfill, newest first."""
        return [self.describe(record) for record in self.state.list_backfills(dataset, limit)]

    def describe(self, record: BackfillRecord) -> dict[str, Any]:
        """A backfill and its days for programs: times as seconds since 1970."""
        days = []
        for day in self.state.backfill_days(record.backfill_id):
            row = self.state.get_run(day.run_id) if day.run_id else None
            days.append(
                {
                    "day": day.day,
                    "state": day.state,
                    "detail": day.detail,
                    "run": day.run_id,
                    "run_state": row.state if row is not None else "",
                    "run_detail": (row.detail or "") if row is not None else "",
                    "updated_at": day.updated_at,
                }
            )
        return {
            "backfill": record.backfill_id,
            "dataset": record.dataset,
            "job": record.job,
            "from": record.first_day,
            "to": record.last_day,
            "reprocess": record.reprocess,
            "settings": dict(record.settings),
            "state": record.state,
            "detail": record.detail,
            "who": record.who,
            "driven_by": self.driver(record),
            "waits": sum(d["run_state"] in ("AWAITING_APPROVAL", "SUCCEEDED_WITH_DEAD") for d in days),
            "created_at": record.created_at,
            "updated_at": record.updated_at,
            "days": days,
        }

    def driver(self, record: BackfillRecord) -> str:
        """The process that drives a backfill now; ``""`` where none does."""
        lease = self.state.lease(record.dataset, driver_layer(record.backfill_id), "")
        return lease.owner if lease is not None and lease.held and not owner_is_gone(lease.owner) else ""

    def pause(self, backfill_id: str, who: str, why: str) -> BackfillRecord:
        """Begin no further day, and pause the runs of those under way at their next batch boundary.

        Raises:
            ConfigError: there is no such backfill, or it is not running.
        """
        record = self.find(backfill_id)
        said = f"paused by {who}" + (f": {why}" if why else "")
        moved = self.state.move_backfill(record.backfill_id, "PAUSED", said, only_from=("RUNNING",))
        if moved is None:
            raise ConfigError(f"backfill {record.backfill_id} is {record.state}: there is nothing to pause")
        for day in self.open_days(record):
            if day.run_id:
                self.flags.pause("run", day.run_id, who, why or f"backfill {record.backfill_id} is paused")
        return moved

    def resume(self, backfill_id: str, who: str) -> tuple[BackfillRecord, Request]:
        """Let a paused (or failed, or left) backfill go on: what whoever drives it now needs for it.

        Raises:
            ConfigError: there is no such backfill, it has ended, or its job is no longer what it was.
        """
        record = self.find(backfill_id)
        if not self._goes_on(record):
            raise ConfigError(
                f"backfill {record.backfill_id} is {record.state}: there is nothing to resume;"
                " `dataflow backfill` begins a new one"
            )
        asked = record.settings
        request = request_of(
            Path(record.job),
            record.first_day,
            record.last_day,
            reprocess=record.reprocess,
            overrides=asked["overrides"],
            until=asked["until"],
            promote=asked["promote"],
            urgent=asked["urgent"],
        )
        if request.kept() != dict(asked):
            raise ConfigError(
                f"{record.job} has changed since backfill {record.backfill_id} began; cancel it and begin a"
                " new one, or take the change back"
            )
        for day in self.open_days(record):
            if day.run_id:
                self.flags.resume("run", day.run_id, who)
        moved = self.state.move_backfill(record.backfill_id, "RUNNING", only_from=OPEN_BACKFILLS)
        return moved or record, request

    def cancel(self, backfill_id: str, who: str, api: AirflowApi | None) -> BackfillRecord:
        """End a backfill: its versions stay, the day under way is stopped, the others are not begun.

        Args:
            backfill_id: which.
            who: for people.
            api: the Airflow that runs its days, where it does.

        Raises:
            ConfigError: there is no such backfill, it has ended, or its days run in an Airflow that is away.
        """
        record = self.find(backfill_id)
        open_days = self.open_days(record)
        if api is None and any(d.run_id.startswith(BY_AIRFLOW) for d in open_days):
            raise ConfigError("its day under way runs in Airflow, which is not up; start it, then cancel")
        said = f"cancelled by {who}"
        moved = self.state.move_backfill(record.backfill_id, "CANCELLED", said, only_from=OPEN_BACKFILLS)
        if moved is None:
            raise ConfigError(f"backfill {record.backfill_id} is {record.state}: there is nothing to cancel")
        for day in open_days:
            if day.state == "PENDING":
                self.state.move_day(record.backfill_id, day.day, "CANCELLED", said, only_from=("PENDING",))
        begun = self.open_days(record)
        for day in begun:
            if day.run_id.startswith(BY_AIRFLOW) and api is not None:
                api.fail(dag_of(record.dataset), dag_run_id(record.backfill_id, day.day))
            elif day.run_id:
                self.flags.pause("run", day.run_id, who, said)
        deadline = time.monotonic() + LET_END_S
        while self.driver(record) and self.open_days(record) and time.monotonic() < deadline:
            time.sleep(0.2)
        # What its process has not ended itself (it is gone, or slow to stop) is ended here.
        for day in self.open_days(record):
            if day.run_id:
                give_up_run(self.state, self.flags, day.run_id, said)
            self.state.move_day(record.backfill_id, day.day, "CANCELLED", said)
        return moved
