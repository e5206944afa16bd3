"""Published versions, for looking: list, show, verify, history."""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any, Self

from dataflow_ops.errors import VersionError
from dataflow_ops.pipeline.chain import records_below, version_named, versions_of
from dataflow_ops.pipeline.fates import fates_line, fates_of, replaced_documents
from dataflow_ops.pipeline.home import Home
from dataflow_ops.pipeline.overtaken import Overtaken, overtaken
from dataflow_ops.pipeline.report_file import page_uri
from dataflow_ops.pipeline.version_states import PAST_RETENTION, REMOVED, SHOWN_WAITING, WITH_SET, shown
from dataflow_ops.state.records import RunRecord, VersionRecord
from dataflow_ops.state.store import StateStore
from dataflow_ops.storage.chunk_store import ChunkStore
from dataflow_ops.storage.opening import address, open_store
from dataflow_ops.storage.remote import local_folder


class VersionShelf(AbstractContextManager["VersionShelf"]):
    """All versions in one home; nothing is decided here."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._state = StateStore(home.state_url)
        self._blobs = open_store(home.root)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._state.close()

    def list(self, dataset: str | None = None) -> list[dict[str, Any]]:
        """One row per version, oldest first."""
        rows = []
        for record in reversed(self._state.versions(dataset)):
            manifest = self._manifest(record)
            late = self._overtaken(record)
            rows.append(
                {
                    "current": record.is_current,
                    "dataset": record.dataset,
                    "version": record.version_id,
                    **_holds(record),
                    "state": shown(record.state, record.is_current),
                    "waits": self._waits(record),
                    "overtaken_by": late.by.version_id if late else "",
                    "documents": manifest["totals"]["documents"],
                    "tokens": manifest["totals"]["tokens"],
                    "shards": len(manifest["shards"]),
                    "published": dt.datetime.fromtimestamp(record.created_at, dt.UTC).strftime(
                        "%Y-%m-%d %H:%M UTC"
                    ),
                }
            )
        return rows

    def lacking(self, version: str, dataset: str | None = None) -> Sequence[str]:
        """What days had brought that were published while a full version was made, and which it lacks.

        It is asked about a decision that was carried out, so what is no longer kept is told, and no error.
        """
        from dataflow_ops.pipeline.left_behind import left_behind_by

        record = self._find(version, dataset)
        chunks = ChunkStore(self._blobs)
        try:
            return [one.told for one in left_behind_by(self._state, chunks, record)]
        except VersionError as e:
            return [f"perhaps files of days ({e})"]

    def show(self, version: str | None, dataset: str | None = None) -> dict[str, Any]:
        """Facts and domains of one version, for programs and people alike."""
        record = self._find(version, dataset)
        manifest = self._manifest(record)
        totals = manifest["totals"]
        chain = records_below(self._state.versions(record.dataset), record.version_id)
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
            "folder": address(self._home.root, f"versions/{record.version_id}"),
            "folders": [address(self._home.root, f"versions/{one.version_id}") for one in chain],
            "replaced": replaced_documents(manifest, self._manifest(chain[-2])) if len(chain) > 1 else 0,
            "own": own_documents(manifest),
            "domains": [
                {"domain": name, "documents": cell.get("documents", cell["rows"]), "tokens": cell["tokens"]}
                for name, cell in sorted(totals["by_domain"].items())
            ],
            "notes": manifest["notes"],
        }

    def run_of(self, version: str, dataset: str | None = None) -> RunRecord | None:
        """The run that made a version."""
        return self._state.get_run(self._find(version, dataset).run_id)

    def verify(self, version: str | None, dataset: str | None = None) -> tuple[int, str]:
        """Run the version's own ``verify.py``; ``(exit code, what it printed)``."""
        record = self._find(version, dataset)
        if record.state == REMOVED:
            raise VersionError(f"{record.version_id} can't be verified, {why_not(record)}")
        self._manifest(record)
        chain = records_below(self._state.versions(record.dataset), record.version_id)
        folders = [f"versions/{one.version_id}" for one in chain]
        with local_folder(self._blobs, self._home.root, folders) as root:
            script = root / "versions" / record.version_id / "verify.py"
            done = subprocess.run([sys.executable, str(script)], check=False, capture_output=True, text=True)
        return done.returncode, (done.stdout + done.stderr).rstrip()

    def events(self, dataset: str | None = None) -> Sequence[dict[str, Any]]:
        """What runs and people decided about versions, newest first.

        Returns:
            ``dataset``, ``version``, ``action`` (``published``, ``promoted``, ``approved``, ``rejected``,
            ``rolled_back``, ``removed``, ``restored``, ``compacted``), ``who``, ``note`` and
            ``at`` (seconds since 1970).
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

    def report_path(self, version: str | None, dataset: str | None = None) -> str:
        """Where the report lies."""
        record = self._find(version, dataset)
        return address(self._home.root, page_uri(record.version_id))

    def _waits(self, record: VersionRecord) -> str:
        """Why a version waits for a person; ``""`` where it doesn't."""
        if shown(record.state, record.is_current) != SHOWN_WAITING:
            return ""
        run = self._state.get_run(record.run_id)
        if run is not None and run.state == "AWAITING_APPROVAL":
            why = run.detail or ""
        else:
            why = WITH_SET if run is not None and not run.promote else "see its report"
        late = self._overtaken(record)
        return f"{why}; {late.told}" if late is not None else why

    def _overtaken(self, record: VersionRecord) -> Overtaken | None:
        """What became current while a version waits for a person, and would be left behind."""
        if shown(record.state, record.is_current) != SHOWN_WAITING:
            return None
        return overtaken(self._state.versions(record.dataset), record)

    def _manifest(self, record: VersionRecord) -> dict[str, Any]:
        data = self._blobs.read(record.manifest_uri)
        if hashlib.sha256(data).hexdigest() != record.manifest_sha256:
            raise VersionError(
                f"{record.manifest_uri} is not what was published; restore it or make the version again"
            )
        manifest: dict[str, Any] = json.loads(data)
        return manifest

    def _versions(self, dataset: str | None) -> Sequence[VersionRecord]:
        """Newest first."""
        return versions_of(self._state, dataset)

    def _find(self, version: str | None, dataset: str | None) -> VersionRecord:
        """By id or the start of one; without any the current one, or the newest."""
        versions = self._versions(dataset)
        if version is not None:
            return version_named(versions, version)
        return next((v for v in versions if v.is_current), versions[0])


def own_documents(manifest: Mapping[str, Any]) -> int:
    """Documents in a version's own shards."""
    totals = manifest.get("own") or manifest["totals"]
    return int(totals["documents"])


def _holds(record: VersionRecord) -> dict[str, Any]:
    """What a version holds: everything, one interval, or what another holds and one interval."""
    holds = "everything" if record.base is None else f"{record.base} and {record.data_date}"
    if record.is_compact:
        holds = f"everything of {record.base}"
    return {
        "holds": f"increment of {record.data_date}" if record.is_increment else holds,
        "increment": record.is_increment,
        "base": "" if record.is_compact else record.base or "",
        "compacted_from": (record.base or "") if record.is_compact else "",
        "mode": record.mode,
        "data_date": record.data_date or "",
    }


def why_not(record: VersionRecord) -> str:
    """Why a version is not one that a person may let become current."""
    if record.state == REMOVED:
        return f"its {PAST_RETENTION}"
    if record.is_increment:
        return "it is an increment, published already: the next full run makes a version that contains it"
    if record.is_current:
        return "it is current already"
    return f"it was approved before; go back to it with: dataflow versions rollback {record.version_id}"
