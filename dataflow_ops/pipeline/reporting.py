"""report.html and report.json beside a version. They hold times, so they are no part of the manifest."""

from __future__ import annotations

import datetime as dt
import json
import time
from collections import Counter
from collections.abc import Mapping
from typing import Any

from dataflow_ops.observe.metrics import RunMetrics
from dataflow_ops.observe.report import build_report_data
from dataflow_ops.observe.report_html import render
from dataflow_ops.pipeline.facts import Facts
from dataflow_ops.pipeline.reader import RunReader
from dataflow_ops.pipeline.session import Session


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
        reader, run_metrics(session, facts), manifest, session.settings, previous, moment
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
                "seconds_cpu": m.seconds,
                "seconds_wall": max(0.0, (m.last_end or 0.0) - (m.first_start or 0.0)),
                "tasks": sum(m.tasks.values()),
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
    began = session.row.created_at
    return RunMetrics.from_rows(rows, groups, run_id, "SUCCEEDED", time.time() - began)


def write_report(session: Session, version_id: str, data: Mapping[str, Any]) -> None:
    """Write both files, replacing those of an earlier attempt."""
    blobs = session.chunks.blobs
    text = json.dumps(data, ensure_ascii=False, indent=1, default=str)
    blobs.put(f"versions/{version_id}/report.json", text.encode(), replace=True)
    blobs.put(f"versions/{version_id}/report.html", render(dict(data)).encode(), replace=True)
