"""The parts of a report's data, each a table of plain values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from dataflow_ops.observe import banding
from dataflow_ops.observe.aliases import ALIASES
from dataflow_ops.observe.chunks import Chunks
from dataflow_ops.observe.evidence import RuleNote
from dataflow_ops.observe.losses import Losses, SourceLoss
from dataflow_ops.observe.metrics import RunMetrics
from dataflow_ops.observe.rule_texts import settings_of
from dataflow_ops.observe.spread import Spread
from dataflow_ops.settings import DatasetSettings, JobSettings
from dataflow_ops.source_settings import SourceSettings

TOP = 25
"""Rows shown of any list that may be long."""


def sources(lost: Losses) -> list[dict[str, Any]]:
    """Sources with what they lost by step, the one with the worst step first."""
    steps: dict[str, list[SourceLoss]] = {}
    for one in lost.sources:
        steps.setdefault(one.source, []).append(one)
    worst = sorted(steps, key=lambda name: (-max(one.share for one in steps[name]), name))
    return [
        {
            "source": name,
            "steps": [
                {"step": s.step, "in": s.documents_in, "lost": s.lost, "top_rule": s.top_rule}
                for s in steps[name]
            ],
        }
        for name in worst[:TOP]
    ]


def summary(metrics: RunMetrics, measured: Spread, settings: JobSettings) -> dict[str, Any]:
    """The numbers of the headline."""
    records = metrics.records_in
    dead = sum(step.counts.dead for step in metrics.steps)
    return {
        "records_in": records,
        "bytes_in": metrics.step("parse").counts.bytes_in,
        "documents_out": measured.documents,
        "tokens_out": measured.tokens,
        "tokens_estimated": not settings.mixing.tokenizer,
        "dead": dead,
        "dead_share": dead / records if records else 0.0,
        # Only a run that did all its tasks itself took as long as the version takes.
        "seconds": 0.0 if any(s.tasks_skipped for s in metrics.steps) else metrics.seconds_wall,
        "seconds_tasks": sum(s.seconds_tasks for s in metrics.steps),
        "shards": metrics.step("export").metrics.get("shards", 0.0),
    }


def funnel(metrics: RunMetrics, lost: Losses, measured: Spread) -> list[dict[str, Any]]:
    """Documents by layer. Ingest counts files, so the funnel begins with the records of parse."""
    ran = {step.step for step in metrics.steps}
    out: list[dict[str, Any]] = []
    if "parse" in ran:
        c = metrics.step("parse").counts
        out.append(_stage("parse", c.documents_in, c.rejected, c.dead, c.documents_out))
    if "filter" in ran:
        c = metrics.step("filter").counts
        out.append(_stage("filter", c.documents_in, c.rejected, c.dead))
    left = out[-1]["out"] if out else 0
    if "confirm" in ran or measured.exact or measured.near:
        out.append(_stage("dedup", left, measured.exact + measured.near, metrics.step("sign").counts.dead))
        left = out[-1]["out"]
    if "score" in ran:
        c = metrics.step("score").counts
        out.append(_stage("score", left, c.rejected, c.dead))
        left = out[-1]["out"]
    if "label" in ran:
        c = metrics.step("label").counts
        out.append(_stage("mix", left, c.rejected + measured.not_sampled, c.dead))
        left = out[-1]["out"]
    if "export" in ran and measured.basis == "exported":
        out.append(_stage("export", left, max(0, left - measured.documents), 0))
    return out


def _stage(layer: str, entered: int, removed: int, dead: int, out: int | None = None) -> dict[str, Any]:
    kept = max(0, entered - removed - dead)
    return {
        "layer": layer,
        "in": entered,
        "removed": removed,
        "dead": dead,
        "kept": kept,
        "out": kept if out is None else out,
    }


def rules(metrics: RunMetrics, lost: Losses, notes: Sequence[RuleNote] = ()) -> list[dict[str, Any]]:
    """What each rule removed, most first; duplicates and mixing have tables of their own.

    Args:
        metrics: of the run.
        lost: what was counted over the outputs, with the bounds that were broken.
        notes: the filter's rules in force; their bounds by kind of text stand in ``by_kind``.

    """
    bounds = {note.name: {kind: list(pair) for kind, pair in note.by_kind.items()} for note in notes}
    rows = []
    seen = set()
    entered = {stage.step: stage.counts.documents_in for stage in metrics.steps}
    for tally in lost.rules:
        if tally.step == "confirm" or tally.rule == "not_sampled":
            continue
        seen.add((tally.step, tally.rule))
        row = {k: v for k, v in asdict(tally).items()}
        rows.append({**row, "in": entered.get(tally.step, 0), "aliases": list(ALIASES.get(tally.rule, ()))})
    for step in metrics.steps:
        for rule, hits in sorted(step.rule_hits.items()):
            if step.layer in ("parse", "filter", "score", "mix") and hits and (step.step, rule) not in seen:
                rows.append(
                    {
                        "step": step.step,
                        "rule": rule,
                        "gate": "",
                        "hits": hits,
                        "value_min": None,
                        "value_max": None,
                        "low": None,
                        "high": None,
                        "in": step.counts.documents_in,
                        "aliases": list(ALIASES.get(rule, ())),
                    }
                )
    for row in rows:
        row["by_kind"] = bounds.get(str(row["rule"]), {}) if row["step"] == "filter" else {}
        row["setting"] = settings_of(str(row["step"]), str(row["rule"]))
    return sorted(rows, key=lambda r: (-int(r["hits"]), str(r["step"]), str(r["rule"])))


def dedup(
    metrics: RunMetrics, measured: Spread, settings: JobSettings, funnel: list[dict[str, Any]]
) -> dict[str, Any]:
    """Exact and near copies, with the histograms and the S-curve of the job's bands."""
    minhash = settings.dedup.minhash
    entered = next((stage["in"] for stage in funnel if stage["layer"] == "dedup"), 0)
    return {
        "in": entered,
        "exact": measured.exact,
        "near": measured.near,
        "unique": max(0, entered - measured.exact - measured.near),
        "groups": measured.groups.as_data(),
        "similarity": measured.similarity.tolist() if measured.near else [],
        "min_similarity": settings.dedup.verify.min_similarity,
        "curve": banding.s_curve(minhash.band, minhash.rows_per_band, minhash.signature_size),
        "near_on": settings.dedup.near,
    }


def plan(chunks: Chunks) -> list[dict[str, Any]]:
    """``plan.domains`` under short names, by domain."""
    rows: list[dict[str, Any]] = []
    for partition in chunks.index("plan", "domains"):
        table = chunks.table("plan", "domains", partition)
        for row in table.to_pylist() if table is not None else []:
            rows.append(
                {
                    "domain": row.get("domain") or "",
                    "ratio": row.get("ratio"),
                    "asked": row.get("asked_tokens"),
                    "target": row.get("target_tokens"),
                    "supply": row.get("supply_tokens") or 0,
                    "drawn": row.get("drawn_tokens") or 0,
                    "documents": row.get("documents") or 0,
                    "cap": row.get("cap_tokens"),
                    "shortage": row.get("shortage_tokens") or 0,
                    "epochs": [row.get("epoch_start"), row.get("epoch_end")],
                }
            )
    return sorted(rows, key=lambda r: str(r["domain"]))


def notes(chunks: Chunks) -> list[str]:
    """Sentences of ``plan.notes``."""
    out: list[str] = []
    for partition in chunks.index("plan", "notes"):
        table = chunks.table("plan", "notes", partition, ("note",))
        out += table["note"].to_pylist() if table is not None else []
    return out[:TOP]


def throughput(metrics: RunMetrics) -> list[dict[str, Any]]:
    """Counts, times and rates by step."""
    return [
        {
            "step": s.step,
            "layer": s.layer,
            "in": s.counts.documents_in,
            "kept": s.counts.kept,
            "rejected": s.counts.rejected,
            "dead": s.counts.dead,
            "skipped": dict(sorted(s.counts.skipped.items())),
            "out": s.counts.documents_out,
            "tasks": s.tasks,
            "tasks_skipped": s.tasks_skipped,
            "seconds_tasks": s.seconds_tasks,
            "seconds_cpu": s.seconds_cpu,
            "documents_per_second": s.documents_per_second,
            "bytes_per_second": s.bytes_per_second,
            "tokens_per_second": s.tokens_per_second,
        }
        for s in metrics.steps
    ]


def resolved_settings(settings: JobSettings) -> list[dict[str, Any]]:
    """All settings by dotted key; ``changed`` marks what differs from the defaults."""
    given = _flat(settings.model_dump(mode="json"))
    bare = JobSettings(dataset=DatasetSettings(id="default"), sources=(SourceSettings(path="-"),))
    default = _flat(bare.model_dump(mode="json"))
    for i in range(1, len(settings.sources)):
        default |= {
            k.replace(".0.", f".{i}.", 1): v for k, v in default.items() if k.startswith("sources.0.")
        }
    return [
        {"key": key, "value": value, "changed": default.get(key) != value} for key, value in given.items()
    ]


def versions(manifest: Mapping[str, Any]) -> list[dict[str, str]]:
    """Versions and fingerprints that the manifest names."""
    out = []
    for what in ("steps", "rules", "parsers", "models"):
        entries = manifest.get(what)
        if isinstance(entries, list):  # steps: rows with a name and a fingerprint
            entries = {str(e.get("name")): str(e.get("fingerprint") or "")[:16] for e in entries}
        if isinstance(entries, Mapping):
            for name, value in sorted(_flat(entries).items()):
                out.append({"what": what, "name": name, "version": value})
    if manifest.get("tokenizer"):
        for name, value in _flat({"tokenizer": manifest["tokenizer"]}).items():
            out.append({"what": "models", "name": name, "version": value})
    return out


def _flat(tree: Mapping[str, Any], before: str = "") -> dict[str, str]:
    """Leaves by dotted key, as text; lists stay whole, empty sections are left out."""
    out: dict[str, str] = {}
    for key, value in tree.items():
        name = f"{before}{key}"
        if isinstance(value, Mapping):
            out.update(_flat(value, f"{name}."))
        elif isinstance(value, list) and value and all(isinstance(v, Mapping) for v in value):
            out.update(_flat({str(i): v for i, v in enumerate(value)}, f"{name}."))
        elif isinstance(value, (list, tuple)):
            out[name] = ", ".join(map(str, value))
        else:
            out[name] = "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
    return out


def top(values: Mapping[str, list[int]]) -> list[dict[str, Any]]:
    """Values by documents, most first; beyond ``TOP`` they are added up in one row without a name."""
    rows: list[dict[str, Any]] = [
        {"name": name, "documents": pair[0], "tokens": pair[1]}
        for name, pair in sorted(values.items(), key=lambda item: (-item[1][0], item[0]))
    ]
    if len(rows) > TOP:
        rest = rows[TOP - 1 :]
        rows = [
            *rows[: TOP - 1],
            {
                "name": None,
                "documents": sum(r["documents"] for r in rest),
                "tokens": sum(r["tokens"] for r in rest),
            },
        ]
    return rows
