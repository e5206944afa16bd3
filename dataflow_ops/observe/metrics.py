"""Counts, rates and rule hits by step, as they are shown; rows come in as plain mappings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from dataflow_ops.observe.flow import STEPS, order
from dataflow_ops.values import Counts


@dataclass(frozen=True, slots=True)
class StepMetrics:
    """What one step did in one run.

    Attributes:
        step: step name.
        layer: its layer.
        counts: records in, kept, rejected, dead, skipped; bytes and tokens.
        seconds_cpu: CPU time of all its tasks together.
        seconds_tasks: time of all its tasks together, each from its start to its end; tasks that an earlier
            run did are in, as their records are.
        tasks: tasks it has.
        tasks_skipped: tasks among them that an earlier run had done.
        rule_hits: rule -> records rejected by it.
        metrics: name -> number, summed over tasks.

    """

    step: str
    layer: str = ""
    counts: Counts = field(default_factory=Counts)
    seconds_cpu: float = 0.0
    seconds_tasks: float = 0.0
    tasks: int = 0
    tasks_skipped: int = 0
    rule_hits: Mapping[str, int] = field(default_factory=dict)
    metrics: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> StepMetrics:
        """Build from a row with the names of :class:`Counts` and of this class; missing ones are 0."""
        step = str(row["step"])
        skipped = {str(k): int(v) for k, v in (row.get("skipped") or {}).items()}
        names = ("documents_in", "kept", "rejected", "dead", "documents_out", "bytes_in", "tokens_out")
        counts = Counts(skipped=skipped, **{name: int(row.get(name) or 0) for name in names})
        return cls(
            step=step,
            layer=str(row.get("layer") or STEPS.get(step, "")),
            counts=counts,
            seconds_cpu=float(row.get("seconds_cpu") or 0.0),
            seconds_tasks=float(row.get("seconds_tasks") or 0.0),
            tasks=int(row.get("tasks") or 0),
            tasks_skipped=int(row.get("tasks_skipped") or 0),
            rule_hits={str(k): int(v) for k, v in (row.get("rule_hits") or {}).items()},
            metrics={str(k): float(v) for k, v in (row.get("metrics") or {}).items()},
        )

    def __add__(self, other: StepMetrics) -> StepMetrics:
        """Both together."""
        return StepMetrics(
            step=self.step,
            layer=self.layer or other.layer,
            counts=self.counts + other.counts,
            seconds_cpu=self.seconds_cpu + other.seconds_cpu,
            seconds_tasks=self.seconds_tasks + other.seconds_tasks,
            tasks=self.tasks + other.tasks,
            tasks_skipped=self.tasks_skipped + other.tasks_skipped,
            rule_hits=_summed(self.rule_hits, other.rule_hits),
            metrics=_summed(self.metrics, other.metrics),
        )

    @property
    def documents_per_second(self) -> float:
        """Input records per second of one worker; 0 where no time was recorded."""
        return self.counts.documents_in / self.seconds_tasks if self.seconds_tasks > 0 else 0.0

    @property
    def documents_per_cpu_second(self) -> float:
        """Input records per second of CPU time: per core, whatever the number of workers."""
        return self.counts.documents_in / self.seconds_cpu if self.seconds_cpu > 0 else 0.0

    @property
    def bytes_per_second(self) -> float:
        """Payload bytes read per second of one worker."""
        return self.counts.bytes_in / self.seconds_tasks if self.seconds_tasks > 0 else 0.0

    @property
    def tokens_per_second(self) -> float:
        """Tokens written per second of one worker; 0 in steps that know no tokens."""
        return self.counts.tokens_out / self.seconds_tasks if self.seconds_tasks > 0 else 0.0


@dataclass(frozen=True, slots=True)
class DeadGroup:
    """Dead letters that have step, error, parser, host and media type in common."""

    step: str
    error: str
    parser: str = ""
    host: str = ""
    media_type: str = ""
    level: str = "document"
    count: int = 1
    example: str = ""


@dataclass(frozen=True, slots=True)
class RunMetrics:
    """What one run did.

    Attributes:
        run_id: as the commands take it.
        state: run state (``SUCCEEDED``, ``PAUSED``, …).
        seconds_wall: from the run's creation to now, its pauses included.
        steps: in flow order.
        dead_letters: groups, largest first.

    """

    run_id: str = ""
    state: str = ""
    seconds_wall: float = 0.0
    steps: tuple[StepMetrics, ...] = ()
    dead_letters: tuple[DeadGroup, ...] = ()

    @classmethod
    def from_rows(
        cls,
        rows: Iterable[Mapping[str, Any]],
        dead_letters: Iterable[Mapping[str, Any]] = (),
        run_id: str = "",
        state: str = "",
        seconds_wall: float = 0.0,
    ) -> RunMetrics:
        """Gather rows by step (several rows of one step are added) and put steps in flow order."""
        by_step: dict[str, StepMetrics] = {}
        for row in rows:
            one = StepMetrics.from_row(row)
            by_step[one.step] = by_step[one.step] + one if one.step in by_step else one
        groups = [
            DeadGroup(
                step=str(g.get("step") or ""),
                error=str(g.get("error") or ""),
                parser=str(g.get("parser") or ""),
                host=str(g.get("host") or ""),
                media_type=str(g.get("media_type") or ""),
                level=str(g.get("level") or "document"),
                count=int(g.get("count") or 0),
                example=str(g.get("example") or ""),
            )
            for g in dead_letters
        ]
        groups.sort(key=lambda g: (-g.count, g.step, g.error, g.parser, g.host, g.media_type))
        steps = tuple(sorted(by_step.values(), key=lambda s: order(s.step)))
        return cls(run_id, state, seconds_wall, steps, tuple(groups))

    def step(self, name: str) -> StepMetrics:
        """One step's metrics; all zero where it has not run."""
        return next((s for s in self.steps if s.step == name), StepMetrics(name, STEPS.get(name, "")))

    @property
    def records_in(self) -> int:
        """Records that entered the run: those of parse, or of the first step that ran."""
        first = self.step("parse").counts.documents_in
        return first or (self.steps[0].counts.documents_in if self.steps else 0)

    def table_rows(self) -> list[tuple[str, int, int, int, int, float]]:
        """For the console: ``(step, in, kept, rejected, dead, documents/s of a worker)`` in flow order."""
        return [
            (
                s.step,
                s.counts.documents_in,
                s.counts.kept,
                s.counts.rejected,
                s.counts.dead,
                s.documents_per_second,
            )
            for s in self.steps
        ]


_N = TypeVar("_N", int, float)


def _summed(one: Mapping[str, _N], other: Mapping[str, _N]) -> dict[str, _N]:
    out = dict(one)
    for name, value in other.items():
        out[name] = out[name] + value if name in out else value
    return out
