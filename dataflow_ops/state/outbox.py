"""Events for the outside, written in the transaction that made them true and sent afterwards.

An event is sent at least once: whoever sends it marks it only after the receiver has it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from dataflow_ops.state.database import LOCK_DELIVERY, Database, dump
from dataflow_ops.state.tables import delivery, outbox


@dataclass(frozen=True, slots=True)
class Event:
    """One event: ``topic`` says what happened (``task.success``), ``subject`` to whom."""

    id: int
    topic: str
    subject: str
    payload: Mapping[str, Any]
    created_at: float


def emit_all(
    connection: sa.Connection, db: Database, topic: str, events: Sequence[tuple[str, Mapping[str, object]]]
) -> None:
    """:func:`emit` for many subjects, each with its payload, in one statement."""
    if not events:
        return
    if not db.is_postgres:
        now = connection.execute(sa.select(db.now)).scalar_one()
        connection.execute(
            sa.insert(outbox),
            [
                {"topic": topic, "subject": subject, "payload": dump(payload), "created_at": now}
                for subject, payload in events
            ],
        )
        return
    # One array per column: a hundred thousand events cost one round trip.
    columns = ([subject for subject, _ in events], [dump(payload) for _, payload in events])
    given = (
        sa.func.unnest(*(sa.bindparam(None, column, sa.ARRAY(sa.Text), unique=True) for column in columns))
        .table_valued("subject", "payload", name="given")
        .render_derived()
    )
    rows = sa.select(sa.literal(topic), given.c.subject, given.c.payload, db.now)
    connection.execute(sa.insert(outbox).from_select(["topic", "subject", "payload", "created_at"], rows))


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
        """Delete events older than this that no delivery waits for; return how many.

        The newest event stays whatever its age: its id is never given again, so that no receiver takes a new
        event for one that it has seen.
        """
        waits = sa.exists().where(delivery.c.event_id == outbox.c.id, delivery.c.state == "PENDING")
        old = [
            outbox.c.created_at < self.db.now - older_than_s,
            outbox.c.id < sa.select(sa.func.max(outbox.c.id)).scalar_subquery(),
            ~waits,
        ]
        with self.db.write() as connection:
            self.db.lock(connection, LOCK_DELIVERY)
            going = sa.select(outbox.c.id).where(*old)
            connection.execute(sa.delete(delivery).where(delivery.c.event_id.in_(going)))
            return len(connection.execute(sa.delete(outbox).where(*old).returning(outbox.c.id)).all())
