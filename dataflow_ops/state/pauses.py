"""Pause flags. The row is the truth; whatever caches it may only say "paused" sooner."""

from __future__ import annotations

from collections.abc import Sequence

import sqlalchemy as sa

from dataflow_ops.errors import ConfigError, StateError
from dataflow_ops.state.database import Database
from dataflow_ops.state.outbox import emit
from dataflow_ops.state.records import PauseFlag
from dataflow_ops.state.runs import move_run
from dataflow_ops.state.tables import pause_flag, run, run_task, task
from dataflow_ops.state.upsert import upsert

SCOPES = ("run", "dataset", "all")
"""From the narrowest to the widest."""


class Pauses:
    """Wishes to pause runs."""

    db: Database

    def set_pause(self, scope: str, target: str = "", who: str = "", why: str = "") -> PauseFlag:
        """Ask a run, all runs of a data set, or everything to pause. Asking again renews who and why.

        Args:
            scope: ``run``, ``dataset`` or ``all``.
            target: run id or data set; must be empty for ``all``.
            who: name of the person or service.
            why: for people.

        Raises:
            ConfigError: the scope is unknown or does not go with the target.
        """
        _check(scope, target)
        with self.db.write() as connection:
            now = connection.execute(sa.select(self.db.now)).scalar_one()
            upsert(
                connection,
                pause_flag,
                [{"scope": scope, "target": target, "who": who, "why": why, "created_at": now}],
            )
            emit(connection, self.db, "pause.set", target, {"scope": scope, "who": who, "why": why})
            for run_id in _covered(connection, scope, target):
                _settle(connection, self.db, run_id)
        return PauseFlag(scope, target, who, why, now)

    def clear_pause(self, scope: str, target: str = "", who: str = "") -> bool:
        """Take a flag back; return whether there was one.

        Args:
            scope: as in :meth:`set_pause`.
            target: as in :meth:`set_pause`.
            who: name of the person or service, for the record.

        Raises:
            ConfigError: the scope is unknown or does not go with the target.
        """
        _check(scope, target)
        c = pause_flag.c
        with self.db.write() as connection:
            gone = connection.execute(
                sa.delete(pause_flag).where(c.scope == scope, c.target == target).returning(c.target)
            ).one_or_none()
            if gone is not None:
                emit(connection, self.db, "pause.cleared", target, {"scope": scope, "who": who})
                # Where another flag holds still, the run says by whom it is paused now.
                for run_id in _covered(connection, scope, target, ("PAUSED",)):
                    _settle(connection, self.db, run_id)
        return gone is not None

    def paused(self, run_id: str, dataset: str) -> PauseFlag | None:
        """The narrowest flag that holds for a run, or ``None``."""
        with self.db.read() as connection:
            return effective_pause(connection, run_id, dataset)

    def settle_pause(self, run_id: str) -> PauseFlag | None:
        """Where a flag holds for a live run and none of its tasks is under way any more, it is PAUSED.

        To be called whenever a task was given back, and when the last one of a stretch has ended: whoever
        comes last, on whatever host, moves the run.

        Returns:
            The flag that holds, ``None`` where there is none (then nothing is moved).

        Raises:
            StateError: no such run.
        """
        if self._flag_of(run_id) is None:  # the common case, without waiting for those who write
            return None
        with self.db.write() as connection:
            return _settle(connection, self.db, run_id)

    def take_up(self, run_id: str) -> PauseFlag | None:
        """A run that failed or was paused is RUNNING again; where a flag holds, as :meth:`settle_pause`.

        Returns:
            The flag that holds, ``None`` where work may begin.

        Raises:
            StateError: no such run.
        """
        with self.db.write() as connection:
            flag = _settle(connection, self.db, run_id)
            if flag is None and _locked(connection, run_id)[0] in ("PLANNED", "PAUSED", "FAILED"):
                move_run(connection, self.db, run_id, "RUNNING", "")
            return flag

    def _flag_of(self, run_id: str) -> PauseFlag | None:
        with self.db.read() as connection:
            row = connection.execute(sa.select(run.c.dataset).where(run.c.run_id == run_id)).one_or_none()
            if row is None:
                raise StateError(f"there is no run {run_id}")
            return effective_pause(connection, run_id, row.dataset)

    def pauses(self) -> list[PauseFlag]:
        """All flags, oldest first."""
        c = pause_flag.c
        query = sa.select(c.scope, c.target, c.who, c.why, c.created_at).order_by(
            c.created_at, c.scope, c.target
        )
        with self.db.read() as connection:
            return [PauseFlag(*row) for row in connection.execute(query)]


def effective_pause(connection: sa.Connection, run_id: str, dataset: str) -> PauseFlag | None:
    """:meth:`Pauses.paused` inside the caller's transaction."""
    c = pause_flag.c
    query = sa.select(c.scope, c.target, c.who, c.why, c.created_at).where(
        sa.or_(
            sa.and_(c.scope == "run", c.target == run_id),
            sa.and_(c.scope == "dataset", c.target == dataset),
            c.scope == "all",
        )
    )
    flags = [PauseFlag(*row) for row in connection.execute(query)]
    return min(flags, key=lambda flag: SCOPES.index(flag.scope), default=None)


def wanted_by_others(connection: sa.Connection, key: str, run_id: str) -> bool:
    """Whether another live run that nobody paused wants a task too."""
    query = (
        sa.select(run.c.run_id, run.c.dataset)
        .join(run_task, run_task.c.run_id == run.c.run_id)
        .where(run_task.c.task_key == key, run.c.run_id != run_id, run.c.state.in_(("PLANNED", "RUNNING")))
    )
    return any(
        effective_pause(connection, other, dataset) is None
        for other, dataset in connection.execute(query).all()
    )


def _covered(
    connection: sa.Connection, scope: str, target: str, states: Sequence[str] = ("PLANNED", "RUNNING")
) -> list[str]:
    """Runs under a flag, in states in which they may still have to be moved."""
    query = sa.select(run.c.run_id).where(run.c.state.in_(states)).order_by(run.c.run_id)
    if scope != "all":
        query = query.where((run.c.run_id if scope == "run" else run.c.dataset) == target)
    return list(connection.execute(query).scalars())


def _locked(connection: sa.Connection, run_id: str) -> tuple[str, str]:
    """State and data set of a run that nobody else moves until this transaction ends."""
    row = connection.execute(
        sa.select(run.c.state, run.c.dataset).where(run.c.run_id == run_id).with_for_update()
    ).one_or_none()
    if row is None:
        raise StateError(f"there is no run {run_id}")
    return row.state, row.dataset


def _settle(connection: sa.Connection, db: Database, run_id: str) -> PauseFlag | None:
    """:meth:`Pauses.settle_pause` inside the caller's transaction."""
    state, dataset = _locked(connection, run_id)
    # Looked up behind the lock: whoever waited for it sees what the one before has done.
    flag = effective_pause(connection, run_id, dataset)
    if flag is not None and state in ("PLANNED", "RUNNING", "PAUSED"):
        if not _under_way(connection, db, run_id):
            move_run(connection, db, run_id, "PAUSED", flag.told)
    return flag


def _under_way(connection: sa.Connection, db: Database, run_id: str) -> bool:
    """Whether somebody works for this run: a task that goes on for another run does not count."""
    query = (
        sa.select(task.c.key)
        .join(run_task, run_task.c.task_key == task.c.key)
        .where(run_task.c.run_id == run_id, task.c.state == "RUNNING", task.c.lease_until > db.now)
    )
    keys = connection.execute(query).scalars().all()
    return any(not wanted_by_others(connection, key, run_id) for key in keys)


def _check(scope: str, target: str) -> None:
    if scope not in SCOPES:
        raise ConfigError(f"pause scope {scope!r}: use one of {', '.join(SCOPES)}")
    if (scope == "all") == bool(target):
        raise ConfigError("scope 'all' takes no target; 'run' and 'dataset' need one")
