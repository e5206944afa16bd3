"""Deliveries as a person sees them: how many wait, which are dead, trying again, giving up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import sqlalchemy as sa

from dataflow_ops.state.database import LOCK_DELIVERY, Database
from dataflow_ops.state.deliveries import DEAD, DROPPED, PENDING, SENT, Interest, missing, promote
from dataflow_ops.state.tables import delivery, outbox

_d = delivery.c
_o = outbox.c
_COLUMNS: Final[tuple[sa.ColumnElement[Any], ...]] = (
    _d.event_id,
    _d.endpoint,
    _o.topic,
    _d.subject,
    _d.state,
    _d.attempts,
    _d.next_attempt_at,
    _d.last_error,
    _o.created_at,
    _d.updated_at,
)


@dataclass(frozen=True, slots=True)
class DeliveryRecord:
    """A delivery as it stands. Times are seconds since 1970 (UTC)."""

    event_id: int
    endpoint: str
    topic: str
    subject: str
    state: str
    attempts: int
    next_attempt_at: float | None
    last_error: str | None
    created_at: float
    updated_at: float


@dataclass(frozen=True, slots=True)
class Backlog:
    """What an endpoint has and has not got.

    Attributes:
        endpoint: its name.
        waiting: events that were neither accepted nor given up.
        oldest_s: how long the oldest of them has been waiting, in seconds; ``None`` where none waits.
        dead: events that were refused or given up, and that nobody dropped.
        sent: events that were accepted, as long as they are kept.
        last_sent_at: when the last one was accepted, seconds since 1970 (UTC).
        last_error: why the oldest waiting one was not sent, where it was tried.
    """

    endpoint: str
    waiting: int = 0
    oldest_s: float | None = None
    dead: int = 0
    sent: int = 0
    last_sent_at: float | None = None
    last_error: str | None = None


class DeliveryDesk:
    """Looking at deliveries, and deciding on dead ones."""

    db: Database

    def deliveries(
        self, state: str | None = None, endpoint: str | None = None, limit: int = 50
    ) -> list[DeliveryRecord]:
        """Deliveries (in a state, to an endpoint), the oldest event first."""
        query = (
            sa.select(*_COLUMNS)
            .select_from(delivery.join(outbox, _o.id == _d.event_id))
            .order_by(_d.event_id, _d.endpoint)
            .limit(limit)
        )
        if state is not None:
            query = query.where(_d.state == state)
        if endpoint is not None:
            query = query.where(_d.endpoint == endpoint)
        with self.db.read() as connection:
            return [DeliveryRecord(*row) for row in connection.execute(query)]

    def retry_deliveries(self, ids: Sequence[int] | None, endpoint: str | None = None) -> int:
        """Let deliveries be tried anew, now: dead ones, and by id also those whose next try is later.

        Args:
            ids: of events; ``None`` for all dead ones.
            endpoint: only to this one.

        Returns:
            How many there were.
        """
        with self.db.write() as connection:
            self.db.lock(connection, LOCK_DELIVERY)
            anew = _moved(
                connection,
                [_d.state == DEAD],
                ids,
                endpoint,
                state=PENDING,
                attempts=0,
                updated_at=self.db.now,
            )
            self._promote(connection, anew)
            if ids is None:
                return len(anew)
            sooner = [_d.state == PENDING, _d.owner.is_(None), _d.next_attempt_at > self.db.now]
            return len(anew) + len(_moved(connection, sooner, ids, endpoint, next_attempt_at=self.db.now))

    def drop_deliveries(self, ids: Sequence[int] | None, endpoint: str | None = None) -> int:
        """Give deliveries up that are dead or wait; the next one of the subject takes its turn.

        Args:
            ids: of events; ``None`` for all of the endpoint.
            endpoint: only to this one; must be named where no ids are.

        Returns:
            How many there were.
        """
        if ids is None and endpoint is None:
            return 0
        with self.db.write() as connection:
            self.db.lock(connection, LOCK_DELIVERY)
            gone = _moved(
                connection,
                [_d.state.in_((DEAD, PENDING))],
                ids,
                endpoint,
                state=DROPPED,
                next_attempt_at=None,
                updated_at=self.db.now,
            )
            self._promote(connection, gone)
        return len(gone)

    def backlog(self, interests: Sequence[Interest] = ()) -> list[Backlog]:
        """How every endpoint stands that was ever sent to, or is wanted now; by name.

        Args:
            interests: of the endpoints that are configured: events that no relay has looked at yet are
                counted in.
        """
        with self.db.read() as connection:
            now = connection.execute(sa.select(self.db.now)).scalar_one()
            known = {one.endpoint for one in interests}
            numbers: dict[tuple[str, str], int] = {}
            last: dict[str, float | None] = {}
            for name, state, number, sent_at in connection.execute(
                sa.select(_d.endpoint, _d.state, sa.func.count(), sa.func.max(_d.sent_at)).group_by(
                    _d.endpoint, _d.state
                )
            ):
                known.add(name)
                numbers[name, state] = number
                if state == SENT:
                    last[name] = sent_at
            fresh = {one.endpoint: _not_handed_out(connection, one) for one in interests}
            found = []
            for name in sorted(known):
                oldest, why = _oldest(connection, name) if numbers.get((name, PENDING)) else (None, None)
                more, began = fresh.get(name, (0, None))
                times = [at for at in (oldest, began) if at is not None]
                found.append(
                    Backlog(
                        endpoint=name,
                        waiting=numbers.get((name, PENDING), 0) + more,
                        oldest_s=max(0.0, now - min(times)) if times else None,
                        dead=numbers.get((name, DEAD), 0),
                        sent=numbers.get((name, SENT), 0),
                        last_sent_at=last.get(name),
                        last_error=why,
                    )
                )
        return found

    def _promote(self, connection: sa.Connection, moved: Sequence[tuple[str, str]]) -> None:
        for endpoint in sorted({name for name, _ in moved}):
            promote(connection, self.db, endpoint, [subject for name, subject in moved if name == endpoint])


def _moved(
    connection: sa.Connection,
    where: list[sa.ColumnElement[bool]],
    ids: Sequence[int] | None,
    endpoint: str | None,
    **values: Any,
) -> list[tuple[str, str]]:
    """Change deliveries; return endpoint and subject of each."""
    if ids is not None:
        where = [*where, _d.event_id.in_(sorted(set(ids)))]
    if endpoint is not None:
        where = [*where, _d.endpoint == endpoint]
    changed = connection.execute(
        sa.update(delivery).where(*where).values(owner=None, **values).returning(_d.endpoint, _d.subject)
    )
    return [(row.endpoint, row.subject) for row in changed]


def _not_handed_out(connection: sa.Connection, interest: Interest) -> tuple[int, float | None]:
    query = sa.select(sa.func.count(), sa.func.min(_o.created_at)).where(*missing(interest))
    number, began = connection.execute(query).one()
    return number, began


def _oldest(connection: sa.Connection, endpoint: str) -> tuple[float | None, str | None]:
    query = (
        sa.select(_o.created_at, _d.last_error)
        .select_from(delivery.join(outbox, _o.id == _d.event_id))
        # The oldest of all is the first of its subject: only those have a time.
        .where(_d.endpoint == endpoint, _d.next_attempt_at.is_not(None))
        .order_by(_d.event_id)
        .limit(1)
    )
    row = connection.execute(query).one_or_none()
    return (None, None) if row is None else (row.created_at, row.last_error)
