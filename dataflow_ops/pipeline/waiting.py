"""Why a version must not become current before a person has looked."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from dataflow_ops.pipeline.days import last_full
from dataflow_ops.pipeline.left_behind import left_behind
from dataflow_ops.pipeline.session import Session
from dataflow_ops.state.records import INCREMENTAL


def reasons(
    session: Session, manifest: Mapping[str, Any], data: Mapping[str, Any], dead_share: float
) -> list[str]:
    """Sentences, the most alarming first; none where the version may become current by itself.

    Args:
        session: the run.
        manifest: of the version that it made.
        data: of its report, for drift.
        dead_share: dead share of its input records.
    """
    # A day without documents is nothing unusual, and no day looks like all of them together.
    full = session.row.mode != INCREMENTAL
    found = (
        [*emptied(manifest, last_full_manifest(session)), *_lacking(session)] if full else _overtaken(session)
    )
    limit = session.settings.run.max_dead_share
    if dead_share > limit:
        found.append(f"{dead_share:.2%} of the input records are dead, above {limit:.2%}")
    for d in data["drift"]:
        if d["beyond"]:
            moved = f"share of {d['what']} '{d['name']}' by {d['measure']}"
            found.append(f"{moved} moved from {d['old']:.1%} to {d['new']:.1%}")
    return found


def _overtaken(session: Session) -> list[str]:
    """Whether another version became current since the run began to build on one: it would be lost."""
    now = session.state.current(session.settings.dataset.id)
    if session.parent is None or now is None or now.version_id == session.parent.version:
        return []
    return [
        f"it builds on {session.parent.version}, but {now.version_id} became current meanwhile and would be"
        f" left behind; run the day again instead: dataflow run JOB --mode {INCREMENTAL} --date"
        f" {session.row.data_date}, or clear task 'start' of its DAG run with everything downstream"
    ]


def _lacking(session: Session) -> list[str]:
    """Days that were published since the run listed its files: what they brought would be gone."""
    return [
        f"{one.told} were published as {one.version} while it was made, and are not in it; the next day's run"
        " takes them once it is approved, or run the job in full mode again"
        for one in left_behind(session.state, session.chunks, session.row)
    ]


def emptied(manifest: Mapping[str, Any], current: Mapping[str, Any] | None) -> list[str]:
    """What the current version had and this one lacks altogether: a lost mount looks like an empty folder.

    A source that the job no longer names was left out on purpose. A first version may be empty.
    """
    if current is None:
        return []
    found = []
    had = current["totals"]["documents"]
    if had and not manifest["totals"]["documents"]:
        found.append(f"it holds no documents; the current version holds {had:,}")
    before = {source["source_id"]: source for source in current["sources"]}
    for source in manifest["sources"]:
        old = before.get(source["source_id"])
        if old is not None and old["bytes"] and not source["bytes"]:
            found.append(
                f"source '{source['source_id']}' is empty: it gave {old['files']:,} file(s) to the current"
                " version and gives nothing now"
            )
    return found


def last_full_manifest(session: Session) -> dict[str, Any] | None:
    """Manifest of the version that a full one is compared with; None where there is none."""
    last = last_full(session.state, session.settings.dataset.id)
    if last is None or session.chunks.blobs.stat(last.manifest_uri) is None:
        return None
    found: dict[str, Any] = json.loads(session.chunks.blobs.read(last.manifest_uri))
    return found
