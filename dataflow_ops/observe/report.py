"""The data of a run's report: plain numbers and names, gathered over the outputs in bounded memory."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from dataflow_ops.observe import alarms, drift
from dataflow_ops.observe import report_intake as intake
from dataflow_ops.observe import report_tables as tables
from dataflow_ops.observe.chunks import Chunks
from dataflow_ops.observe.evidence import RuleNote
from dataflow_ops.observe.failures import failures
from dataflow_ops.observe.losses import LossCounter, Losses
from dataflow_ops.observe.metrics import RunMetrics
from dataflow_ops.observe.reader import StepReader
from dataflow_ops.observe.spread import SHARED, SpreadCounter
from dataflow_ops.settings import JobSettings

FORMAT = 2
"""Raised when a report's data can't be rendered by an older renderer."""


def build_report_data(
    reader: StepReader,
    metrics: RunMetrics,
    manifest: Mapping[str, Any],
    settings: JobSettings,
    previous: Mapping[str, Any] | None = None,
    made_at: str = "",
    version_id: str = "",
    rules: Sequence[RuleNote] = (),
) -> dict[str, Any]:
    """Gather everything that a report shows.

    Args:
        reader: where the run's outputs are read.
        metrics: the run's metrics, with its dead letters grouped.
        manifest: of the version; ``{}`` for a run without one. Read are ``version``, ``mode``,
            ``data_date``, ``tokenizer`` and, as versions to show, the mappings ``rules``, ``parsers``,
            ``steps`` and ``models``.
        settings: the resolved job.
        previous: this function's result for the last full version, for drift.
        made_at: date and time to print, as text.
        version_id: the version as the commands take it; else the job's ``output.version``.
        rules: the filter's rules in force, for their bounds by kind of text.

    Returns:
        A mapping of plain lists, mappings, numbers and strings. NaN and infinities become ``None``.

    """
    chunks = Chunks(reader)
    losses, spread = LossCounter(chunks), SpreadCounter(chunks)
    # Side by side: what one reads of a chunk is still at hand for the other.
    for chunk in chunks.names():
        losses.add(chunk)
        spread.add(chunk)
    lost, measured = losses.result(), spread.result
    plan = tables.plan(chunks)
    funnel = tables.funnel(metrics, lost, measured)
    data: dict[str, Any] = {
        "format": FORMAT,
        "dataset": settings.dataset.id,
        "version": str(version_id or manifest.get("version") or settings.output.version),
        "mode": str(manifest.get("mode") or "full"),
        "data_date": str(manifest.get("data_date") or ""),
        "run": metrics.run_id,
        "state": metrics.state,
        "current": None,
        "waits": [],
        "made_at": made_at,
        "summary": tables.summary(metrics, measured, settings),
        "funnel": funnel,
        "rules": tables.rules(metrics, lost, rules),
        "sources": tables.sources(lost),
        "dedup": tables.dedup(metrics, measured, settings, funnel),
        "basis": measured.basis,
        "shares": {label: tables.top(measured.shares[label]) for label in SHARED},
        "lengths": {"chars": measured.chars.as_data(), "tokens": measured.tokens_hist.as_data()},
        "scores": measured.scores.as_data(),
        "plan": plan,
        "notes": tables.notes(chunks),
        "left_out": intake.left_out(metrics),
        "repaired": intake.repaired(metrics),
        "failures": failures(chunks),
        "dead_letters": [asdict(group) for group in metrics.dead_letters[: tables.TOP]],
        "throughput": tables.throughput(metrics),
        "settings": tables.resolved_settings(settings),
        "versions": tables.versions(manifest),
    }
    data["alarms"] = [alarm.as_data() for alarm in _alarms(metrics, lost, settings, data)]
    limits = {"domain": settings.drift.max_domain_shift, "language": settings.drift.max_language_shift}
    data["drift"] = [
        {**asdict(d), "beyond": d.beyond} for d in (drift.compare(previous, data, limits) if previous else [])
    ][: tables.TOP]
    data["drift_against"] = str(previous["version"]) if previous else None
    clean: dict[str, Any] = _finite(data)
    return clean


def _alarms(
    metrics: RunMetrics, lost: Losses, settings: JobSettings, data: Mapping[str, Any]
) -> list[alarms.Alarm]:
    dedup = data["dedup"]
    summary = data["summary"]
    found = alarms.source_losses(lost.sources, settings.run.max_source_loss)
    found += alarms.dead_share(summary["dead"], summary["records_in"], settings.run.max_dead_share)
    if settings.dedup.near and any(stage["layer"] == "dedup" for stage in data["funnel"]):
        found += alarms.near_share(dedup["near"], dedup["in"])
    for step in ("match", "verify"):
        found += alarms.full_buckets(metrics.step(step).metrics)
    return found + alarms.shortages(data["plan"])


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(k): _finite(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(v) for v in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
