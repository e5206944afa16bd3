"""Published versions: list, show, verify, make current."""

from __future__ import annotations

import datetime as dt
import getpass
import json
import subprocess
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType
from typing import Any

from dataflow_ops.errors import ConfigError, VersionError
from dataflow_ops.layers.export.manifest import canonical_json
from dataflow_ops.pipeline.fates import fates_line, fates_of
from dataflow_ops.pipeline.home import Home, open_home
from dataflow_ops.pipeline.version_states import (
    INCREMENT,
    PUBLISHED,
    REJECTED,
    REMOVED,
    SHOWN_WAITING,
    WAITING,
    WITH_SET,
    shown,
)
from dataflow_ops.state import version_events as events
from dataflow_ops.state.records import VersionRecord
from dataflow_ops.state.store import StateStore
from dataflow_ops.storage.local import LocalStore


def open_versions(home_path: Path) -> VersionBook:
    """The versions of a home."""
    return VersionBook(open_home(home_path, create=False))


class VersionBook(AbstractContextManager["VersionBook"]):
    """All versions in one home."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._state = StateStore(home.state_url)
        self._blobs = LocalStore(home.root)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._state.close()

    def list(self, dataset: str | None = None) -> list[dict[str, Any]]:
        """One row per version, oldest first."""
        rows = []
        for record in reversed(self._state.versions(dataset)):
            manifest = self._manifest(record)
            rows.append(
                {
                    "current": record.is_current,
                    "dataset": record.dataset,
                    "version": record.version_id,
                    **_holds(record),
                    "state": shown(record.state, record.is_current),
                    "waits": self._waits(record),
                    "documents": manifest["totals"]["documents"],
                    "tokens": manifest["totals"]["tokens"],
                    "shards": len(manifest["shards"]),
                    "published": dt.datetime.fromtimestamp(record.created_at, dt.UTC).strftime(
                        "%Y-%m-%d %H:%M UTC"
                    ),
                }
            )
        return rows

    def show(self, version: str | None, dataset: str | None = None) -> dict[str, Any]:
        """Facts and domains of one version, for programs and people alike."""
        record = self._find(version, dataset)
        manifest = self._manifest(record)
        totals = manifest["totals"]
        return {
            "version": record.version_id,
            "current": record.is_current,
            "dataset": record.dataset,
            **_holds(record),
            "state": shown(record.state, record.is_current),
            "waits": self._waits(record),
            "run": record.run_id,
            "documents": totals["documents"],
            "tokens": totals["tokens"],
            "tokens_estimated": manifest["tokens_estimated"],
            "bytes": totals["bytes"],
            "shards": len(manifest["shards"]),
            "dead_letters": manifest["dead_letters"],
            "fates": fates_of(manifest),
            "fates_line": fates_line(manifest),
            "manifest_sha256": record.manifest_sha256,
            "folder": str(self._home.root / "versions" / record.version_id),
            "domains": [
                {"domain": name, "documents": cell["rows"], "tokens": cell["tokens"]}
                for name, cell in sorted(totals["by_domain"].items())
            ],
            "notes": manifest["notes"],
        }

    def verify(self, version: str | None, dataset: str | None = None) -> tuple[int, str]:
        """Run the version's own ``verify.py``; ``(exit code, what it printed)``."""
        record = self._find(version, dataset)
        if record.state == REMOVED:
            raise VersionError(f"{record.version_id} can't be verified, {_why_not(record)}")
        folder = self._home.root / "versions" / record.version_id
        self._manifest(record)
        done = subprocess.run(
            [sys.executable, str(folder / "verify.py")], check=False, capture_output=True, text=True
        )
        return done.returncode, (done.stdout + done.stderr).rstrip()

    def approve(
        self, version: str | None, dataset: str | None = None, *, who: str = "", note: str = ""
    ) -> str:
        """Let a version that waits for a person (the newest one) become current; return its id.

        An increment is published and moves no pointer. A version that was rejected may be approved after all,
        if it is named.

        Args:
            version: id or its start; None for the newest one that waits.
            dataset: of this data set.
            who: who decides; default the user of the operating system.
            note: why, for people.

        Raises:
            ConfigError: no version waits, or not this one.
            VersionError: no such version, or its files are damaged or gone.
        """
        waiting = [v for v in self._versions(dataset) if shown(v.state, v.is_current) == SHOWN_WAITING]
        if version is None:
            if not waiting:
                raise ConfigError("no version waits for approval; `dataflow versions list` shows them all")
            return self._approve(waiting[0], who, note)
        record = self._find(version, dataset, exactly=True)
        if shown(record.state, record.is_current) not in (SHOWN_WAITING, REJECTED):
            raise ConfigError(f"{record.version_id} doesn't wait for approval, {_why_not(record)}")
        return self._approve(record, who, note)

    def reject(
        self, version: str | None, dataset: str | None = None, *, who: str = "", note: str = ""
    ) -> str:
        """Refuse a version that waits for a person (the newest one), or an older one; return its id.

        Raises:
            ConfigError: no version waits, or this one was rejected before.
            VersionError: no such version, or it is current.
        """
        if version is None:
            waiting = [v for v in self._versions(dataset) if shown(v.state, v.is_current) == SHOWN_WAITING]
            if not waiting:
                raise ConfigError("no version waits for approval; `dataflow versions list` shows them all")
            record = waiting[0]
        else:
            record = self._find(version, dataset, exactly=True)
        if record.state in (REJECTED, REMOVED):
            raise ConfigError(f"{record.version_id} can't be rejected, it was {record.state.lower()} before")
        if record.is_current:
            raise VersionError(
                f"{record.version_id} is current; go back to another one first:"
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

    def events(self, dataset: str | None = None) -> Sequence[dict[str, Any]]:
        """What runs and people decided about versions, newest first: ``dataset``, ``version``, ``action``
        (``published``, ``promoted``, ``approved``, ``rejected``, ``rolled_back``, ``removed``), ``who``,
        ``note`` and ``at`` (seconds since 1970).
        """
        return [
            {
                "dataset": e.dataset,
                "version": e.version_id,
                "action": e.action,
                "who": e.who,
                "note": e.note,
                "at": e.created_at,
            }
            for e in self._state.version_events(dataset)
        ]

    def rollback(self, version: str, dataset: str | None = None, *, who: str = "", note: str = "") -> str:
        """Make a version current again; return its id.

        Raises:
            VersionError: no such version, its files are damaged or gone, nobody has approved it, or it is an
                increment.
        """
        record = self._find(version, dataset, exactly=True)
        if record.mode == INCREMENT:
            raise VersionError(f"{record.version_id} can't become current, {_why_not(record)}")
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

    def _approve(self, record: VersionRecord, who: str, note: str) -> str:
        if record.mode == INCREMENT:
            self._check(record, "be published")
            self._state.set_version_state(
                record.dataset, record.version_id, PUBLISHED, events.APPROVED, who or getpass.getuser(), note
            )
        else:
            self._make_current(record, events.APPROVED, who, note)
        run = self._state.get_run(record.run_id)
        if run is not None and run.state == "AWAITING_APPROVAL":
            dead = self._state.count_dead_letters("error", run_id=record.run_id)
            self._state.set_run_state(record.run_id, "approve_with_dead" if dead else "approve", "")
        self._refresh(record.dataset, record.version_id)
        return record.version_id

    def _check(self, record: VersionRecord, become: str) -> None:
        if record.state == REMOVED:
            raise VersionError(f"{record.version_id} can't {become}, {_why_not(record)}")
        code, output = self.verify(record.version_id, record.dataset)
        if code:
            raise VersionError(f"{record.version_id} is damaged and can't {become}:\n{output}")

    def _make_current(self, record: VersionRecord, action: str, who: str, note: str) -> None:
        self._check(record, "become current")
        before = self._state.current(record.dataset)
        if record.state == REJECTED:
            # A kill before the pointer moves leaves it waiting: nobody has let it become current yet.
            self._state.set_version_state(record.dataset, record.version_id, WAITING)
        self._state.set_current(record.dataset, record.version_id, who or getpass.getuser(), action, note)
        if record.state != PUBLISHED:
            self._state.set_version_state(record.dataset, record.version_id, PUBLISHED)
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

    def report_path(self, version: str | None, dataset: str | None = None) -> Path:
        """Where the report lies."""
        return self._home.root / "versions" / self._find(version, dataset).version_id / "report.html"

    def _waits(self, record: VersionRecord) -> str:
        """Why a version waits for a person; ``""`` where it doesn't."""
        if shown(record.state, record.is_current) != SHOWN_WAITING:
            return ""
        run = self._state.get_run(record.run_id)
        if run is not None and run.state == "AWAITING_APPROVAL":
            return run.detail or ""
        return WITH_SET if run is not None and not run.promote else "see its report"

    def _manifest(self, record: VersionRecord) -> dict[str, Any]:
        import hashlib

        data = self._blobs.read(record.manifest_uri)
        if hashlib.sha256(data).hexdigest() != record.manifest_sha256:
            raise VersionError(
                f"{record.manifest_uri} is not what was published; restore it or make the version again"
            )
        manifest: dict[str, Any] = json.loads(data)
        return manifest

    def _versions(self, dataset: str | None) -> Sequence[VersionRecord]:
        """Newest first."""
        versions = self._state.versions(dataset)
        if versions:
            return versions
        others = sorted({v.dataset for v in self._state.versions()})
        if dataset is not None and others:
            raise ConfigError(f"data set '{dataset}' has no version here; there are {', '.join(others)}")
        raise ConfigError("no version has been published here yet; `dataflow run JOB` makes one")

    def _find(self, version: str | None, dataset: str | None, *, exactly: bool = False) -> VersionRecord:
        """By id or the start of one; without any the current one, or the newest.

        A start that fits several means the current one of them, unless it must fit ``exactly`` one.
        """
        versions = self._versions(dataset)
        current = [v for v in versions if v.is_current]
        if version is None:
            return (current or versions)[0]
        found = [v for v in versions if v.version_id == version]
        found = found or [v for v in versions if v.version_id.startswith(version)]
        chosen = [v for v in found if v.is_current] if len(found) > 1 and not exactly else found
        if len(chosen) == 1:
            return chosen[0]
        what = "fits several versions" if found else "is no version here"
        known = ", ".join(v.version_id for v in (found or versions)[:10])
        raise VersionError(f"'{version}' {what}; there are {known}")


def _holds(record: VersionRecord) -> dict[str, Any]:
    """What a version holds: everything, or one interval."""
    increment = record.mode == INCREMENT
    return {
        "holds": f"increment of {record.data_date}" if increment else "everything",
        "increment": increment,
        "mode": record.mode,
        "data_date": record.data_date or "",
    }


def _why_not(record: VersionRecord) -> str:
    """Why a version is not one that a person may let become current."""
    if record.state == REMOVED:
        return "its files were removed after its time of retention"
    if record.mode == INCREMENT:
        return "it is an increment, published already: the next full run makes a version that contains it"
    if record.is_current:
        return "it is current already"
    return f"it was approved before; go back to it with: dataflow versions rollback {record.version_id}"
