"""Versions past their time: which ones they are, and how their files go. Manifest and report stay."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence

from dataflow_ops.pipeline.reporting import refresh_report
from dataflow_ops.pipeline.session import parse_job_text
from dataflow_ops.pipeline.sizes import freed_by
from dataflow_ops.pipeline.version_states import INCREMENT, PUBLISHED, REMOVED, WAITING
from dataflow_ops.state import version_events as events
from dataflow_ops.state.records import COMPACT, RunRecord, VersionRecord
from dataflow_ops.state.store import StateStore
from dataflow_ops.storage.blob import BlobStore
from dataflow_ops.timing import RetentionSettings

ALWAYS_KEPT = 2
"""Newest published full versions that stay whatever the settings say: there is one to roll back to."""
RECORDS = ("manifest.json", "report.json", "report.html")
"""What is kept of a removed version."""
WHO = "maintenance"
_DAY_S = 86_400.0
_AT_ONCE = 500
"""Files that are deleted while the version is held."""


def retention_of(state: StateStore, dataset: str, keep_versions: int | None = None) -> RetentionSettings:
    """What the newest run of a data set was told about keeping versions.

    Args:
        state: open state store.
        dataset: which data set.
        keep_versions: keep so many instead, of full ones and of days' ones each.

    Raises:
        ConfigError: the run's settings can't be read any more.
    """
    if keep_versions is not None:
        return RetentionSettings(versions=keep_versions)
    runs = state.list_runs(dataset, 50)
    # A run with overrides of its own says nothing about the job, nor does one with an older run's settings.
    runs = [r for r in runs if r.mode != COMPACT]
    chosen: RunRecord | None = next((r for r in runs if r.promote), runs[0] if runs else None)
    return (
        RetentionSettings()
        if chosen is None
        else parse_job_text(chosen.settings, chosen.run_id).output.retention
    )


def past_retention(
    versions: Sequence[VersionRecord],
    retention: RetentionSettings,
    live: Sequence[RunRecord],
    made_at: dict[str, float],
    now: float | None = None,
) -> list[VersionRecord]:
    """Versions of one data set that need not be kept, oldest first.

    Never the current one, one that waits for a person, the newest two published full ones, one that a live
    run made or builds on, or one below any of these. A version goes before those that it builds on.

    Args:
        versions: of the data set, newest first.
        retention: what the job says; with neither number nothing goes.
        live: the data set's live runs.
        made_at: version → when it was made, or made again; seconds since 1970.
        now: seconds since 1970.
    """
    if retention.versions is None and retention.days is None:
        return []
    now = time.time() if now is None else now
    full = [v.version_id for v in versions if v.mode != INCREMENT and v.state == PUBLISHED]
    needed = {*full[:ALWAYS_KEPT], *(base for run in live for base in bases_of(run))}
    runs = {run.run_id for run in live}
    places: dict[bool, int] = {}
    found = []
    for version in versions:
        if version.state == REMOVED:
            continue
        of_a_day = version.mode == INCREMENT
        place = places[of_a_day] = places.get(of_a_day, 0) + 1
        beyond = retention.versions is None or place > retention.versions
        old = retention.days is None or made_at[version.version_id] < now - retention.days * _DAY_S
        kept = version.is_current or version.state == WAITING
        if beyond and old and not kept and version.version_id not in needed and version.run_id not in runs:
            found.append(version)
    return _order(found, versions)


def _order(going: Sequence[VersionRecord], versions: Sequence[VersionRecord]) -> list[VersionRecord]:
    """What may go, oldest first but none before those that build on it; without what a kept one needs."""
    names = {v.version_id for v in going}
    kept = [v for v in versions if v.version_id not in names and v.state != REMOVED]
    by_id = {v.version_id: v for v in versions}

    def below(version: VersionRecord) -> list[str]:
        found: list[str] = []
        one: VersionRecord | None = version
        # A compacted version has copies of its own.
        while one is not None and one.base is not None and not one.is_compact:
            found.append(one.base)
            one = by_id.get(one.base)
        return found

    needed = {name for version in kept for name in below(version)}
    left = [v for v in going if v.version_id not in needed]
    return sorted(left[::-1], key=lambda v: -len(below(v)))


def remove_version(state: StateStore, blobs: BlobStore, version: VersionRecord) -> tuple[int, int]:
    """Take a version's files away: first in state, then on disk. Safe to be killed in, and to repeat.

    Returns:
        ``(files, bytes)`` that went.
    """
    if version.state != REMOVED:
        state.set_version_state(version.dataset, version.version_id, REMOVED, events.REMOVED, WHO)
    files = size = 0
    going = files_of(blobs, version)
    for at in range(0, len(going), _AT_ONCE):
        with state.removed_version(version.dataset, version.version_id) as held:
            for uri in going[at : at + _AT_ONCE] if held else ():
                freed = freed_by(blobs, uri)
                if blobs.delete(uri):
                    files, size = files + 1, size + freed
    now = next(v for v in state.versions(version.dataset) if v.version_id == version.version_id)
    refresh_report(blobs, now)
    return files, size


def files_of(blobs: BlobStore, version: VersionRecord) -> list[str]:
    """What would go of a version."""
    folder = f"versions/{version.version_id}/"
    return [b.uri for b in blobs.list(folder) if b.uri.removeprefix(folder) not in RECORDS]


def ages(state: StateStore, dataset: str) -> dict[str, float]:
    """Version → when it was made, or made again."""
    made = {v.version_id: v.created_at for v in state.versions(dataset)}
    for event in state.version_events(dataset, limit=100_000):
        if event.action == events.RESTORED:
            made[event.version_id] = max(made.get(event.version_id, 0.0), event.created_at)
    return made


def bases_of(run: RunRecord) -> list[str]:
    """Versions that a run is held against or builds on."""
    interval = json.loads(run.settings).get("interval") or {}
    parent = (interval.get("parent") or {}).get("version")
    return [str(name) for name in (interval.get("base"), parent) if name]
