"""Deliveries of events to outside systems: which ones there are, which come next, and what became of them.

The events stay what they are; a row here says how far one of them is on its way to one endpoint. Of each
subject only the earliest pending delivery has a time for its next try: the others wait behind it, and cost
nothing to look past.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import sqlalchemy as sa

from dataflow_ops.state.database import LOCK_DELIVERY, Database
from dataflow_ops.state.outbox import Event
from dataflow_ops.state.tables import delivery, outbox

_d = delivery.c
_o = outbox.c

DeliveryState = Literal["PENDING", "SENT", "DEAD", "DROPPED"]
PENDING: Final[DeliveryState] = "PENDING"
SENT: Final[DeliveryState] = "SENT"
DEAD: Final[DeliveryState] = "DEAD"
DROPPED: Final[DeliveryState] = "DROPPED"
DELIVERY_STATES: Final = (PENDING, SENT, DEAD, DROPPED)


@dataclass(frozen=True, slots=True)
class Interest:
    """Which events an endpoint is to get.

    Attributes:
        endpoint: its name.
        topics: patterns; ``*`` stands for any characters.
        since: seconds since 1970 (UTC); older events are not sent.
    """

    endpoint: str
    topics: tuple[str, ...]
    since: float = 0.0


@dataclass(frozen=True, slots=True)
class Due:
    """A delivery that was claimed for sending; ``attempts`` were made before."""

    event: Event
    attempts: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one try.

    Attributes:
        event_id: of the event.
        state: ``PENDING``: it is tried again.
        error: why it was not sent.
        wait_s: how long until it is tried again.
        counted: whether the receiver may have seen it.
    """

    event_id: int
    state: DeliveryState
    error: str = ""
    wait_s: float = 0.0
    counted: bool = True


class Deliveries:
    """Deliveries as a relay sees them. Any number of relays may be at work on one endpoint."""

    db: Database

    def hand_out(self, interest: Interest, after: int = 0, limit: int = 5_000) -> tuple[int, int | None]:
        """Make deliveries of events that have none yet for the endpoint, oldest first.

        Args:
            interest: the endpoint, and what it wants.
            after: look only at events with a higher id.
            limit: how many at most.

        Returns:
            How many were made, and from where to go on: ``None`` when there are no more.
        """
        wanted = [_o.id > after, *missing(interest)]
        with self.db.read() as connection:
            page = sa.select(_o.id).where(*wanted).order_by(_o.id).limit(limit).subquery()
            number, last = connection.execute(sa.select(sa.func.count(), sa.func.max(page.c.id))).one()
        if not number:
            return 0, None
        with self.db.write() as connection:
            self.db.lock(connection, LOCK_DELIVERY)
            columns = ["event_id", "endpoint", "subject", "state", "attempts", "updated_at"]
            # Looked for again: meanwhile another relay may have made them, or the events may have gone.
            rows = sa.select(
                _o.id,
                sa.literal(interest.endpoint),
                _o.subject,
                sa.literal(PENDING),
                sa.literal(0),
                self.db.now,
            ).where(_o.id <= last, *wanted)
            made = connection.execute(
                sa.insert(delivery).from_select(columns, rows).returning(_d.subject)
            ).scalars()
            subjects = list(made)
            promote(connection, self.db, interest.endpoint, subjects)
        return len(subjects), last if number == limit else None

    def settled_event(self, after: int, age_s: float) -> int:
        """The highest event id after ``after`` that is older than ``age_s`` seconds, else ``after``."""
        query = sa.select(sa.func.max(_o.id)).where(_o.id > after, _o.created_at < self.db.now - age_s)
        with self.db.read() as connection:
            return connection.execute(query).scalar() or after

    def exchange(
        self,
        endpoint: str,
        owner: str,
        outcomes: Sequence[Outcome],
        room: int,
        lease_s: float,
    ) -> list[Due]:
        """Record what became of deliveries, and claim the next ones, in one transaction.

        An event is claimed only when no earlier one of its subject is pending. Calling it again with the same
        outcomes changes nothing more.

        Args:
            endpoint: where they go.
            owner: who sends them.
            outcomes: of deliveries that the owner had claimed.
            room: how many to claim at most.
            lease_s: how long nobody else may claim them.
        """
        with self.db.write() as connection:
            self.db.lock(connection, LOCK_DELIVERY)
            self._record(connection, endpoint, owner, outcomes)
            return self._claim(connection, endpoint, owner, room, lease_s) if room > 0 else []

    def delivery_owners(self) -> list[str]:
        """Who has claimed deliveries that are pending still."""
        query = sa.select(_d.owner).where(_d.state == PENDING, _d.owner.is_not(None)).distinct()
        with self.db.read() as connection:
            return sorted(connection.execute(query).scalars())

    def free_deliveries(self, owner: str) -> int:
        """End the claims of an owner that is known to be gone; return how many it had."""
        with self.db.write() as connection:
            self.db.lock(connection, LOCK_DELIVERY)
            freed = connection.execute(
                sa.update(delivery)
                .where(_d.state == PENDING, _d.owner == owner)
                .values(owner=None, next_attempt_at=self.db.now)
                .returning(_d.event_id)
            ).all()
        return len(freed)

    def _record(
        self, connection: sa.Connection, endpoint: str, owner: str, outcomes: Sequence[Outcome]
    ) -> None:
        over: list[str] = []
        for one in outcomes:
            values: dict[str, Any] = {
                "state": one.state,
                "attempts": _d.attempts + int(one.counted),
                "next_attempt_at": self.db.now + one.wait_s if one.state == PENDING else None,
                "owner": None,
                "last_error": one.error or None,
                "sent_at": self.db.now if one.state == SENT else None,
                "updated_at": self.db.now,
            }
            where = [_d.endpoint == endpoint, _d.event_id == one.event_id, _d.state == PENDING]
            if one.state != SENT:
                # What was accepted is true whoever says so; a failure says nothing of another's try.
                where.append(_d.owner == owner)
            subject = connection.execute(
                sa.update(delivery).where(*where).values(**values).returning(_d.subject)
            ).scalar()
            if subject is not None and one.state != PENDING:
                over.append(subject)
        promote(connection, self.db, endpoint, over)

    def _claim(
        self, connection: sa.Connection, endpoint: str, owner: str, room: int, lease_s: float
    ) -> list[Due]:
        found = self._first_due(connection, endpoint, room)
        if not found:
            return []
        connection.execute(
            sa.update(delivery)
            .where(_d.endpoint == endpoint, _d.event_id.in_(sorted(found)))
            .values(owner=owner, next_attempt_at=self.db.now + lease_s)
        )
        events = sa.select(_o.id, _o.topic, _o.subject, _o.payload, _o.created_at).where(
            _o.id.in_(sorted(found))
        )
        due = [
            Due(Event(row.id, row.topic, row.subject, json.loads(row.payload), row.created_at), found[row.id])
            for row in connection.execute(events)
        ]
        order = {event_id: i for i, event_id in enumerate(found)}
        return sorted(due, key=lambda one: order[one.event.id])

    def _first_due(self, connection: sa.Connection, endpoint: str, room: int) -> dict[int, int]:
        """Events whose turn it is, and how often each was tried: those that have been ready longest."""
        # As a value: the database's clock as a function would keep PostgreSQL from the index.
        now = connection.execute(sa.select(self.db.now)).scalar_one()
        query = (
            sa.select(_d.event_id, _d.subject, _d.attempts)
            .where(_d.endpoint == endpoint, _d.next_attempt_at <= now)
            .order_by(_d.next_attempt_at)
            .limit(room)
        )
        while rows := connection.execute(query).all():
            first = _heads(connection, self.db, endpoint, {row.subject for row in rows})
            behind = [row.event_id for row in rows if row.event_id not in first]
            if behind:
                # An earlier one of the subject came late, or was put back: they wait for it.
                connection.execute(
                    sa.update(delivery)
                    .where(_d.endpoint == endpoint, _d.event_id.in_(behind))
                    .values(next_attempt_at=None)
                )
            if len(behind) < len(rows):
                return {row.event_id: row.attempts for row in rows if row.event_id in first}
        return {}


def missing(interest: Interest) -> list[sa.ColumnElement[bool]]:
    """Conditions on events that an endpoint is to get and that have no delivery to it yet."""
    like = [_o.topic.like(_as_like(pattern), escape="\\") for pattern in interest.topics]
    there = sa.exists().where(_d.event_id == _o.id, _d.endpoint == interest.endpoint)
    return [sa.or_(sa.false(), *like), _o.created_at >= interest.since, ~there]


def promote(connection: sa.Connection, db: Database, endpoint: str, subjects: Collection[str]) -> None:
    """Let the earliest pending delivery of each of these subjects be tried now, unless it has a time already.

    The caller holds :data:`~dataflow_ops.state.database.LOCK_DELIVERY`.
    """
    if not subjects:
        return
    heads = _heads(connection, db, endpoint, subjects)
    if not heads:
        return
    # By primary key alone: any further condition tempts a planner to scan all that wait.
    connection.execute(
        sa.update(delivery)
        .where(_d.event_id == sa.bindparam("event"), _d.endpoint == endpoint)
        .values(next_attempt_at=sa.func.coalesce(_d.next_attempt_at, db.now)),
        [{"event": head} for head in sorted(heads)],
    )


def _heads(connection: sa.Connection, db: Database, endpoint: str, subjects: Collection[str]) -> set[int]:
    """The earliest pending delivery of each subject that has one."""
    listed = db.listed(sorted(set(subjects)))
    pending = delivery.alias("pending")
    # One look into the index for each subject, however many deliveries wait behind its first.
    first = (
        sa.select(pending.c.event_id)
        .where(
            pending.c.endpoint == endpoint,
            pending.c.subject == listed.c.value,
            pending.c.state == PENDING,
        )
        .order_by(pending.c.event_id)
        .limit(1)
        .scalar_subquery()
    )
    found = connection.execute(sa.select(first).select_from(listed)).scalars()
    return {event_id for event_id in found if event_id is not None}


def _as_like(pattern: str) -> str:
    for special in ("\\", "%", "_"):
        pattern = pattern.replace(special, "\\" + special)
    return pattern.replace("*", "%")
