"""Decisions about published versions: approve, reject, roll back; each is written into the history."""

from __future__ import annotations

import getpass
from collections.abc import Sequence
from pathlib import Path

from dataflow_ops.errors import ConfigError, VersionError
from dataflow_ops.layers.export.manifest import canonical_json
from dataflow_ops.pipeline.chain import records_below
from dataflow_ops.pipeline.home import open_home
from dataflow_ops.pipeline.overtaken import Overtaken, overtaken
from dataflow_ops.pipeline.version_shelf import VersionShelf, why_not
from dataflow_ops.pipeline.version_states import (
    INCREMENT,
    PUBLISHED,
    REJECTED,
    REMOVED,
    SHOWN_WAITING,
    WAITING,
    shown,
)
from dataflow_ops.state import version_events as events
from dataflow_ops.state.records import VersionRecord
from dataflow_ops.storage.chunk_store import ChunkStore


def open_versions(home_path: Path) -> VersionBook:
    """The versions of a home."""
    return VersionBook(open_home(home_path, create=False))


class VersionBook(VersionShelf):
    """All versions in one home, and which one is current."""

    def approval(
        self, version: str | None, dataset: str | None = None, *, anyway: bool = False
    ) -> tuple[str, str]:
        """The version that :meth:`approve` would take, and a sentence on what becomes of the current one.

        Args:
            version: id or its start; None for the newest one that waits and was not overtaken.
            dataset: of this data set.
            anyway: whether an overtaken one may become current.

        Raises:
            ConfigError: no version waits, or not this one, or it was overtaken.
            VersionError: no such version.
        """
        record, now = self._to_approve(version, dataset, anyway)
        if record.is_increment:
            return record.version_id, f"{record.version_id} will be published; the current version stays."
        new = f"{record.version_id} ({self._documents(record):,} documents) becomes current"
        if now is None:
            return record.version_id, f"{new}; none was before."
        late = overtaken(self._versions(record.dataset), record)
        lost = f", and {late.leaves} leave(s) it" if late is not None else ""
        old = f"{now.version_id} ({self._documents(now):,} documents)"
        return record.version_id, f"{new} in the place of {old}{lost}."

    def approve(
        self,
        version: str | None,
        dataset: str | None = None,
        *,
        who: str = "",
        note: str = "",
        anyway: bool = False,
    ) -> str:
        """Let a version that waits for a person become current; return its id.

        An increment is published and moves no pointer. A version that was rejected may be approved after all,
        if it is named. One that was overtaken would take documents away: it is refused.

        Args:
            version: id or its start; None for the newest one that waits and was not overtaken.
            dataset: of this data set.
            who: who decides; default the user of the operating system.
            note: why, for people.
            anyway: whether an overtaken one, which must be named, may become current.

        Raises:
            ConfigError: no version waits, or not this one, or it was overtaken.
            VersionError: no such version, or its files are damaged or gone.
        """
        record, now = self._to_approve(version, dataset, anyway)
        return self._approve(record, now, who, note)

    def reject(
        self, version: str | None, dataset: str | None = None, *, who: str = "", note: str = ""
    ) -> str:
        """Refuse a version that waits for a person (the newest one), or an older one; return its id.

        Raises:
            ConfigError: no version waits, or this one was rejected before.
            VersionError: no such version, or it is current, or the current one builds on it.
        """
        if version is None:
            waiting = [v for v in self._versions(dataset) if shown(v.state, v.is_current) == SHOWN_WAITING]
            if not waiting:
                raise ConfigError("no version waits for approval; `dataflow versions list` shows them all")
            record = waiting[0]
        else:
            record = self._find(version, dataset)
        if record.state in (REJECTED, REMOVED):
            raise ConfigError(f"{record.version_id} can't be rejected, it was {record.state.lower()} before")
        current = self._state.current(record.dataset)
        if record.is_current or (current is not None and self._builds_on(current, record)):
            below = "" if current is None or record.is_current else f" through {current.version_id}"
            raise VersionError(
                f"{record.version_id} is current{below}; go back to another one first:"
                " dataflow versions rollback VERSION"
            )
        self._state.set_version_state(
            record.dataset, record.version_id, REJECTED, events.REJECTED, who or getpass.getuser(), note
        )
        run = self._state.get_run(record.run_id)
        if run is not None and run.state == "AWAITING_APPROVAL":
            self._state.set_run_state(record.run_id, "reject", f"{record.version_id} was rejected")
        self._refresh(record.dataset, record.version_id)
        return record.version_id

    def rollback(self, version: str, dataset: str | None = None, *, who: str = "", note: str = "") -> str:
        """Make a version current again; return its id.

        Raises:
            VersionError: no such version, its files are damaged or gone, nobody has approved it, or it is an
                increment.
        """
        record = self._find(version, dataset)
        if record.is_increment:
            raise VersionError(f"{record.version_id} can't become current, {why_not(record)}")
        if record.state == REJECTED:
            raise VersionError(
                f"{record.version_id} was rejected; if it is well after all:"
                f" dataflow versions approve {record.version_id}"
            )
        if shown(record.state, record.is_current) == SHOWN_WAITING:
            raise VersionError(
                f"{record.version_id} has never been approved ({self._waits(record)}); if it is well:"
                f" dataflow versions approve {record.version_id}"
            )
        self._make_current(record, events.ROLLED_BACK, who, note)
        self._refresh(record.dataset, record.version_id)
        return record.version_id

    def _to_approve(
        self, version: str | None, dataset: str | None, anyway: bool
    ) -> tuple[VersionRecord, VersionRecord | None]:
        """The version, and the one that was current when it was found fit to take its place."""
        if version is None:
            return self._newest_waiting(dataset, anyway)
        record = self._find(version, dataset)
        if shown(record.state, record.is_current) not in (SHOWN_WAITING, REJECTED):
            raise ConfigError(f"{record.version_id} doesn't wait for approval, {why_not(record)}")
        versions = self._versions(record.dataset)
        late = overtaken(versions, record)
        if late is not None and not anyway:
            raise ConfigError(self._refusal(late))
        return record, _current(versions)

    def _newest_waiting(
        self, dataset: str | None, anyway: bool
    ) -> tuple[VersionRecord, VersionRecord | None]:
        if anyway:
            raise ConfigError("--anyway: name the version that is to become current all the same")
        versions = self._versions(dataset)
        waiting = [v for v in versions if shown(v.state, v.is_current) == SHOWN_WAITING]
        late = []
        for record in waiting:
            beside = [v for v in versions if v.dataset == record.dataset]
            found = overtaken(beside, record)
            if found is None:
                return record, _current(beside)
            late.append(found)
        if late:
            told = "; ".join(f"{one.version.version_id} was {one.told}" for one in late)
            raise ConfigError(
                f"no version waits that can become current without loss: {told}; name one, and"
                " `dataflow versions approve` says what to do instead"
            )
        raise ConfigError("no version waits for approval; `dataflow versions list` shows them all")

    def _refusal(self, late: Overtaken) -> str:
        """Why an overtaken version is not approved, and what to do instead."""
        from dataflow_ops.pipeline.overtaken_days import missing_files

        name, by = late.version.version_id, late.by.version_id
        lines = [
            f"{name} was {late.told}: approved now, {late.leaves} would leave the current version, and"
            f" {self._documents(late.by):,} documents would become {self._documents(late.version):,}."
        ]
        if late.version.mode == INCREMENT and missing_files(self._state, self._chunks, late) == 0:
            lines.append(f"{by} has read all its files since: dataflow versions reject {name}")
        else:
            lines.append(f"Do this instead: {late.instead}")
        return "\n".join([*lines, f"To make it current all the same: {late.anyway}"])

    def _documents(self, record: VersionRecord) -> int:
        return int(self._manifest(record)["totals"]["documents"])

    @property
    def _chunks(self) -> ChunkStore:
        return ChunkStore(self._blobs)

    def _approve(self, record: VersionRecord, now: VersionRecord | None, who: str, note: str) -> str:
        if record.is_increment:
            self._check(record, "be published")
            self._state.set_version_state(
                record.dataset, record.version_id, PUBLISHED, events.APPROVED, who or getpass.getuser(), note
            )
        else:
            # Its files are checked for long: what became current meanwhile would leave unseen.
            self._make_current(record, events.APPROVED, who, note, now.version_id if now else None)
            self._supersede(record, who)
        run = self._state.get_run(record.run_id)
        if run is not None and run.state == "AWAITING_APPROVAL":
            dead = self._state.count_dead_letters("error", run_id=record.run_id)
            self._state.set_run_state(record.run_id, "approve_with_dead" if dead else "approve", "")
        self._refresh(record.dataset, record.version_id)
        return record.version_id

    def _supersede(self, record: VersionRecord, who: str) -> None:
        """What still waits of a day that was run again waits no longer."""
        if record.mode == INCREMENT:
            from dataflow_ops.pipeline.overtaken_days import supersede

            supersede(self._state, self._blobs, record, who or getpass.getuser())

    def _builds_on(self, record: VersionRecord, below: VersionRecord) -> bool:
        chain = records_below(self._state.versions(record.dataset), record.version_id)
        return any(v.version_id == below.version_id for v in chain)

    def _check(self, record: VersionRecord, become: str) -> None:
        if record.state == REMOVED:
            raise VersionError(f"{record.version_id} can't {become}, {why_not(record)}")
        for below in records_below(self._state.versions(record.dataset), record.version_id)[:-1]:
            if below.state in (REJECTED, REMOVED):
                raise VersionError(
                    f"{record.version_id} can't {become}, it builds on {below.version_id}, which was"
                    f" {below.state.lower()}"
                )
        code, output = self.verify(record.version_id, record.dataset)
        if code:
            raise VersionError(f"{record.version_id} is damaged and can't {become}:\n{output}")

    def _make_current(
        self, record: VersionRecord, action: str, who: str, note: str, instead_of: str | None = None
    ) -> None:
        self._check(record, "become current")
        before = self._state.current(record.dataset)
        if record.state == REJECTED:
            # A kill before the pointer moves leaves it waiting: nobody has let it become current yet.
            self._state.set_version_state(record.dataset, record.version_id, WAITING)
        person = who or getpass.getuser()
        self._state.set_current(
            record.dataset, record.version_id, person, action, note, instead_of=instead_of
        )
        mirror = {"dataset": record.dataset, "version": record.version_id, "manifest": record.manifest_uri}
        self._blobs.put(f"versions/current_{record.dataset}.json", canonical_json(mirror), replace=True)
        if before is not None and before.version_id != record.version_id:
            self._refresh(record.dataset, before.version_id)

    def _refresh(self, dataset: str, version_id: str) -> None:
        """Let the version's report say how it stands now."""
        from dataflow_ops.pipeline.reporting import refresh_report

        record = next(v for v in self._state.versions(dataset) if v.version_id == version_id)
        run = self._state.get_run(record.run_id)
        waits = self._waits(record)
        refresh_report(self._blobs, record, "" if run is None else run.state, [waits] if waits else [])


def _current(versions: Sequence[VersionRecord]) -> VersionRecord | None:
    return next((v for v in versions if v.is_current), None)
