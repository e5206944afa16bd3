"""Events for the outside, written in the transaction that made them true and sent afterwards.

An event is sent at least once: whoever sends it marks it only after the receiver has it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from dataflow_ops.state.database import Database, dump
from dataflow_ops.state.tables import outbox


@dataclass(frozen=True, slots=True)
class Event:
    """One event: ``topic`` says what happened (``task.success``), ``subject`` to whom."""

    id: int
    topic: str
    subject: str
    payload: Mapping[str, Any]
    created_at: float


def emit(
    connection: sa.Connection, db: Database, topic: str, subject: str, payload: Mapping[str, object]
) -> None:
    """Add an event inside the caller's transaction."""
    connection.execute(
        sa.insert(outbox).values(topic=topic, subject=subject, payload=dump(payload), created_at=db.now)
    )


class Outbox:
    """Events on their way out."""

    db: Database

    def pending_events(self, limit: int = 1000) -> list[Event]:
        """Events not yet sent, oldest first."""
        c = outbox.c
        query = (
            sa.select(c.id, c.topic, c.subject, c.payload, c.created_at)
            .where(c.sent_at.is_(None))
            .order_by(c.id)
            .limit(limit)
        )
        with self.db.read() as connection:
            return [
                Event(row.id, row.topic, row.subject, json.loads(row.payload), row.created_at)
                for row in connection.execute(query)
            ]

    def mark_sent(self, ids: Sequence[int]) -> None:
        """The receiver has these events."""
        with self.db.write() as connection:
            statement = (
                sa.update(outbox)
                .where(outbox.c.id == sa.bindparam("event"), outbox.c.sent_at.is_(None))
                .values(sent_at=self.db.now)
            )
            if ids:
                connection.execute(statement, [{"event": i} for i in ids])

    def prune_events(self, older_than_s: float = 7 * 86_400) -> int:
        """Delete sent events older than this; return how many."""
        statement = (
            sa.delete(outbox).where(outbox.c.sent_at < self.db.now - older_than_s).returning(outbox.c.id)
        )
        with self.db.write() as connection:
            return len(connection.execute(statement).all())
