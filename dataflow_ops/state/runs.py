"""Runs: their record and their state."""

from __future__ import annotations

from typing import Any, Final

import sqlalchemy as sa

from dataflow_ops.errors import IllegalMove, StateError
from dataflow_ops.state.database import Database
from dataflow_ops.state.machine import LIVE_RUNS, RUN_MOVES, RUN_STATES, event_towards, move
from dataflow_ops.state.outbox import emit
from dataflow_ops.state.records import RunRecord
from dataflow_ops.state.tables import run

RUN_COLUMNS: Final[tuple[sa.ColumnElement[Any], ...]] = (
    run.c.run_id,
    run.c.dataset,
    run.c.job_name,
    run.c.mode,
    run.c.settings,
    run.c.data_date,
    run.c.promote,
    run.c.urgent,
    run.c.until_layer,
    run.c.origin,
    run.c.state,
    run.c.detail,
    run.c.created_at,
    run.c.started_at,
    run.c.ended_at,
    run.c.updated_at,
)
_EVENTS = frozenset(event for _, event in RUN_MOVES)


class Runs:
    """Runs of jobs."""

    db: Database

    def create_run(
        self,
        run_id: str,
        dataset: str,
        job_name: str,
        mode: str,
        settings_json: str,
        data_date: str | None,
        promote: bool = True,
        *,
        urgent: bool = False,
        until_layer: str | None = None,
        origin: str | None = None,
    ) -> RunRecord:
        """Record a planned run.

        Args:
            run_id: unique.
            dataset: data set that the run makes.
            job_name: for people.
            mode: ``full`` or ``incremental``.
            settings_json: the whole job with its overrides.
            data_date: ISO date of the data, where the run has one.
            promote: whether its version may become current by itself.
            urgent: goes ahead of every run that is not.
            until_layer: last layer to run; ``None`` for all.
            origin: JSON of what started it; ``None`` for the command line.

        Raises:
            StateError: the id exists.
        """
        with self.db.write() as connection:
            if _get(connection, run_id) is not None:
                raise StateError(f"run {run_id} exists already")
            connection.execute(
                sa.insert(run).values(
                    run_id=run_id,
                    dataset=dataset,
                    job_name=job_name,
                    mode=mode,
                    settings=settings_json,
                    data_date=data_date,
                    promote=promote,
                    urgent=urgent,
                    until_layer=until_layer,
                    origin=origin,
                    state="PLANNED",
                    created_at=self.db.now,
                    updated_at=self.db.now,
                )
            )
            planned = {"from": None, "event": "plan", "dataset": dataset, "job": job_name, "detail": ""}
            emit(connection, self.db, "run.planned", run_id, planned)
            return _known(connection, run_id)

    def get_run(self, run_id: str) -> RunRecord | None:
        """The run, or ``None`` where there is no such run."""
        with self.db.read() as connection:
            return _get(connection, run_id)

    def list_runs(self, dataset: str | None = None, limit: int = 50) -> list[RunRecord]:
        """The newest runs, newest first."""
        query = sa.select(*RUN_COLUMNS).order_by(run.c.created_at.desc(), run.c.run_id.desc()).limit(limit)
        if dataset is not None:
            query = query.where(run.c.dataset == dataset)
        with self.db.read() as connection:
            return [RunRecord(*row) for row in connection.execute(query)]

    def live_run(self, dataset: str) -> RunRecord | None:
        """The newest run of the data set that is planned, running or paused."""
        return next(iter(self.live_runs(dataset)), None)

    def live_runs(self, dataset: str | None = None) -> list[RunRecord]:
        """Runs that are planned, running or paused (of one data set), newest first."""
        query = (
            sa.select(*RUN_COLUMNS)
            .where(run.c.state.in_(LIVE_RUNS))
            .order_by(run.c.created_at.desc(), run.c.run_id.desc())
        )
        if dataset is not None:
            query = query.where(run.c.dataset == dataset)
        with self.db.read() as connection:
            return [RunRecord(*row) for row in connection.execute(query)]

    def set_until(self, run_id: str, until_layer: str | None) -> None:
        """Change the last layer that a run goes to; ``None`` for all.

        Raises:
            StateError: no such run.
        """
        with self.db.write() as connection:
            _known(connection, run_id)
            connection.execute(
                sa.update(run)
                .where(run.c.run_id == run_id)
                .values(until_layer=until_layer, updated_at=self.db.now)
            )

    def change_settings(self, run_id: str, before: str, after: str) -> RunRecord:
        """Put other settings into a run's row, unless somebody else did since; return the row as it is now.

        Args:
            run_id: which.
            before: the settings as the caller knows them; where they are others, nothing is changed.
            after: the settings to be kept.

        Raises:
            StateError: no such run.
        """
        with self.db.write() as connection:
            connection.execute(
                sa.update(run)
                .where(run.c.run_id == run_id, run.c.settings == before)
                .values(settings=after, updated_at=self.db.now)
            )
            return _known(connection, run_id)

    def set_urgent(self, run_id: str, urgent: bool, who: str = "") -> RunRecord:
        """Let a run go ahead of those that are not urgent, or take that back.

        Raises:
            StateError: no such run.
        """
        with self.db.write() as connection:
            _known(connection, run_id)
            connection.execute(
                sa.update(run).where(run.c.run_id == run_id).values(urgent=urgent, updated_at=self.db.now)
            )
            emit(connection, self.db, "run.urgent", run_id, {"urgent": urgent, "who": who})
            return _known(connection, run_id)

    def set_run_state(self, run_id: str, to: str, detail: str | None = None) -> RunRecord:
        """Move a run.

        Args:
            run_id: which.
            to: an event of the run's machine (``start``, ``succeed``, …) or the state to be in
                (``RUNNING``). Asking for the state that it has already only changes ``detail``.
            detail: why, for people; ``None`` leaves what was there.

        Raises:
            IllegalMove: the machine has no such move.
            StateError: no such run.
        """
        with self.db.write() as connection:
            return move_run(connection, self.db, run_id, to, detail)


def move_run(
    connection: sa.Connection, db: Database, run_id: str, to: str, detail: str | None = None
) -> RunRecord:
    """:meth:`Runs.set_run_state` inside the caller's transaction."""
    row = connection.execute(
        sa.select(run.c.state, run.c.dataset, run.c.job_name).where(run.c.run_id == run_id).with_for_update()
    ).one_or_none()
    if row is None:
        raise StateError(f"there is no run {run_id}")
    before: str = row.state
    values: dict[str, object] = {"updated_at": db.now}
    if detail is not None:
        values["detail"] = detail
    if to != before:
        if to not in _EVENTS and to not in RUN_STATES:
            raise IllegalMove(f"'{to}' is neither a state nor an event of a run")
        event = to if to in _EVENTS else event_towards(before, to)
        after = move(before, event, RUN_MOVES)
        values["state"] = after
        if after == "RUNNING":
            values |= {"started_at": sa.func.coalesce(run.c.started_at, db.now), "ended_at": None}
        elif after not in LIVE_RUNS:
            values["ended_at"] = db.now
        told = {
            "from": before,
            "event": event,
            "dataset": row.dataset,
            "job": row.job_name,
            "detail": (detail or "")[:500],
        }
        emit(connection, db, f"run.{after.lower()}", run_id, told)
    connection.execute(sa.update(run).where(run.c.run_id == run_id).values(**values))
    return _known(connection, run_id)


def _get(connection: sa.Connection, run_id: str) -> RunRecord | None:
    row = connection.execute(sa.select(*RUN_COLUMNS).where(run.c.run_id == run_id)).one_or_none()
    return None if row is None else RunRecord(*row)


def _known(connection: sa.Connection, run_id: str) -> RunRecord:
    record = _get(connection, run_id)
    if record is None:
        raise StateError(f"there is no run {run_id}")
    return record
