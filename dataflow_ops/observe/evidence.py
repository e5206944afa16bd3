"""What the steps wrote about one document: statistics against rules, reject, duplicate, labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from dataflow_ops.observe.chunks import Chunks
from dataflow_ops.observe.reader import take_rows

FLOOR = "_floor"
"""Behind the name of a statistic in ``filter.stats``: the value is not below this."""


@dataclass(frozen=True, slots=True)
class RuleNote:
    """What a reader needs to know of a rule.

    Attributes:
        name: rule name as in ``filter.rejects``.
        version: of the rule.
        gate: L1 or L2.
        low: below it a document is rejected; ``None``: no such bound.
        high: above it a document is rejected; ``None``: no such bound.
        statistic: its column in ``filter.stats``; ``""``: the rule's name.
        applies_to: kinds of text it judges; empty: all.
        by_kind: ``(low, high)`` for single kinds of text that have bounds of their own.

    """

    name: str
    version: str = ""
    gate: str = ""
    low: float | None = None
    high: float | None = None
    statistic: str = ""
    applies_to: tuple[str, ...] = ()
    by_kind: Mapping[str, tuple[float | None, float | None]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PassedRule:
    """A rule that a document passed.

    Attributes:
        name: of the rule, with its ``version`` and ``gate``.
        value: what was measured; ``None`` where the floor settled it.
        low: bounds in force for the document's kind of text, likewise ``high``.
        floor: the value is at least this, by a cheaper statistic; ``None`` where the rule has none.

    """

    name: str
    version: str
    gate: str
    value: float | None
    low: float | None
    high: float | None
    floor: float | None = None


@dataclass(frozen=True, slots=True)
class Evidence:
    """Everything known about one row of one chunk besides its text."""

    parser: str = ""
    record_id: str = ""
    reject: Mapping[str, Any] | None = None
    duplicate: Mapping[str, Any] | None = None
    labels: Mapping[str, Any] = field(default_factory=dict)
    passed: tuple[PassedRule, ...] = ()
    gate: str = ""
    side: str = ""
    copies: int = 0
    last_step: str = "parse"


def describe(chunks: Chunks, chunk: str, row: int, rules: Sequence[RuleNote]) -> Evidence:
    """Gather the evidence about row ``row`` of ``chunk`` (its row in ``parse.text``)."""
    parsed = _aligned(chunks, "parse", "text", chunk, row, ("parser", "source_record_id"))
    reject = _keyed(chunks.table("filter", "rejects", chunk), row)
    last = "parse"
    if chunk in chunks.index("filter", "verdicts"):
        last = "filter"
    group = _keyed(chunks.duplicates(chunk), row)
    if chunks.has("confirm", "verdicts"):
        last = "confirm"
    labels = _keyed(chunks.table("label", "labels", chunk), row)
    if labels is not None:
        last = "label"
        labels = {k: v for k, v in labels.items() if k not in ("row", "doc_id") and v is not None}
    score = _keyed(chunks.table("score", "scores", chunk), row)
    if score is not None and score["score"] is not None:
        labels = {**(labels or {}), "score": score["score"], "scored_by": score["scored_by"]}
    duplicate = group if group is not None and group["verdict"] != "survivor" else None
    survivor = group if group is not None and group["verdict"] == "survivor" else None
    return Evidence(
        parser=parsed.get("parser") or "",
        record_id=parsed.get("source_record_id") or "",
        reject=reject,
        duplicate=duplicate,
        labels=labels or {},
        passed=_passed(chunks, chunk, row, rules, reject),
        gate=(reject or {}).get("gate") or "",
        side=(reject or {}).get("side") or "",
        copies=int(survivor["copies"]) if survivor else 0,
        last_step=last,
    )


def _passed(
    chunks: Chunks, chunk: str, row: int, rules: Sequence[RuleNote], reject: Mapping[str, Any] | None
) -> tuple[PassedRule, ...]:
    """Rules in their order; a rejected document passed those before the one that it failed."""
    if not rules or chunk not in chunks.index("filter", "verdicts"):
        return ()
    kind = _aligned(chunks, "filter", "verdicts", chunk, row, ()).get("kind") or ""
    stats = _aligned(chunks, "filter", "stats", chunk, row, ())
    out = []
    for rule in rules:
        if reject is not None and rule.name == reject["rule"]:
            break
        if rule.applies_to and kind not in rule.applies_to:
            continue
        statistic = rule.statistic or rule.name
        value, floor = stats.get(statistic), stats.get(statistic + FLOOR)
        low, high = rule.by_kind.get(kind, (rule.low, rule.high))
        out.append(PassedRule(rule.name, rule.version, rule.gate, value, low, high, floor))
    return tuple(out)


def _aligned(
    chunks: Chunks, step: str, kind: str, chunk: str, row: int, columns: Sequence[str]
) -> Mapping[str, Any]:
    output = chunks.index(step, kind).get(chunk)
    if output is None or row >= output.rows:
        return {}
    found: dict[str, Any] = take_rows(chunks.reader, output, [row], columns).to_pylist()[0]
    return found


def _keyed(table: pa.Table | None, row: int) -> dict[str, Any] | None:
    if table is None or table.num_rows == 0:
        return None
    at = pc.index(table["row"], pa.scalar(row, pa.uint32())).as_py()
    if at < 0:
        return None
    found: dict[str, Any] = table.slice(at, 1).to_pylist()[0]
    return found
