"""Published versions of data sets, and which one is current."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from dataflow_ops.errors import VersionError
from dataflow_ops.state.database import Database
from dataflow_ops.state.outbox import emit
from dataflow_ops.state.records import COMPACT, INCREMENTAL, VersionRecord
from dataflow_ops.state.tables import dataset_current, dataset_version, run
from dataflow_ops.state.upsert import insert_missing, upsert
from dataflow_ops.state.version_events import record_event

_v = dataset_version.c
_QUERY = (
    sa.select(
        _v.dataset,
        _v.version_id,
        _v.manifest_sha256,
        _v.manifest_uri,
        _v.run_id,
        _v.state,
        _v.created_at,
        dataset_current.c.version_id.is_not(None).label("is_current"),
        run.c.mode,
        run.c.data_date,
        _v.base,
    )
    .select_from(dataset_version)
    .join(run, run.c.run_id == _v.run_id)
    .outerjoin(
        dataset_current,
        sa.and_(dataset_current.c.dataset == _v.dataset, dataset_current.c.version_id == _v.version_id),
    )
)

PUBLISHED = "PUBLISHED"
"""State of a version that was let through, by the rules or by a person."""
REJECTED = "REJECTED"
"""State of a version that a person refused; it can't become current."""
REMOVED = "REMOVED"
"""State of a version whose files are gone; it can't become current."""
INCREMENT = INCREMENTAL
"""Mode of runs that take one interval's documents; versions of theirs that build on none can't be current."""


class Versions:
    """Versions of data sets."""

    db: Database

    def add_version(
        self,
        dataset: str,
        version_id: str,
        manifest_sha256: str,
        manifest_uri: str,
        run_id: str,
        state: str,
        base: str | None = None,
    ) -> VersionRecord:
        """Record a version. The same manifest again for a data set changes nothing.

        Args:
            dataset: which data set.
            version_id: unique in it.
            manifest_sha256: hex digest of the manifest.
            manifest_uri: relative to the storage root.
            run_id: the run that made it.
            state: ``PUBLISHED``, ``AWAITING_APPROVAL`` or ``REJECTED``.
            base: version that it builds on.

        Returns:
            The version that holds this manifest: the new one, or the one that was there.

        Raises:
            VersionError: the id exists with another manifest, or the base is not there (any more).
        """
        with self.db.write() as connection:
            if base is not None and _known(connection, dataset, base).state == REMOVED:
                raise VersionError(f"version {base} of {dataset} was removed; nothing can build on it")
            same = _QUERY.where(_v.dataset == dataset, _v.manifest_sha256 == manifest_sha256)
            there = connection.execute(same).one_or_none()
            if there is not None:
                return _record(there)
            insert_missing(
                connection,
                dataset_version,
                [
                    {
                        "dataset": dataset,
                        "version_id": version_id,
                        "manifest_sha256": manifest_sha256,
                        "manifest_uri": manifest_uri,
                        "run_id": run_id,
                        "state": state,
                        "created_at": connection.execute(sa.select(self.db.now)).scalar_one(),
                        "base": base,
                    }
                ],
            )
            added = connection.execute(same).one_or_none()
            if added is None:
                raise VersionError(f"version {version_id} of {dataset} exists with another manifest")
            if added.version_id == version_id:
                told = {"version": version_id, "state": state, "run": run_id}
                emit(connection, self.db, "version.added", dataset, told)
                if state == PUBLISHED:
                    emit(connection, self.db, "version.published", dataset, told)
            return _record(added)

    def set_version_state(
        self, dataset: str, version_id: str, state: str, action: str = "", who: str = "", note: str = ""
    ) -> None:
        """Approve, reject or remove a version.

        Args:
            dataset: which data set.
            version_id: which version.
            state: its new state.
            action: what to write into the history with it; ``""``: nothing.
            who: who decided.
            note: why.

        Raises:
            VersionError: no such version, or it is current and would be rejected or removed, or others that
                are kept build on it and it would be removed.
        """
        with self.db.write() as connection:
            version = _known(connection, dataset, version_id)
            if version.is_current and state in (REJECTED, REMOVED):
                raise VersionError(f"version {version_id} of {dataset} is current: roll back first")
            if state == REMOVED:
                above = (
                    sa.select(_v.version_id)
                    .join(run, run.c.run_id == _v.run_id)
                    .where(
                        _v.dataset == dataset,
                        _v.base == version_id,
                        _v.state != REMOVED,
                        run.c.mode != COMPACT,  # has copies of its own
                    )
                )
                builds = connection.execute(above.order_by(_v.version_id)).scalars().first()
                if builds is not None:
                    raise VersionError(f"version {version_id} of {dataset} is needed: {builds} builds on it")
            if action:
                record_event(connection, self.db, dataset, version_id, action, who, note)
            _move(connection, self.db, version, state)

    def set_current(
        self,
        dataset: str,
        version_id: str,
        who: str = "",
        action: str = "",
        note: str = "",
        *,
        instead_of: str | None = None,
    ) -> VersionRecord:
        """Point *current* at a version, which is published with it, and write the event; in one transaction.

        Args:
            dataset: which data set.
            version_id: which version.
            who: who decided: a person, or a run.
            action: what to write into the version's history with it; ``""``: nothing.
            note: why.
            instead_of: move the pointer from this version only; None: from whichever it is.

        Raises:
            VersionError: no such version, it was rejected or removed, it is an increment, or another one than
                ``instead_of`` is current; nothing was changed.
        """
        with self.db.write() as connection:
            if instead_of is not None:
                now = connection.execute(
                    sa.select(dataset_current.c.version_id)
                    .where(dataset_current.c.dataset == dataset)
                    .with_for_update()
                ).scalar()
                if now != instead_of:
                    raise VersionError(f"version {now} of {dataset} is current now, not {instead_of}")
            if action:
                record_event(connection, self.db, dataset, version_id, action, who, note)
            return _point(connection, self.db, dataset, version_id, who)

    def rollback(self, dataset: str, version_id: str | None = None, who: str = "") -> VersionRecord:
        """Point *current* at an older version: the one named, or the newest good one before the current.

        Raises:
            VersionError: no such version, it was rejected, it is not older, or there is none before.
        """
        with self.db.write() as connection:
            of_dataset = _QUERY.where(_v.dataset == dataset).order_by(_v.created_at, _v.version_id)
            history = [_record(row) for row in connection.execute(of_dataset)]
            at = next((i for i, version in enumerate(history) if version.is_current), None)
            if at is None:
                raise VersionError(f"{dataset} has no current version to roll back from")
            older = [v.version_id for v in history[:at] if v.state == "PUBLISHED"]
            if version_id is None:
                if not older:
                    raise VersionError(f"{dataset} has no version before {history[at].version_id}")
                version_id = older[-1]
            _known(connection, dataset, version_id)
            if version_id not in (v.version_id for v in history[:at]):
                raise VersionError(f"version {version_id} of {dataset} is not older than the current one")
            return _point(connection, self.db, dataset, version_id, who)

    def current(self, dataset: str) -> VersionRecord | None:
        """The current version, or ``None``."""
        with self.db.read() as connection:
            row = connection.execute(
                _QUERY.where(_v.dataset == dataset, dataset_current.c.version_id.is_not(None))
            ).one_or_none()
            return None if row is None else _record(row)

    def versions(self, dataset: str | None = None) -> list[VersionRecord]:
        """All versions (of a data set), newest first."""
        query = _QUERY.order_by(_v.created_at.desc(), _v.version_id.desc())
        if dataset is not None:
            query = query.where(_v.dataset == dataset)
        with self.db.read() as connection:
            return [_record(row) for row in connection.execute(query)]


def _move(connection: sa.Connection, db: Database, version: VersionRecord, state: str) -> None:
    """Let a version be in another state."""
    connection.execute(
        sa.update(dataset_version)
        .where(_v.dataset == version.dataset, _v.version_id == version.version_id)
        .values(state=state)
    )
    told = {"version": version.version_id, "state": state, "run": version.run_id}
    emit(connection, db, "version.state", version.dataset, told)
    if state == PUBLISHED and version.state != PUBLISHED:
        emit(connection, db, "version.published", version.dataset, told)


def _point(connection: sa.Connection, db: Database, dataset: str, version_id: str, who: str) -> VersionRecord:
    version = _known(connection, dataset, version_id)
    if version.state in (REJECTED, REMOVED):
        was = version.state.lower()
        raise VersionError(f"version {version_id} of {dataset} was {was} and can't become current")
    if version.is_increment:
        raise VersionError(f"version {version_id} of {dataset} is an increment and can't become current")
    if version.state != PUBLISHED:
        # In one transaction: a version that was current once never looks as if nobody had let it be.
        _move(connection, db, version, PUBLISHED)
    before = connection.execute(
        sa.select(dataset_current.c.version_id).where(dataset_current.c.dataset == dataset)
    ).scalar()
    upsert(
        connection,
        dataset_current,
        [
            {
                "dataset": dataset,
                "version_id": version_id,
                "who": who,
                "changed_at": connection.execute(sa.select(db.now)).scalar_one(),
            }
        ],
    )
    emit(
        connection,
        db,
        "version.current",
        dataset,
        {"version": version_id, "before": before, "who": who},
    )
    return _known(connection, dataset, version_id)


def _known(connection: sa.Connection, dataset: str, version_id: str) -> VersionRecord:
    row = connection.execute(_QUERY.where(_v.dataset == dataset, _v.version_id == version_id)).one_or_none()
    if row is None:
        raise VersionError(f"{dataset} has no version {version_id}")
    return _record(row)


def _record(row: Any) -> VersionRecord:
    return VersionRecord(*row)
