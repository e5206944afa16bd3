"""What each source lost in each step, and to which rule: counted over all chunks, a few numbers at a time."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from dataflow_ops.observe.chunks import Chunks
from dataflow_ops.observe.flow import order
from dataflow_ops.observe.removed import removed


@dataclass(slots=True)
class RuleTally:
    """What one rule removed: how much, between which values, against which bounds."""

    step: str
    rule: str
    gate: str = ""
    hits: int = 0
    value_min: float | None = None
    value_max: float | None = None
    low: float | None = None
    high: float | None = None

    def add(self, row: dict[str, Any]) -> None:
        """Add one aggregated row (same rule, one side)."""
        self.hits += row["hits"]
        self.gate = self.gate or row["gate"] or ""
        self.value_min = _least(self.value_min, row["value_min"])
        self.value_max = _most(self.value_max, row["value_max"])
        if row["side"] == "low":
            self.low = _most(self.low, row["bound_max"])
        elif row["side"] == "high":
            self.high = _least(self.high, row["bound_min"])


@dataclass(slots=True)
class SourceLoss:
    """How many documents of a source a step met and removed.

    Attributes:
        source: source id.
        step: step name.
        documents_in: documents of this source that reached the step.
        lost: rejected, removed as duplicates or dead there.
        rules: rule (or error class of dead letters) -> documents.

    """

    source: str
    step: str
    documents_in: int = 0
    lost: int = 0
    rules: dict[str, int] = field(default_factory=dict)

    @property
    def share(self) -> float:
        """Lost ÷ in."""
        return self.lost / self.documents_in if self.documents_in else 0.0

    @property
    def top_rule(self) -> str:
        """The rule that removed most; ties by name."""
        return min(self.rules, key=lambda r: (-self.rules[r], r)) if self.rules else ""


@dataclass(slots=True)
class Losses:
    """Everything removed, by rule and by source."""

    rules: list[RuleTally] = field(default_factory=list)
    sources: list[SourceLoss] = field(default_factory=list)


_STREAMED = ("parse", "filter", "confirm", "label")


class LossCounter:
    """Counts what was removed, by rule and by source × step. Reads narrow columns, one chunk at a time.

    Args:
        chunks: index of the run's outputs.

    """

    def __init__(self, chunks: Chunks) -> None:
        self._chunks = chunks
        self._rules: dict[tuple[str, str], RuleTally] = {}
        self._reached: dict[str, int] = {}
        self._lost: dict[tuple[str, str], dict[str, int]] = {}

    def add(self, chunk: str) -> None:
        """Count one chunk."""
        text = self._chunks.table("parse", "text", chunk, ("source_id",))
        for source, n in _counts(text["source_id"]) if text is not None else ():
            self._reached[source] = self._reached.get(source, 0) + n
        for row in chain(_aggregated(removed(self._chunks, chunk)), _later(self._chunks, chunk)):
            key = (row["step"], row["rule"])
            self._rules.setdefault(key, RuleTally(*key)).add(row)
            _add(self._lost, row["source_id"], row["step"], row["rule"], row["hits"])

    def result(self) -> Losses:
        """Everything counted, with the dead letters of parse."""
        lost = {key: dict(rules) for key, rules in self._lost.items()}
        for chunk in self._chunks.index("parse", "dead"):
            dead = self._chunks.table("parse", "dead", chunk, ("source_id", "error"))
            if dead is not None:
                grouped = dead.group_by(["source_id", "error"]).aggregate([([], "count_all")])
                for row in grouped.to_pylist():
                    _add(lost, row["source_id"] or "", "parse", row["error"] or "", row["count_all"])
        rules = sorted(self._rules.values(), key=lambda t: (order(t.step), -t.hits, t.rule))
        return Losses(rules, _by_source(self._reached, lost))


def _by_source(reached: dict[str, int], lost: dict[tuple[str, str], dict[str, int]]) -> list[SourceLoss]:
    out = []
    steps = sorted({step for _, step in lost}, key=order)
    for source in sorted({*reached, *(source for source, _ in lost)}):
        left = reached.get(source, 0) + sum(lost.get((source, "parse"), {}).values())
        for step in steps:
            gone = lost.get((source, step), {})
            n = sum(gone.values())
            if n:
                out.append(SourceLoss(source, step, left, n, dict(sorted(gone.items()))))
            left -= n
    return out


def _later(chunks: Chunks, chunk: str) -> Iterable[dict[str, Any]]:
    """Rejects that only the finished lineage shows (score, mixing)."""
    fates = chunks.table("scatter", "fates", chunk, ("source_id", "fate", "step", "rule", "value", "bound"))
    if fates is None:
        return []
    fates = fates.filter(
        pc.and_(
            pc.is_in(fates["fate"], pa.array(["rejected", "not_sampled"])),
            pc.invert(pc.is_in(fates["step"], pa.array(_STREAMED))),
        )
    )
    named = pc.if_else(pc.equal(fates["fate"], "not_sampled"), "not_sampled", fates["rule"])
    fates = fates.set_column(fates.column_names.index("rule"), "rule", named)
    empty = pa.array([""] * fates.num_rows, pa.string())
    return _aggregated([fates.append_column("gate", empty).append_column("side", empty)])


def _aggregated(tables: Iterable[pa.Table]) -> Iterable[dict[str, Any]]:
    keys = ["source_id", "step", "rule", "gate", "side"]
    for table in tables:
        grouped = table.select([*keys, "value", "bound"]).group_by(keys)
        wanted: list[tuple[Any, str]] = [
            ([], "count_all"),
            *((c, f) for c in ("value", "bound") for f in ("min", "max")),
        ]
        for row in grouped.aggregate(wanted).to_pylist():
            row["hits"] = row.pop("count_all")
            row["source_id"] = row["source_id"] or ""
            row["rule"] = row["rule"] or ""
            yield row


def _counts(column: Any) -> list[tuple[str, int]]:
    return [(pair["values"] or "", pair["counts"]) for pair in pc.value_counts(column).to_pylist()]


def _add(lost: dict[tuple[str, str], dict[str, int]], source: str, step: str, rule: str, n: int) -> None:
    by_rule = lost.setdefault((source, step), {})
    by_rule[rule] = by_rule.get(rule, 0) + n


def _least(one: float | None, other: float | None) -> float | None:
    return min((x for x in (one, other) if x is not None), default=None)


def _most(one: float | None, other: float | None) -> float | None:
    return max((x for x in (one, other) if x is not None), default=None)
