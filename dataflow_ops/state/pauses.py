"""Pause flags. The row is the truth; whatever caches it may only say "paused" sooner."""

from __future__ import annotations

import sqlalchemy as sa

from dataflow_ops.errors import ConfigError
from dataflow_ops.state.database import Database
from dataflow_ops.state.outbox import emit
from dataflow_ops.state.records import PauseFlag
from dataflow_ops.state.tables import pause_flag
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
        return gone is not None

    def paused(self, run_id: str, dataset: str) -> PauseFlag | None:
        """The narrowest flag that holds for a run, or ``None``."""
        with self.db.read() as connection:
            return effective_pause(connection, run_id, dataset)

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


def _check(scope: str, target: str) -> None:
    if scope not in SCOPES:
        raise ConfigError(f"pause scope {scope!r}: use one of {', '.join(SCOPES)}")
    if (scope == "all") == bool(target):
        raise ConfigError("scope 'all' takes no target; 'run' and 'dataset' need one")
