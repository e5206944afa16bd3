"""What was removed just now: a few documents with the passage, the rule, its value and its bound.

Drawn from the chunks that ended last, so that it costs the same with ten chunks and with a hundred thousand.
"""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from typing import Any

from dataflow_ops.console.duplicates import COUNTED_AS, TEXTS
from dataflow_ops.console.glances import FewChunks
from dataflow_ops.console.matches import locate, snippet
from dataflow_ops.console.place import Place
from dataflow_ops.console.runs import command, known_run
from dataflow_ops.console.said import fault
from dataflow_ops.console.shown_layers import LAYER_OF, Totals
from dataflow_ops.console.where_view import steps_in
from dataflow_ops.errors import ConfigError
from dataflow_ops.observe.rule_texts import RULE_TEXTS
from dataflow_ops.pipeline.flow import partitioning
from dataflow_ops.state.records import RunRecord
from dataflow_ops.state.reviews import ReviewRecord

NEWEST = 40
"""Chunks from which a seed chooses."""
CHOSEN = 4
"""Chunks that are read."""
MOST = 50
"""Documents at most."""
MAX_CHARS = 1_000_000


def removed(
    place: Place,
    run_id: str,
    layer: str | None = None,
    rule: str | None = None,
    n: int = 6,
    seed: int = 0,
) -> dict[str, Any]:
    """Rules with their hits, and some of the documents that they removed.

    Args:
        place: the home.
        run_id: the run.
        layer: only this layer (one of the six shown).
        rule: only this rule.
        n: documents, at most 50.
        seed: another seed shows other documents.

    Raises:
        NotThere: no such run.
        ConfigError: no such layer, rule, or number.
    """
    if not 1 <= n <= MOST:
        raise ConfigError(f"n = {n}: ask for 1 to {MOST} documents")
    row = known_run(place, run_id)
    until = place.sums.until()
    totals, added_up = place.sums.totals(run_id, until)
    hits, counted = place.sums.hits(run_id, totals, until)
    complete = added_up and counted
    rules = _rules(hits, steps_in(layer))
    if rule and rule not in {one["rule"] for one in rules} and complete:
        known = ", ".join(sorted(one["rule"] for one in rules)) or "none"
        raise fault(ConfigError, "rule_idle", rule=rule, known=known)
    words = ["audit", run_id, *(["--rule", rule] if rule else []), "--n", str(n)]
    if seed:
        words += ["--seed", str(seed)]
    return {
        "rules": rules,
        "documents": _documents(place, row, totals, hits, steps_in(layer), rule, n, seed),
        "complete": complete,
        "cli": command(*words),
    }


def _rules(hits: Mapping[str, Mapping[str, int]], steps: Sequence[str]) -> list[dict[str, Any]]:
    found = [
        {"rule": COUNTED_AS.get(rule, rule), "layer": LAYER_OF[step], "hits": number}
        for step, by_rule in hits.items()
        if step in steps
        for rule, number in by_rule.items()
        if number
    ]
    return sorted(found, key=lambda one: (-one["hits"], one["rule"]))


def _documents(
    place: Place,
    row: RunRecord,
    totals: Totals,
    hits: Mapping[str, Mapping[str, int]],
    steps: Sequence[str],
    rule: str | None,
    n: int,
    seed: int,
) -> list[dict[str, Any]]:
    from dataflow_ops.observe.audit import sample

    removing = [
        step
        for step, one in totals.items()
        if step in steps and one.rejected and (not rule or _has(hits.get(step, {}), rule))
    ]
    draw = random.Random(seed)
    chunks: list[str] = []
    others: dict[str, list[str]] = {}
    for step in removing:
        chosen = _chosen(place, row, step, rule, draw)
        if partitioning(step) == "chunk":
            chunks += chosen
        else:
            others[step] = chosen
            chunks += _chunks_of(place, row.run_id, step, chosen, draw)
    if not chunks:
        return []
    reader = FewChunks(place, row.run_id, sorted(set(chunks)), others, removing)
    rows = sample(reader, rule or None, n, seed, MAX_CHARS)
    said = _reviews(place, row.dataset, [one.doc_id for one in rows])
    survivors = _survivors(place, row.run_id, rows)
    enough = _enough(row)
    return [
        _document(one, said.get((one.doc_id, one.rule)), survivors.get(one.survivor_id), enough)
        for one in rows
    ]


def _survivors(place: Place, run_id: str, rows: Sequence[Any]) -> dict[str, str]:
    """Survivor → its file: it may lie in a chunk that nothing was drawn from, or be of a version below."""
    found = {one.survivor_id: one.survivor_path for one in rows if one.survivor_path}
    wanted: dict[str, list[Any]] = {}
    for one in rows:
        if one.survivor_place is not None and one.survivor_id not in found:
            wanted.setdefault(one.survivor_place[0], []).append(one)
    reader = FewChunks(place, run_id, sorted(wanted))
    for chunk, output in reader.outputs("parse", "text"):
        at = [one.survivor_place[1] for one in wanted[chunk]]
        if max(at) < output.rows:
            there = reader.read_rows(output, at, ("doc_id", "path")).to_pylist()
            found |= {one["doc_id"].hex(): one["path"] for one in there}
    return found


def _enough(row: RunRecord) -> float | None:
    """How alike two documents must be to be near copies, in this run."""
    verify = json.loads(row.settings).get("dedup", {}).get("verify", {})
    least: float | None = verify.get("min_similarity")
    return least


def _has(hits: Mapping[str, int], rule: str) -> bool:
    return any(COUNTED_AS.get(name, name) == rule and number for name, number in hits.items())


def _chosen(place: Place, row: RunRecord, step: str, rule: str | None, draw: random.Random) -> list[str]:
    """Some partitions of a step that ended last, such as the rule (any, if none is named) had hits in."""
    counted = next((name for name, verdict in COUNTED_AS.items() if verdict == rule), rule)
    newest = place.state.newest_tasks(row.run_id, step, NEWEST, counted or "", row.ended_at)
    names = [task.partition for task in newest]
    return draw.sample(names, min(CHOSEN if partitioning(step) == "chunk" else 1, len(names)))


def _chunks_of(
    place: Place, run_id: str, step: str, partitions: Sequence[str], draw: random.Random
) -> list[str]:
    """Some of the chunks that these partitions of dedup say something about."""
    found: list[str] = []
    for output in place.state.outputs_of_partitions(run_id, step, "verdicts", partitions).values():
        names = [part.name for part in output.slices if part.rows]
        found += draw.sample(names, min(CHOSEN, len(names)))
    return found


def _reviews(place: Place, dataset: str, doc_ids: Sequence[str]) -> dict[tuple[str, str], ReviewRecord]:
    return {(r.doc_id, r.rule): r for r in place.state.reviews_of_documents(dataset, doc_ids)}


def _document(
    one: Any, review: ReviewRecord | None, survivor_path: str | None, enough: float | None
) -> dict[str, Any]:
    english, chinese = TEXTS.get(one.rule) or RULE_TEXTS.get(one.rule) or (one.rule, one.rule)
    shown, match = snippet(one.text, locate(one.rule, one.text) if one.text else None)
    low = one.bound is not None and (one.side == "low" if one.side else (one.value or 0.0) < one.bound)
    return {
        "doc_id": one.doc_id,
        "source": one.source_id,
        "path": one.path,
        "url": one.url or None,
        "step": one.step,
        "rule": one.rule,
        "rule_text": {"en": english, "zh": chinese},
        "value": one.value,
        "low": one.bound if low else None,
        "high": None if low else one.bound,
        "detail": one.detail or None,
        "snippet": shown,
        "match": None if match is None else list(match),
        "length": len(one.text),
        "survivor": one.survivor_id or None,
        "survivor_path": survivor_path,
        "similarity": one.similarity,
        "enough": enough if one.rule == "near" else None,
        "review": None
        if review is None
        else {"verdict": review.verdict, "who": review.who, "at": review.created_at},
    }
