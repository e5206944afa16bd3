"""Leases on the days of a data set: whoever holds one may work there until it expires, unless renewed.

Each move is one statement against the database's clock, so that of many who ask at once exactly one gets it.
A row is never deleted: its epoch only grows, and fences off whoever held it before.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from dataflow_ops.errors import LeaseLost
from dataflow_ops.state.database import Database
from dataflow_ops.state.tables import lease

_c = lease.c


@dataclass(frozen=True, slots=True)
class Lease:
    """A lease as it was given or read.

    Attributes:
        dataset: data set.
        layer: what part of the work it covers.
        day: ISO date; ``""`` for all days of the layer, one at a time.
        owner: who holds it.
        epoch: grows by one each time that another owner takes it.
        until: when it expires, seconds since 1970 by the database's clock.
        left_s: seconds until then when it was read; not above 0 where nobody holds it.
    """

    dataset: str
    layer: str
    day: str
    owner: str
    epoch: int
    until: float
    left_s: float

    @property
    def held(self) -> bool:
        """Whether it had not expired when it was read."""
        return self.left_s > 0


class Leases:
    """Leases by (data set, layer, day)."""

    db: Database

    def acquire_lease(
        self,
        dataset: str,
        layer: str,
        day: str,
        owner: str,
        seconds: float,
        *,
        instead_of: Lease | None = None,
    ) -> Lease | None:
        """Take a lease that is free or expired, or prolong one's own.

        Args:
            dataset: data set.
            layer: what part of the work.
            day: ISO date, or ``""`` for all days.
            owner: who asks; the same owner gets the same lease again, with the same epoch.
            seconds: how long it holds unless renewed.
            instead_of: a lease whose holder is known to be gone; it is taken although it has not expired,
                unless it changed hands since it was read.

        Returns:
            The lease, or None where somebody else holds it.
        """
        free = sa.or_(_c.owner == owner, _c.lease_until <= self.db.now)
        if instead_of is not None:
            free = sa.or_(free, sa.and_(_c.owner == instead_of.owner, _c.epoch == instead_of.epoch))
        values = {"owner": owner, "lease_until": self.db.now + seconds}
        with self.db.write() as connection:
            row = connection.execute(
                self._insert()
                .values(dataset=dataset, layer=layer, day=day, epoch=1, **values)
                .on_conflict_do_update(
                    index_elements=["dataset", "layer", "day"],
                    set_={**values, "epoch": _c.epoch + sa.case((_c.owner == owner, 0), else_=1)},
                    where=free,
                )
                .returning(*self._columns())
            ).one_or_none()
        return None if row is None else Lease(*row)

    def renew_lease(self, held: Lease, seconds: float) -> Lease:
        """Prolong a lease, also one that expired while nobody else took it.

        Raises:
            LeaseLost: another owner has taken it since.
        """
        with self.db.write() as connection:
            row = connection.execute(
                sa.update(lease)
                .where(*_fence(held))
                .values(lease_until=self.db.now + seconds)
                .returning(*self._columns())
            ).one_or_none()
        if row is None:
            what = f"{held.dataset}, {held.layer}, {held.day or 'all days'}"
            raise LeaseLost(f"the lease on {what} is no longer held by {held.owner}: another has taken it")
        return Lease(*row)

    def release_lease(self, held: Lease) -> bool:
        """Give a lease back; return whether it was still one's own."""
        with self.db.write() as connection:
            row = connection.execute(
                sa.update(lease).where(*_fence(held)).values(lease_until=0.0).returning(_c.epoch)
            ).one_or_none()
        return row is not None

    def lease(self, dataset: str, layer: str, day: str) -> Lease | None:
        """The lease as it stands, held or not; None where nobody ever asked for it."""
        query = sa.select(*self._columns()).where(_c.dataset == dataset, _c.layer == layer, _c.day == day)
        with self.db.read() as connection:
            row = connection.execute(query).one_or_none()
        return None if row is None else Lease(*row)

    def _columns(self) -> tuple[sa.ColumnElement[Any], ...]:
        left = _c.lease_until - self.db.now
        return _c.dataset, _c.layer, _c.day, _c.owner, _c.epoch, _c.lease_until, left.label("left_s")

    def _insert(self) -> Any:
        # Both dialects have the same method, without a common type that says so.
        return postgresql.insert(lease) if self.db.is_postgres else sqlite.insert(lease)


def _fence(held: Lease) -> tuple[sa.ColumnElement[bool], ...]:
    return (
        _c.dataset == held.dataset,
        _c.layer == held.layer,
        _c.day == held.day,
        _c.owner == held.owner,
        _c.epoch == held.epoch,
    )
