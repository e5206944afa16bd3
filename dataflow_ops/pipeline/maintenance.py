"""Keeping a home in bounds: what is left over, past its time, or out of reach goes. Each part by itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from dataflow_ops.engine.tidy import tidy
from dataflow_ops.errors import ConfigError
from dataflow_ops.pipeline.compact_dead import end_overtaken
from dataflow_ops.pipeline.compact_long import compact_long_chains
from dataflow_ops.pipeline.cooling import AFTER_DAYS, Cooled, cool
from dataflow_ops.pipeline.garbage import (
    Cleared,
    collect_folders,
    collect_orphans,
    collect_staging,
    collect_tasks,
    forget_runs,
)
from dataflow_ops.pipeline.home import Home
from dataflow_ops.pipeline.retention import (
    ages,
    files_of,
    past_retention,
    remove_version,
    retention_of,
)
from dataflow_ops.pipeline.sizes import freed_by
from dataflow_ops.pipeline.version_states import REMOVED
from dataflow_ops.state.records import VersionRecord
from dataflow_ops.state.store import StateStore
from dataflow_ops.storage.blob import BlobStore
from dataflow_ops.storage.cold import ColdTier, attach, claim
from dataflow_ops.storage.local import LocalStore
from dataflow_ops.storage.opening import open_store

EVENTS_KEPT_S = 30 * 86_400.0
"""How long events are kept; longer while a delivery of them waits."""


def maintain(
    home: Home,
    *,
    grace_hours: float = 24.0,
    keep_versions: int | None = None,
    cold_after_days: float = AFTER_DAYS,
    dry_run: bool = False,
    log: Callable[[str], Any] = print,
    progress: Callable[[int, int], Any] = lambda done, total: None,
) -> dict[str, Any]:
    """Clear away what nothing reaches any more. Killed anywhere, the next call goes on; twice is once.

    Args:
        home: an opened home.
        grace_hours: what is younger stays, so that no run loses what it is about to use.
        keep_versions: keep so many versions instead of what the jobs say (full ones and increments each).
        cold_after_days: what is older and seldom read is moved to the cold tier, where the home has one.
        dry_run: only count.
        log: told of each version that goes.
        progress: told how far the moving is.

    Raises:
        ColdAway: the home has a cold tier, and it can't be reached; nothing was done.
        ConfigError: a cold tier is asked for, and the root is in object storage; nothing was done.

    Returns:
        ``compacted``: versions that were, where ``output.compact_after_days`` says so. ``temporary``,
        ``staged``, ``versions``, ``runs``, ``tasks``, ``orphans`` (files), ``folders`` (of versions that were
        never recorded), ``events``: what went, and ``files`` and
        ``bytes``: the room that it gave back. Old temporaries and events are 0 in a rehearsal; bytes of
        temporaries are not counted. ``copied``, ``copied_bytes``: files that were copied to the cold tier;
        ``moved``, ``moved_bytes``: those that lie there alone now; ``damaged``: those that stay, as they do
        not hash as recorded.
    """
    grace_s = grace_hours * 3600.0
    blobs = open_store(home.root)
    is_tiered = _tiered(home, dry_run)
    compacted = compact_long_chains(home, dry_run, log)
    with StateStore(home.state_url) as state:
        temporary = 0 if dry_run else tidy(state, blobs)
        if not dry_run:
            end_overtaken(state, log)
        removed, of_versions = remove_versions(state, blobs, keep_versions, dry_run, log)
        runs = forget_runs(state, blobs, grace_s, removed, dry_run)
        tasks = collect_tasks(state, blobs, grace_s, runs, dry_run)
        orphans = collect_orphans(state, blobs, grace_s, dry_run)
        folders = collect_folders(state, blobs, grace_s, dry_run)
        staged = collect_staging(state, blobs, grace_s, dry_run)
        events = 0 if dry_run else state.prune_events(EVENTS_KEPT_S)
        cooled = Cooled()
        if is_tiered and isinstance(blobs, LocalStore):
            # Last: what went is not copied first.
            cooled = cool(state, blobs, cold_after_days, grace_s, dry_run, log, progress)
    parts = (of_versions, tasks, orphans, folders, staged)
    return {
        "dry_run": dry_run,
        "compacted": compacted,
        "temporary": temporary,
        "staged": staged.items,
        "versions": removed,
        "runs": runs,
        "tasks": tasks.items,
        "orphans": orphans.items,
        "folders": folders.items,
        "events": events,
        "files": sum(part.files for part in parts),
        "bytes": sum(part.bytes for part in parts),
        **asdict(cooled),
    }


def _tiered(home: Home, dry_run: bool) -> bool:
    """Whether the home has a cold tier, attached where that is asked for."""
    if not isinstance(home.root, Path):
        if home.cold is not None:
            raise ConfigError(
                f"{home.root} is in object storage, and a cold folder is for homes on disk: leave --cold (or"
                " DATAFLOW_COLD) out, and let the bucket's own storage classes keep what is old"
            )
        return False
    if home.cold is not None and not dry_run:
        attach(home.root, home.cold)
    if not dry_run:
        claim(home.root)
    return home.cold is not None or ColdTier(home.root).exists()


def remove_versions(
    state: StateStore,
    blobs: BlobStore,
    keep_versions: int | None,
    dry_run: bool,
    log: Callable[[str], Any],
) -> tuple[list[str], Cleared]:
    """Remove the versions of all data sets that are past retention, and what a kill left of removed ones."""
    removed: list[str] = []
    cleared = Cleared()
    for dataset in sorted({v.dataset for v in state.versions()}):
        versions = state.versions(dataset)
        try:
            retention = retention_of(state, dataset, keep_versions)
        except ConfigError as e:
            log(f"data set {dataset}: all versions are kept, as its last run's settings can't be read: {e}")
            continue
        going = past_retention(versions, retention, state.live_runs(dataset), ages(state, dataset))
        begun = [v for v in versions if v.state == REMOVED and files_of(blobs, v)]
        for version in [*begun, *going]:
            _remove(state, blobs, version, cleared, dry_run)
            removed.append(version.version_id)
            log(f"version {version.version_id}: past retention; manifest and report are kept")
    return removed, cleared


def _remove(
    state: StateStore, blobs: BlobStore, version: VersionRecord, cleared: Cleared, dry_run: bool
) -> None:
    if dry_run:
        found = files_of(blobs, version)
        cleared.files += len(found)
        cleared.bytes += sum(freed_by(blobs, uri) for uri in found)
        return
    files, size = remove_version(state, blobs, version)
    cleared.files += files
    cleared.bytes += size
