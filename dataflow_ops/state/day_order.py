"""Which days of a data set are open before a given one, and for how long nothing was heard of each."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from dataflow_ops.state.database import Database
from dataflow_ops.state.machine import FINISHED_RUNS, LIVE_RUNS
from dataflow_ops.state.outbox import emit
from dataflow_ops.state.tables import backfill, backfill_day, run, run_task, task

_PASSED = "passed over by"
_WAITS = "waits: "


@dataclass(frozen=True, slots=True)
class OpenDay:
    """A day that is not done.

    Attributes:
        day: ISO date.
        run_id: its run; ``""`` while it only stands in a backfill's plan.
        backfill_id: the backfill that plans it; ``""`` for a run.
        state: of the run, or of the day in the backfill.
        orchestrated: whether an orchestrator drives the run, and may try it again by itself.
        silent_s: seconds since the last sign of life of the run, or of progress of the backfill.
        detail: why it stands where it stands, for people.
    """

    day: str
    run_id: str
    backfill_id: str
    state: str
    orchestrated: bool
    silent_s: float
    detail: str


class DayOrder:
    """Facts about the days before a day."""

    db: Database

    def open_days_before(self, dataset: str, day: str, not_stopping_before: tuple[str, ...]) -> list[OpenDay]:
        """Earlier days of a data set that are planned, under way, paused or failed; the earliest first.

        Args:
            dataset: data set.
            day: ISO date; only days before it are given.
            not_stopping_before: last layers of runs that count; a run that stops earlier blocks nobody.
        """
        with self.db.read() as connection:
            now = connection.execute(sa.select(self.db.now)).scalar_one()
            found = self._runs(connection, dataset, day, not_stopping_before, now)
            found += self._planned(connection, dataset, day, now)
        return sorted(found, key=lambda d: (d.day, d.run_id, d.backfill_id))

    def _runs(
        self, connection: sa.Connection, dataset: str, day: str, layers: tuple[str, ...], now: float
    ) -> list[OpenDay]:
        query = sa.select(
            run.c.run_id, run.c.data_date, run.c.state, run.c.origin, run.c.updated_at, run.c.detail
        ).where(
            run.c.dataset == dataset,
            run.c.mode == "incremental",
            run.c.data_date < day,
            run.c.state.in_((*LIVE_RUNS, "FAILED")),
            sa.or_(run.c.until_layer.is_(None), run.c.until_layer.in_(layers)),
        )
        found = []
        for row in connection.execute(query).all():
            heard = row.updated_at
            if row.state in LIVE_RUNS:
                tasks = (
                    sa.select(sa.func.max(task.c.heartbeat_at), sa.func.max(task.c.ended_at))
                    .select_from(run_task.join(task, run_task.c.task_key == task.c.key))
                    .where(run_task.c.run_id == row.run_id)
                )
                heard = max([heard, *(t for t in connection.execute(tasks).one() if t is not None)])
            found.append(
                OpenDay(
                    row.data_date,
                    row.run_id,
                    "",
                    row.state,
                    _orchestrated(row.origin),
                    now - heard,
                    row.detail or "",
                )
            )
        return found

    def _planned(self, connection: sa.Connection, dataset: str, day: str, now: float) -> list[OpenDay]:
        d = backfill_day.c
        moved = (
            sa.select(d.backfill_id.label("id"), sa.func.max(d.updated_at).label("at"))
            .group_by(d.backfill_id)
            .subquery()
        )
        done = sa.exists().where(
            run.c.dataset == backfill.c.dataset,
            run.c.mode == "incremental",
            run.c.data_date == d.day,
            run.c.until_layer.is_(None),
            run.c.state.in_(FINISHED_RUNS),
        )
        query = (
            sa.select(d.day, d.backfill_id, d.state, moved.c.at, backfill.c.updated_at, d.detail)
            .join(backfill, backfill.c.backfill_id == d.backfill_id)
            .join(moved, moved.c.id == d.backfill_id)
            .where(
                backfill.c.dataset == dataset,
                backfill.c.state == "RUNNING",
                d.day < day,
                d.state.in_(("PENDING", "RUNNING")),
                # A day that has begun is known by its run.
                ~sa.exists().where(run.c.run_id == d.run_id),
                # And one that another did meanwhile is only left out, unless every day is wanted again.
                sa.or_(backfill.c.reprocess == "all", ~done),
            )
        )
        return [
            OpenDay(
                row.day, "", row.backfill_id, row.state, False, now - max(row.at, row.updated_at), row.detail
            )
            for row in connection.execute(query)
        ]

    def seconds_since(self, moment: float) -> float:
        """Seconds from a moment (since 1970) to now, by the database's clock."""
        with self.db.read() as connection:
            now: float = connection.execute(sa.select(self.db.now)).scalar_one()
        return now - moment

    def run_waits(self, run_id: str, why: str) -> None:
        """Note what a running run waits for; it counts as a sign of life."""
        with self.db.write() as connection:
            connection.execute(
                sa.update(run)
                .where(run.c.run_id == run_id, run.c.state == "RUNNING")
                .values(detail=f"{_WAITS}{why}", updated_at=self.db.now)
            )

    def run_goes_on(self, run_id: str) -> None:
        """Take back what :meth:`run_waits` noted."""
        with self.db.write() as connection:
            connection.execute(
                sa.update(run)
                .where(run.c.run_id == run_id, run.c.detail.startswith(_WAITS))
                .values(detail="", updated_at=self.db.now)
            )

    def pass_over(self, open_day: OpenDay, by: str, why: str) -> None:
        """Note at a day that a later one goes first; once is enough.

        Args:
            open_day: the earlier day.
            by: run that goes first.
            why: why it need not wait, for people.
        """
        note = f"{_PASSED} {by}: {why}"
        with self.db.write() as connection:
            if open_day.run_id:
                at: Any = sa.update(run).where(run.c.run_id == open_day.run_id)
                columns = run.c
            else:
                d = backfill_day.c
                at = sa.update(backfill_day).where(
                    d.backfill_id == open_day.backfill_id, d.day == open_day.day
                )
                columns = backfill_day.c
            before = sa.func.coalesce(columns.detail, "")
            # updated_at stays: to be passed over is no sign of life.
            changed = connection.execute(
                at.where(~before.contains(_PASSED))
                .values(detail=sa.case((before == "", note), else_=before + f"; {note}"))
                .returning(columns.detail)
            ).one_or_none()
            if changed is not None:
                subject = open_day.run_id or open_day.backfill_id
                emit(connection, self.db, "day.passed_over", subject, {"day": open_day.day, "by": by})


def _orchestrated(origin: str | None) -> bool:
    return origin is not None and json.loads(origin).get("kind") == "airflow"
