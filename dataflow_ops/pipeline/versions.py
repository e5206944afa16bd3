"""Published versions: list, show, verify, make current."""

from __future__ import annotations

import datetime as dt
import getpass
import json
import subprocess
import sys
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType
from typing import Any

from dataflow_ops.errors import VersionError
from dataflow_ops.layers.export.manifest import canonical_json
from dataflow_ops.pipeline.home import Home, open_home
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
                    "state": record.state,
                    "documents": manifest["totals"]["documents"],
                    "tokens": manifest["totals"]["tokens"],
                    "shards": len(manifest["shards"]),
                    "published": dt.datetime.fromtimestamp(record.created_at, dt.UTC).strftime(
                        "%Y-%m-%d %H:%M UTC"
                    ),
                }
            )
        return rows

    def show(self, version: str | None) -> dict[str, Any]:
        """Facts and domains of one version."""
        record = self._find(version)
        manifest = self._manifest(record)
        totals = manifest["totals"]
        folder = self._home.root / "versions" / record.version_id
        facts = {
            "version": record.version_id + (" (current)" if record.is_current else ""),
            "dataset": record.dataset,
            "state": record.state,
            "run": record.run_id,
            "documents": f"{totals['documents']:,}",
            "tokens": f"{totals['tokens']:,}" + (" (estimated)" if manifest["tokens_estimated"] else ""),
            "bytes": f"{totals['bytes']:,}",
            "shards": len(manifest["shards"]),
            "dead letters": manifest["dead_letters"],
            "manifest": f"SHA-256 {record.manifest_sha256}",
            "folder": str(folder),
        }
        domains = [(name, cell["rows"], cell["tokens"]) for name, cell in sorted(totals["by_domain"].items())]
        return {"facts": facts, "domains": domains, "notes": manifest["notes"]}

    def verify(self, version: str | None) -> tuple[int, str]:
        """Run the version's own ``verify.py``; ``(exit code, what it printed)``."""
        record = self._find(version)
        folder = self._home.root / "versions" / record.version_id
        self._manifest(record)
        done = subprocess.run(
            [sys.executable, str(folder / "verify.py")], check=False, capture_output=True, text=True
        )
        return done.returncode, (done.stdout + done.stderr).rstrip()

    def make_current(self, version: str | None, *, approve: bool) -> str:
        """Point *current* at a version.

        Raises:
            VersionError: no such version, or its files are damaged.
        """
        record = self._find(version, waiting=approve and version is None)
        code, output = self.verify(record.version_id)
        if code:
            raise VersionError(f"{record.version_id} is damaged and can't become current:\n{output}")
        self._state.set_current(record.dataset, record.version_id, getpass.getuser())
        mirror = {"dataset": record.dataset, "version": record.version_id, "manifest": record.manifest_uri}
        self._blobs.put(f"versions/current_{record.dataset}.json", canonical_json(mirror), replace=True)
        run = self._state.get_run(record.run_id)
        if approve and run is not None and run.state == "AWAITING_APPROVAL":
            dead = self._state.count_dead_letters("error", run_id=record.run_id)
            self._state.set_run_state(record.run_id, "approve_with_dead" if dead else "approve", "")
        return record.version_id

    def report_path(self, version: str | None) -> Path:
        """Where the report lies."""
        return self._home.root / "versions" / self._find(version).version_id / "report.html"

    def _manifest(self, record: VersionRecord) -> dict[str, Any]:
        import hashlib

        data = self._blobs.read(record.manifest_uri)
        if hashlib.sha256(data).hexdigest() != record.manifest_sha256:
            raise VersionError(
                f"{record.manifest_uri} is not what was published; restore it or make the version again"
            )
        manifest: dict[str, Any] = json.loads(data)
        return manifest

    def _find(self, version: str | None, *, waiting: bool = False) -> VersionRecord:
        """By id or the start of one; else the current one, or the newest (for approval, or where none is)."""
        versions = self._state.versions()
        if not versions:
            raise VersionError("no version has been published here yet; `dataflow run JOB` makes one")
        if version is None:
            current = [v for v in versions if v.is_current]
            return versions[0] if waiting or not current else current[0]
        found = [v for v in versions if v.version_id == version] or [
            v for v in versions if v.version_id.startswith(version)
        ]
        if len(found) == 1:
            return found[0]
        what = "fits several versions" if found else "is no version here"
        raise VersionError(f"'{version}' {what}; there are {', '.join(v.version_id for v in versions[:10])}")
