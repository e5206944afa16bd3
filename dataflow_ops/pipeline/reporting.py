"""report.html and report.json beside a version. They hold times, so they are no part of the manifest."""

from __future__ import annotations

import datetime as dt
import json
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from dataflow_ops.observe.metrics import RunMetrics
from dataflow_ops.observe.report import FORMAT, build_report_data
from dataflow_ops.observe.report_html import render
from dataflow_ops.pipeline.facts import Facts
from dataflow_ops.pipeline.look import rule_notes
from dataflow_ops.pipeline.reader import RunReader
from dataflow_ops.pipeline.report_file import (
    UNFIT,
    Note,
    log,
    page_uri,
    put_aside,
    read_report,
    report_uri,
    unfit,
)
from dataflow_ops.pipeline.session import Session
from dataflow_ops.pipeline.version_states import PUBLISHED, WAITING
from dataflow_ops.state.records import VersionRecord
from dataflow_ops.storage.blob import BlobStore


def report_data(session: Session, facts: Facts, previous: Mapping[str, Any] | None) -> dict[str, Any]:
    """Everything the report shows."""
    reader = RunReader(session.driver.index, session.chunks, session.steps)
    manifest = {
        **facts.manifest,
        "version": session.settings.output.version,
        "mode": session.row.mode,
        "data_date": session.row.data_date or "",
    }
    manifest["steps"] = {s["name"]: s["fingerprint"][:12] for s in facts.manifest["steps"]}
    moment = dt.datetime.now(dt.UTC).strftime("%Y-%m-%d %H:%M UTC")
    return build_report_data(
        reader,
        run_metrics(session, facts),
        manifest,
        session.settings,
        previous,
        moment,
        rules=rule_notes(dict(session.steps)),
    )


def run_metrics(session: Session, facts: Facts) -> RunMetrics:
    """State's sums in the shape that observe takes."""
    run_id = session.context.run_id
    rows = []
    for name, m in facts.metrics.items():
        rows.append(
            {
                "step": name,
                "layer": m.layer,
                "documents_in": m.counts.documents_in,
                "kept": m.counts.kept,
                "rejected": m.counts.rejected,
                "dead": m.counts.dead,
                "skipped": m.counts.skipped,
                "documents_out": m.counts.documents_out,
                "bytes_in": m.counts.bytes_in,
                "tokens_out": m.counts.tokens_out,
                "seconds_cpu": m.metrics.get("cpu_seconds", 0.0),
                "seconds_tasks": m.seconds,
                "tasks": sum(m.tasks.values()),
                "tasks_skipped": _skipped(session, name),
                "rule_hits": facts.rule_hits.get(name, {}),
                "metrics": m.metrics,
            }
        )
    letters: Counter[tuple[str, ...]] = Counter()
    example: dict[tuple[str, ...], str] = {}
    for record in session.state.dead_letters(run_id=run_id, limit=100_000):
        one = record.letter
        group = (one.step, one.error, one.parser, one.host, one.media_type, one.level)
        letters[group] += 1
        example.setdefault(group, one.message)
    names = ("step", "error", "parser", "host", "media_type", "level")
    groups = [
        {**dict(zip(names, g, strict=True)), "count": n, "example": example[g]} for g, n in letters.items()
    ]
    state = "SUCCEEDED_WITH_DEAD" if groups else "SUCCEEDED"
    return RunMetrics.from_rows(rows, groups, run_id, state, time.time() - session.row.created_at)


def _skipped(session: Session, step: str) -> int:
    """Tasks of a step that an earlier run finished: their last heartbeat is older than this run."""
    began = session.row.created_at
    records = session.state.records_of_step(session.context.run_id, step).values()
    return sum(r.heartbeat_at is None or r.heartbeat_at < began for r in records)


def write_report(session: Session, version_id: str, data: Mapping[str, Any]) -> None:
    """Write both files beside the version.

    It says how the version stands now; :func:`refresh_report` mends that when somebody decides otherwise.
    A run that did no task for the version leaves the report that is there, but for how the version stands:
    its numbers would be those of finding everything done.

    Args:
        session: of the run.
        version_id: the version.
        data: :func:`report_data`, with why a person must look first under ``waits``.

    """
    blobs = session.chunks.blobs
    record = next(
        v for v in session.state.versions(session.settings.dataset.id) if v.version_id == version_id
    )
    current = record.is_current
    note = session.driver.reporter.note
    found, wrong = read_report(blobs, version_id)
    stands = {
        "version": version_id,
        "state": "AWAITING_APPROVAL" if data["waits"] and not current else data["state"],
        **standing(record, data["waits"]),
    }
    new = {**data, **stands}
    executed = any(t["tasks"] > t["tasks_skipped"] for t in data["throughput"])
    # A report of another format can't be rendered any more.
    if found is not None and found.get("format") == data["format"]:
        if not executed:
            known = {key: found.get(key) for key in stands}
            if known == stands and blobs.stat(page_uri(version_id)) is not None:
                return
            try:
                _put(blobs, version_id, {**found, **stands})
            except UNFIT as e:
                wrong = unfit(version_id, e)
            else:
                return
        elif current and "drift" in found:
            # Compared with the current version, which it is itself, it would not have moved.
            new["drift"], new["drift_against"] = found["drift"], found.get("drift_against")
    if wrong:
        put_aside(blobs, version_id, wrong, "A new one is written, of what this run found.", note)
    _put(blobs, version_id, new)


def standing(record: VersionRecord, waits: Sequence[str] = ()) -> dict[str, Any]:
    """How a version stands, as its report says it: ``stands``, ``current`` and ``waits``."""
    if record.is_current:
        stands = "current"
    elif record.state == WAITING:
        stands = "waits" if waits else "held"
    else:
        stands = "increment" if record.is_increment and record.state == PUBLISHED else record.state.lower()
    return {"stands": stands, "current": record.is_current, "waits": list(waits) if stands == "waits" else []}


def refresh_report(
    blobs: BlobStore,
    record: VersionRecord,
    state: str = "",
    waits: Sequence[str] = (),
    note: Note = log.warning,
) -> None:
    """Let a version's report say how it stands now.

    One that is gone, or of another format, stays as it is. A damaged one is put aside: what it told can't be
    found out again without the version's run.

    Args:
        blobs: where versions lie.
        record: the version as it is now.
        state: of its run; ``""`` leaves what the report says.
        waits: why a person must look.
        note: told of a damaged one.
    """
    found, wrong = read_report(blobs, record.version_id)
    if found is not None and found.get("format") == FORMAT:
        new = {**found, **standing(record, waits), **({"state": state} if state else {})}
        if new == found:
            return
        try:
            _put(blobs, record.version_id, new)
        except UNFIT as e:
            wrong = unfit(record.version_id, e)
    if wrong:
        put_aside(
            blobs,
            record.version_id,
            wrong,
            "report.html stays as it was: see `dataflow versions show`.",
            note,
        )


def _put(blobs: BlobStore, version_id: str, data: Mapping[str, Any]) -> None:
    text, page = json.dumps(data, ensure_ascii=False, indent=1, default=str), render(data)
    blobs.put(report_uri(version_id), text.encode(), replace=True)
    blobs.put(page_uri(version_id), page.encode(), replace=True)
