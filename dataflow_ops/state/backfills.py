"""Backfills: what was asked for, and where each of its days stands."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import sqlalchemy as sa

from dataflow_ops.errors import StateError
from dataflow_ops.state.database import Database, dump
from dataflow_ops.state.outbox import emit
from dataflow_ops.state.tables import backfill, backfill_day, dataset_version, run
from dataflow_ops.state.upsert import insert_missing

_b, _d = backfill.c, backfill_day.c

OPEN_BACKFILLS: Final = ("RUNNING", "PAUSED", "FAILED")
"""States from which a backfill goes on when it is asked for again."""
OPEN_DAYS: Final = ("PENDING", "RUNNING", "PAUSED")
"""States of a day that is still to be brought to its end."""


@dataclass(frozen=True, slots=True)
class BackfillRecord:
    """A backfill. Days are ISO dates, both inclusive; times are seconds since 1970.

    Attributes:
        settings: ``overrides``, ``until``, ``promote``, ``urgent``: what every day's run is given.
    """

    backfill_id: str
    dataset: str
    job: str
    first_day: str
    last_day: str
    reprocess: str
    settings: Mapping[str, Any]
    state: str
    who: str
    detail: str
    created_at: float
    updated_at: float


@dataclass(frozen=True, slots=True)
class BackfillDay:
    """One day of a backfill: PENDING, RUNNING, PAUSED, DONE, FAILED, SKIPPED or CANCELLED."""

    backfill_id: str
    day: str
    state: str
    run_id: str
    detail: str
    updated_at: float


@dataclass(frozen=True, slots=True)
class DayRun:
    """An incremental run of one day, with the version that it made (``""`` for none)."""

    day: str
    run_id: str
    state: str
    until_layer: str | None
    detail: str
    created_at: float
    version_id: str
    version_state: str


class Backfills:
    """Backfills and their days."""

    db: Database

    def create_backfill(
        self,
        backfill_id: str,
        *,
        dataset: str,
        job: str,
        reprocess: str,
        settings: Mapping[str, Any],
        who: str,
        first_day: str,
        last_day: str,
        days: Sequence[str],
    ) -> BackfillRecord:
        """Record a backfill that is RUNNING, with the days that it is to do PENDING.

        Raises:
            StateError: the id exists.
        """
        with self.db.write() as connection:
            if _get(connection, backfill_id) is not None:
                raise StateError(f"backfill {backfill_id} exists already")
            now = connection.execute(sa.select(self.db.now)).scalar_one()
            connection.execute(
                sa.insert(backfill).values(
                    backfill_id=backfill_id,
                    dataset=dataset,
                    job=job,
                    first_day=first_day,
                    last_day=last_day,
                    reprocess=reprocess,
                    settings=dump(settings),
                    state="RUNNING",
                    who=who,
                    detail="",
                    created_at=now,
                    updated_at=now,
                )
            )
            rows = [
                {
                    "backfill_id": backfill_id,
                    "day": day,
                    "state": "PENDING",
                    "run_id": "",
                    "detail": "",
                    "updated_at": now,
                }
                for day in days
            ]
            insert_missing(connection, backfill_day, rows)
            emit(
                connection, self.db, "backfill.running", backfill_id, {"dataset": dataset, "days": len(days)}
            )
            return _known(connection, backfill_id)

    def get_backfill(self, backfill_id: str) -> BackfillRecord | None:
        """The backfill, or None."""
        with self.db.read() as connection:
            return _get(connection, backfill_id)

    def list_backfills(self, dataset: str | None = None, limit: int = 50) -> list[BackfillRecord]:
        """The newest backfills, newest first."""
        query = sa.select(*_b).order_by(_b.created_at.desc(), _b.backfill_id.desc()).limit(limit)
        if dataset is not None:
            query = query.where(_b.dataset == dataset)
        with self.db.read() as connection:
            return [_record(row) for row in connection.execute(query)]

    def backfill_days(self, backfill_id: str) -> list[BackfillDay]:
        """All days of a backfill, the earliest first."""
        query = sa.select(*_d).where(_d.backfill_id == backfill_id).order_by(_d.day)
        with self.db.read() as connection:
            return [BackfillDay(*row) for row in connection.execute(query)]

    def move_backfill(
        self, backfill_id: str, to: str, detail: str = "", *, only_from: Sequence[str]
    ) -> BackfillRecord | None:
        """Move a backfill, if it is in one of the states given; None where it is not."""
        with self.db.write() as connection:
            row = connection.execute(
                sa.update(backfill)
                .where(_b.backfill_id == backfill_id, _b.state.in_(only_from))
                .values(state=to, detail=detail, updated_at=self.db.now)
                .returning(*_b)
            ).one_or_none()
            if row is not None:
                emit(connection, self.db, f"backfill.{to.lower()}", backfill_id, {"detail": detail})
        return None if row is None else _record(row)

    def move_day(
        self,
        backfill_id: str,
        day: str,
        to: str,
        detail: str = "",
        *,
        run_id: str | None = None,
        only_from: Sequence[str] = OPEN_DAYS,
    ) -> BackfillDay | None:
        """Move a day of a backfill, if it is in one of the states given; None where it is not.

        Args:
            backfill_id: which backfill.
            day: ISO date.
            to: its new state.
            detail: for people.
            run_id: the run that does it; None leaves what was there.
            only_from: where it may come from.
        """
        values: dict[str, object] = {"state": to, "detail": detail, "updated_at": self.db.now}
        if run_id is not None:
            values["run_id"] = run_id
        with self.db.write() as connection:
            row = connection.execute(
                sa.update(backfill_day)
                .where(_d.backfill_id == backfill_id, _d.day == day, _d.state.in_(only_from))
                .values(**values)
                .returning(*_d)
            ).one_or_none()
        return None if row is None else BackfillDay(*row)

    def day_runs(self, dataset: str, first_day: str, last_day: str) -> dict[str, list[DayRun]]:
        """Day -> its incremental runs, newest first, for the days (both inclusive) that have any."""
        v = dataset_version.c
        query = (
            sa.select(
                run.c.data_date,
                run.c.run_id,
                run.c.state,
                run.c.until_layer,
                run.c.detail,
                run.c.created_at,
                v.version_id,
                v.state.label("version_state"),
            )
            .outerjoin(dataset_version, sa.and_(v.run_id == run.c.run_id, v.dataset == run.c.dataset))
            .where(
                run.c.dataset == dataset,
                run.c.mode == "incremental",
                run.c.data_date >= first_day,
                run.c.data_date <= last_day,
            )
            .order_by(run.c.data_date, run.c.created_at.desc(), run.c.run_id.desc())
        )
        found: dict[str, list[DayRun]] = {}
        with self.db.read() as connection:
            for row in connection.execute(query):
                made = DayRun(*row[:4], row[4] or "", row[5], row[6] or "", row[7] or "")
                found.setdefault(made.day, []).append(made)
        return found


def _get(connection: sa.Connection, backfill_id: str) -> BackfillRecord | None:
    row = connection.execute(sa.select(*_b).where(_b.backfill_id == backfill_id)).one_or_none()
    return None if row is None else _record(row)


def _known(connection: sa.Connection, backfill_id: str) -> BackfillRecord:
    record = _get(connection, backfill_id)
    if record is None:
        raise StateError(f"there is no backfill {backfill_id}")
    return record


def _record(row: Any) -> BackfillRecord:
    values = dict(row._mapping)
    return BackfillRecord(**values | {"settings": json.loads(values["settings"])})
