"""Stored outputs that no kept version and no live run reaches.

State goes first, then the files: killed in between, a task is open without files, and a run that wants it
makes it anew. What a run wants is linked to it before it is looked at, under the same lock.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from urllib.parse import quote

from dataflow_ops.layers.export.manifest import canonical_json
from dataflow_ops.pipeline.chain import records_behind
from dataflow_ops.pipeline.flow import COMPACTION, STEP_NAMES
from dataflow_ops.pipeline.sizes import freed_by
from dataflow_ops.pipeline.version_states import REMOVED
from dataflow_ops.state.records import VersionRecord
from dataflow_ops.state.store import StateStore
from dataflow_ops.storage.blob import Blob, BlobStore
from dataflow_ops.storage.cold import COLD
from dataflow_ops.storage.local import LocalStore

RELEASED = ("gather", "recall", "verify", "unite", "collect", "export")
"""Steps whose outputs nobody reads once a version was removed that a compacted one was put together from.
What the others left is the index, the texts, the file lists and what tells about documents."""
_AT_ONCE = 200
"""Tasks whose rows are held together while their files are deleted."""
_NAME = re.compile(r"data/[^/]+/[0-9a-f]{2}/part_[^/_]+_([0-9a-f]{16})\.")
_STAGED = re.compile(r"staging/([0-9a-f]{64})/")


@dataclass(slots=True)
class Cleared:
    """What went.

    Attributes:
        items: tasks, or files without a task.
        files: files deleted.
        bytes: room given back.
    """

    items: int = 0
    files: int = 0
    bytes: int = 0

    def delete(self, blobs: BlobStore, uri: str, dry_run: bool = False) -> None:
        """Delete one file and count it."""
        size = freed_by(blobs, uri)
        if dry_run or blobs.delete(uri):
            self.files += 1
            self.bytes += size


def forget_runs(
    state: StateStore, blobs: BlobStore, grace_s: float, going: Sequence[str] = (), dry_run: bool = False
) -> list[str]:
    """Unlink runs from their tasks that no version of theirs needs; what they counted is written down first.

    Args:
        state: open state store.
        blobs: where the sums go.
        grace_s: seconds since the run's last move.
        going: versions that a rehearsal would have removed.
        dry_run: only look.

    Runs that a kept version was put together from stay linked to what it needs of them.

    Returns:
        The runs: ``runs/<run>.json`` below the storage root has their sums.
    """
    found, behind = state.forgettable_runs(grace_s, going if dry_run else ()), _behind(state, going)
    for run_id in () if dry_run else [run_id for run_id in found if run_id in behind]:
        state.forget_tasks_of(run_id, grace_s, RELEASED)
    runs = [run_id for run_id in found if run_id not in behind]
    for run_id in () if dry_run else runs:
        uri = f"runs/{quote(run_id, safe='')}.json"
        if blobs.stat(uri) is None:
            blobs.put(uri, canonical_json(_summary(state, run_id)), replace=True)
        state.forget_tasks_of(run_id, grace_s)
    return runs


def _behind(state: StateStore, going: Sequence[str]) -> set[str]:
    """Runs that made what kept versions were put together from."""
    versions = state.versions()
    by_dataset: dict[str, list[VersionRecord]] = {}
    for version in versions:
        by_dataset.setdefault(version.dataset, []).append(version)
    return {
        record.run_id
        for version in versions
        if version.state != REMOVED and version.version_id not in going
        for record in records_behind(by_dataset[version.dataset], version.version_id)
    }


def collect_tasks(
    state: StateStore, blobs: BlobStore, grace_s: float, forgotten: list[str], dry_run: bool = False
) -> Cleared:
    """Delete the outputs of tasks that no run holds.

    Args:
        state: open state store.
        blobs: where the outputs are.
        grace_s: seconds since the task ended.
        forgotten: runs that a rehearsal would have unlinked.
        dry_run: only count.
    """
    done = Cleared()
    unwanted = state.unwanted_tasks(grace_s, forgotten if dry_run else ())
    for at in range(0, len(unwanted), _AT_ONCE):
        keys = unwanted[at : at + _AT_ONCE]
        if dry_run:
            for record in state.records(keys).values():
                done.items += 1
                for output in record.outputs:
                    done.delete(blobs, output.uri, dry_run=True)
            continue
        state.open_unwanted(keys)
        with state.emptied_tasks(keys) as held:
            for uris in held.values():
                done.items += 1
                for uri in uris:
                    done.delete(blobs, uri)
    return done


def collect_orphans(state: StateStore, blobs: BlobStore, grace_s: float, dry_run: bool = False) -> Cleared:
    """Delete files of tasks' outputs that no row knows: left by a kill between publishing and committing."""
    done = Cleared()
    oldest_ns = int((time.time() - grace_s) * 1e9)
    for prefix, newest in _by_prefix(blobs):
        old = [uri for uri, mtime_ns in newest.items() if mtime_ns < oldest_ns]
        if not old:
            continue
        # In this order: what ends between the two looks is in the second one.
        at_work = {key[:16] for key in state.keys_at_work()}
        known = state.stored_uris(prefix)
        for uri in old:
            match = _NAME.match(uri)
            if uri not in known and match is not None and match[1] not in at_work:
                done.items += 1
                done.delete(blobs, uri, dry_run)
    return done


def _by_prefix(blobs: BlobStore) -> Iterator[tuple[str, dict[str, int]]]:
    """``(first two digits of the key, URI -> when it was last written in any tier)``, bounded each time."""
    steps = (*STEP_NAMES, *COMPACTION)
    if not isinstance(blobs, LocalStore):
        # A request for each step and prefix would be thousands; listings of object stores are in order.
        for step in steps:
            for prefix, found in groupby(blobs.list(f"data/{step}/"), lambda blob: blob.uri.split("/")[2]):
                yield prefix, {blob.uri: blob.mtime_ns for blob in found}
        return
    for number in range(256):
        prefix = f"{number:02x}"
        newest: dict[str, int] = {}
        for tier in ("", f"{COLD}/"):
            for step in steps:
                for uri, _, mtime_ns in blobs.list(f"{tier}data/{step}/{prefix}/"):
                    uri = uri.removeprefix(tier)
                    newest[uri] = max(mtime_ns, newest.get(uri, 0))
        yield prefix, newest


def collect_folders(state: StateStore, blobs: BlobStore, grace_s: float, dry_run: bool = False) -> Cleared:
    """Delete version folders that no row knows: left by a kill before the version was recorded.

    Their files are links and as old as what they link to, so while any run is live none is touched.
    """
    done = Cleared()
    folders: dict[str, list[Blob]] = {}
    for blob in blobs.list("versions/"):
        name, slash, _ = blob.uri.removeprefix("versions/").partition("/")
        if slash:
            folders.setdefault(name, []).append(blob)
    unknown = sorted(set(folders) - {v.version_id for v in state.versions()})
    oldest_ns = int((time.time() - grace_s) * 1e9)
    for name in unknown:
        if all(blob.mtime_ns < oldest_ns for blob in folders[name]) and not state.is_anything_live():
            done.items += 1
            for blob in folders[name]:
                done.delete(blobs, blob.uri, dry_run)
    return done


def collect_staging(state: StateStore, blobs: BlobStore, grace_s: float, dry_run: bool = False) -> Cleared:
    """Delete staged rows of tasks that no run holds and nobody works on."""
    done = Cleared()
    oldest_ns = int((time.time() - grace_s) * 1e9)
    staged: dict[str, list[Blob]] = {}
    for key, blob in _staged(blobs):
        staged.setdefault(key, []).append(blob)
    held = state.keys_held(list(staged)) | set(state.keys_at_work())
    for key, of_task in staged.items():
        if key not in held and all(blob.mtime_ns < oldest_ns for blob in of_task):
            done.items += 1
            for blob in of_task:
                done.delete(blobs, blob.uri, dry_run)
    return done


def _staged(blobs: BlobStore) -> Iterator[tuple[str, Blob]]:
    for blob in blobs.list("staging/"):
        match = _STAGED.match(blob.uri)
        if match is not None:
            yield match[1], blob


def _summary(state: StateStore, run_id: str) -> dict[str, object]:
    """A run's sums by step, for whoever asks after its tasks are gone."""
    row = state.get_run(run_id)
    hits = state.rule_hits_of_run(run_id)
    steps = [
        {
            "step": m.step,
            "layer": m.layer,
            "tasks": dict(m.tasks),
            "in": m.counts.documents_in,
            "kept": m.counts.kept,
            "rejected": m.counts.rejected,
            "dead": m.counts.dead,
            "skipped": dict(m.counts.skipped),
            "out": m.counts.documents_out,
            "bytes_in": m.counts.bytes_in,
            "tokens_out": m.counts.tokens_out,
            "seconds": m.seconds,
            "metrics": dict(m.metrics),
            "rule_hits": hits.get(m.step, {}),
        }
        for m in state.metrics_of_run(run_id).values()
    ]
    facts = {} if row is None else {"dataset": row.dataset, "mode": row.mode, "data_date": row.data_date}
    return {"run": run_id, **facts, "state": "" if row is None else row.state, "steps": steps}
