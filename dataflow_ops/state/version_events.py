"""What people and runs decided about versions, in the order in which they did."""

from __future__ import annotations

import hashlib
import uuid
from dataclasses import dataclass

import sqlalchemy as sa

from dataflow_ops.state.database import Database
from dataflow_ops.state.outbox import emit
from dataflow_ops.state.tables import version_event
from dataflow_ops.state.upsert import insert_missing

PUBLISHED = "published"
PROMOTED = "promoted"
APPROVED = "approved"
REJECTED = "rejected"
ROLLED_BACK = "rolled_back"
REMOVED = "removed"
RESTORED = "restored"
COMPACTED = "compacted"
ONCE = frozenset({PUBLISHED, COMPACTED})
"""What happens to a version once, however often a killed run says it again."""


@dataclass(frozen=True, slots=True)
class VersionEvent:
    """One decision.

    ``action`` is ``published`` (by the run ``who``), ``promoted`` (a later run made it current),
    ``approved``, ``rejected``, ``rolled_back`` (a person made it current again), ``removed``, ``restored``
    (a run made it again) or ``compacted`` (it was put together from the versions that the note names).
    """

    dataset: str
    version_id: str
    action: str
    who: str
    note: str
    created_at: float


class VersionEvents:
    """The history of the versions of data sets."""

    db: Database

    def add_version_event(self, dataset: str, version_id: str, action: str, who: str, note: str = "") -> bool:
        """Record a decision; that a version was published is recorded once. Returns whether it is new."""
        with self.db.write() as connection:
            return record_event(connection, self.db, dataset, version_id, action, who, note)

    def version_events(self, dataset: str | None = None, limit: int = 1000) -> list[VersionEvent]:
        """What happened to the versions (of a data set), newest first."""
        c = version_event.c
        query = (
            sa.select(c.dataset, c.version_id, c.action, c.who, c.note, c.created_at)
            .order_by(c.created_at.desc(), c.id)
            .limit(limit)
        )
        if dataset is not None:
            query = query.where(c.dataset == dataset)
        with self.db.read() as connection:
            return [VersionEvent(*row) for row in connection.execute(query)]


def record_event(
    connection: sa.Connection,
    db: Database,
    dataset: str,
    version_id: str,
    action: str,
    who: str,
    note: str = "",
) -> bool:
    """:meth:`VersionEvents.add_version_event` inside the caller's transaction."""
    once = hashlib.sha256(f"{action}\0{dataset}\0{version_id}".encode()).hexdigest()[:32]
    row = {
        "id": once if action in ONCE else uuid.uuid4().hex,
        "dataset": dataset,
        "version_id": version_id,
        "action": action,
        "who": who,
        "note": note,
        "created_at": connection.execute(sa.select(db.now)).scalar_one(),
    }
    there = sa.select(version_event.c.id).where(version_event.c.id == row["id"])
    if connection.execute(there).scalar() is not None:
        return False
    insert_missing(connection, version_event, [row])
    if action != PUBLISHED:  # a version that waits for a person has this entry, too: its state says more
        told = {"version": version_id, "who": who, "note": note[:500]}
        emit(connection, db, f"version.{action}", dataset, told)
    return True
