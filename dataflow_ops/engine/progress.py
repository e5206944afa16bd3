"""Running totals of a task, in a form that survives a pause or a kill."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from dataflow_ops.values import Counts, DeadLetter, StepResult


@dataclass(slots=True)
class Totals:
    """Sums over the results of one task so far."""

    counts: Counts = field(default_factory=Counts)
    rule_hits: dict[str, int] = field(default_factory=dict)
    metrics: dict[str, float] = field(default_factory=dict)
    letters: list[dict[str, Any]] = field(default_factory=list)

    def add(self, result: StepResult) -> None:
        """Add one result."""
        self.counts += result.counts
        for rule, n in result.rule_hits.items():
            self.rule_hits[rule] = self.rule_hits.get(rule, 0) + n
        for name, value in result.metrics.items():
            self.metrics[name] = self.metrics.get(name, 0.0) + value
        dead = result.outputs.get("dead")
        if dead is not None:
            for row in dead.to_pylist():
                row["doc_id"] = row["doc_id"].hex() if row["doc_id"] is not None else ""
                self.letters.append(row)

    def dead(self, step: str) -> list[DeadLetter]:
        """The dead letters met so far."""
        return [
            DeadLetter(
                row["level"],
                step,
                row["source_id"],
                row["path"],
                row["position"],
                row["doc_id"],
                row["error"],
                row["message"],
                row["parser"] or "",
                row["media_type"] or "",
                row["host"] or "",
            )
            for row in self.letters
        ]

    def as_json(self) -> dict[str, Any]:
        """For the cursor row."""
        return {
            "counts": {**asdict(self.counts), "skipped": dict(self.counts.skipped)},
            "rule_hits": self.rule_hits,
            "metrics": self.metrics,
            "letters": self.letters,
        }

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Totals:
        """From the cursor row."""
        return cls(
            Counts(**raw["counts"]),
            dict(raw["rule_hits"]),
            dict(raw["metrics"]),
            [dict(row) for row in raw["letters"]],
        )
