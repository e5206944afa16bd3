"""A version's rules: bounds, what each removed, how its values are spread, and what people said about it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from dataflow_ops.console.duplicates import COUNTED_AS, TEXTS
from dataflow_ops.console.version_facts import facts_of
from dataflow_ops.errors import CorruptOutput
from dataflow_ops.observe.aliases import ALIASES
from dataflow_ops.observe.evidence import RuleNote
from dataflow_ops.observe.rule_texts import RULE_TEXTS, settings_of
from dataflow_ops.pipeline.flow import STEPS
from dataflow_ops.pipeline.home import Home
from dataflow_ops.pipeline.look import rule_notes
from dataflow_ops.pipeline.version_reader import OpenVersion, open_version
from dataflow_ops.pipeline.version_trail import trail
from dataflow_ops.state.records import VersionRecord
from dataflow_ops.state.store import StateStore

SAMPLED_CHUNKS = 8
"""Chunks, evenly spaced, whose statistics make the histograms."""
SAMPLED_ROWS = 10_000
"""Rows of each of them, at most: its first row group."""
BINS = 24
REMEMBERED = 2_000
"""Newest decisions from which it is told which version came before."""


def rules(home: Home, state: StateStore, dataset: str, version: str | None = None) -> dict[str, Any]:
    """All rules of a version, those that removed most first.

    Args:
        home: where versions are.
        state: open state store.
        dataset: which data set.
        version: the version; the current one when left out.

    Returns:
        ``dataset, version, run, previous, sampled, rules``; ``sampled`` counts the documents in the
        histograms.

    Raises:
        ConfigError: the data set has no version.
        VersionError: no such version.
    """
    opened = open_version(home, state, version, dataset)
    if opened.record.is_compact:
        opened = opened.parts[-1]  # the newest of those that rules judged
    steps = {step["name"]: step for step in opened.manifest["steps"]}
    previous = _previous(state, opened.record)
    before = facts_of(home.root, previous) if previous is not None else None
    old = before.steps if before is not None else {}
    notes = rule_notes(opened.steps)
    sample = _sample(opened, [note.statistic or note.name for note in notes])
    reviews = state.count_reviews(dataset)
    rows = [
        {
            **_row("filter", note.name, note.name, steps, old, reviews),
            "gate": note.gate,
            "low": note.low,
            "high": note.high,
            "by_kind": {kind: list(pair) for kind, pair in note.by_kind.items()},
            "histogram": _histogram(sample.get(note.statistic or note.name), note),
        }
        for note in notes
    ]
    rows += _others(steps, old, reviews, {note.name for note in notes})
    rows.sort(key=lambda row: (-row["hits"], row["layer"], row["rule"]))
    return {
        "dataset": dataset,
        "version": opened.record.version_id,
        "run": opened.record.run_id,
        "previous": previous.version_id if previous is not None else None,
        "sampled": max((len(values) for values in sample.values()), default=0),
        "rules": rows,
    }


def _previous(state: StateStore, record: VersionRecord) -> VersionRecord | None:
    """The version before it, as its data set's history tells."""
    versions = state.versions(record.dataset)
    before = trail(versions, state.version_events(record.dataset, limit=REMEMBERED)).before
    return next((v for v in versions if v.version_id == before.get(record.version_id)), None)


def _others(
    steps: Mapping[str, Any], old: Mapping[str, Any], reviews: Mapping[str, Any], known: set[str]
) -> list[dict[str, Any]]:
    """What removes documents besides the filter's rules: parse, dedup, languages."""
    found = []
    for step, layer, _ in STEPS:
        hits = steps.get(step, {}).get("rules") or {}
        for counted in sorted(hits):
            if counted in known or layer == "ingest":
                continue
            name = COUNTED_AS.get(counted, counted)
            row = _row(step, name, counted, steps, old, reviews)
            found.append({**row, "gate": "", "low": None, "high": None, "by_kind": {}, "histogram": None})
    return found


def _row(
    step: str,
    name: str,
    counted: str,
    steps: Mapping[str, Any],
    old: Mapping[str, Any],
    reviews: Mapping[str, Mapping[str, int]],
) -> dict[str, Any]:
    english, chinese = TEXTS.get(name) or RULE_TEXTS.get(name, ("", ""))
    said = reviews.get(name, {})
    return {
        "rule": name,
        "layer": next(layer for known, layer, _ in STEPS if known == step),
        "text": {"en": english, "zh": chinese},
        "setting": settings_of(step, name),
        "aliases": list(ALIASES.get(name, ())),
        "hits": _hits(steps, step, counted),
        "share": _share(steps, step, counted) or 0.0,
        "previous_share": _share(old, step, counted),
        "reviews": {"keep": said.get("keep", 0), "drop": said.get("drop", 0)},
    }


def _hits(steps: Mapping[str, Any], step: str, counted: str) -> int:
    return int((steps.get(step, {}).get("rules") or {}).get(counted, 0))


def _share(steps: Mapping[str, Any], step: str, counted: str) -> float | None:
    """Of the records that came to it; dedup's of those that it signed. None where the step is unknown."""
    entered = steps.get("sign", {}).get("kept") if step == "confirm" else steps.get(step, {}).get("in")
    if entered is None:
        return None
    return _hits(steps, step, counted) / entered if entered else 0.0


def _sample(version: OpenVersion, statistics: Sequence[str]) -> dict[str, npt.NDArray[np.float64]]:
    """Statistic -> values (NaN: not measured) of some documents; nothing where they are no longer kept."""
    outputs = [output for _, output in version.reader.outputs("filter", "stats") if output.rows]
    if not outputs:
        return {}
    at = np.unique(np.linspace(0, len(outputs) - 1, min(len(outputs), SAMPLED_CHUNKS)).astype(np.int64))
    columns = tuple(dict.fromkeys(statistics))
    parts: dict[str, list[npt.NDArray[np.float64]]] = {name: [] for name in columns}
    for i in at.tolist():
        try:
            table = next(version.chunks.batches(outputs[i], columns, max_rows=SAMPLED_ROWS))
        except CorruptOutput:
            continue
        for name in columns:
            parts[name].append(table[name].to_numpy())
    return {name: np.concatenate(values) for name, values in parts.items() if values}


def _histogram(values: npt.NDArray[np.float64] | None, note: RuleNote) -> dict[str, Any] | None:
    """Counts in equal bins over where nearly all values lie; a bound far from them gets a bin of its own.

    Every bound lies within the edges, that of each kind of text too; the outermost bins hold the rest.
    """
    if values is None:
        return None
    values = values[np.isfinite(values)]
    if not len(values):
        return None
    low, high = np.quantile(values, [0.005, 0.995]).tolist()
    pairs = [(note.low, note.high), *note.by_kind.values()]
    bounds = [bound for pair in pairs for bound in pair if bound is not None and np.isfinite(bound)]
    span = high - low
    # One far outside (500,000 characters) would press all values into one bin.
    near = [bound for bound in bounds if low - span <= bound <= high + span]
    low, high = min([low, *near]), max([high, *near])
    if high <= low:
        high = low + (abs(low) or 1.0) * 1e-3
    far = sorted({float(bound) for bound in bounds if not low <= bound <= high})
    middle = np.linspace(low, high, BINS + 1)
    edges = np.array([*(b for b in far if b < low), *middle, *(b for b in far if b > high)])
    counts, _ = np.histogram(np.clip(values, edges[0], edges[-1]), edges)
    return {"edges": edges.tolist(), "counts": counts.tolist(), "measured": len(values)}
