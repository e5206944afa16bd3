"""What a rule is, and how it decides. No rule looks at a document alone: all work on whole columns."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import numpy.typing as npt

from dataflow_ops.kernels.arrow import F64, I64
from dataflow_ops.layers.filter.measures import Measures

Gate = Literal["L1", "L2"]
KINDS = ("prose", "code", "table", "dialogue")
"""Kinds of text, in the order of their codes."""

PROSE = frozenset({"prose"})
TEXT = frozenset({"prose", "table"})
WRITTEN = frozenset({"prose", "code", "table"})
ALL = frozenset(KINDS)


@dataclass(frozen=True, slots=True)
class Bounds:
    """Inclusive bounds of a statistic; ``None``: none on that side."""

    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Rule:
    """One statistic with bounds.

    Attributes:
        name: stable; stands in rejects, settings and reports.
        version: raised whenever the same text may give another value.
        measure: the statistic: from a view of documents to float64 of shape ``(len(view),)``. Defined for
            every text, the empty one too; NaN is refused, never passed.
        low: smallest value that passes; ``None``: no lower bound.
        high: largest value that passes.
        gate: ``L1`` counts characters only; ``L2`` is measured for what L1 let through.
        applies_to: kinds of text that it judges; it is measured for all.
        source: where the statistic and its bounds come from.
        errs: what it is known to get wrong.
        by_kind: bounds of single kinds, looser than the general ones; ``None`` inside inherits.
        floor: a cheap statistic that ``measure`` never falls below. Where it reaches ``low`` the document
            passes unmeasured (null in ``stats``, with the floor beside it).
        default: whether it judges without being asked to (``quality_rules.enable``).
        alias: its name in RedPajama-V2's quality signals, understood in settings.

    """

    name: str
    version: int
    measure: Callable[[Measures], F64]
    low: float | None
    high: float | None
    gate: Gate
    applies_to: frozenset[str]
    source: str
    errs: str
    by_kind: Mapping[str, Bounds] = field(default_factory=dict)
    floor: Callable[[Measures], F64] | None = None
    default: bool = True
    alias: str = ""

    @property
    def statistic(self) -> str:
        """Name of the column in ``stats``."""
        return self.measure.__name__


@dataclass(frozen=True, slots=True)
class ActiveRule:
    """A rule with the bounds that a job gave it, as arrays over :data:`KINDS`.

    Attributes:
        rule: the rule.
        judges: bool of shape ``(4,)``: kinds that it judges; all false where it is only measured.
        low: float64 of shape ``(4,)``; -inf: none.
        high: float64 of shape ``(4,)``; inf: none.

    """

    rule: Rule
    judges: npt.NDArray[np.bool_]
    low: F64
    high: F64


@dataclass(frozen=True, slots=True)
class RuleInForce:
    """A rule as a job applies it, in plain values, for reports and lineage.

    Attributes:
        name: the rule's.
        version: the rule's.
        gate: ``L1`` or ``L2``.
        statistic: column of ``stats``.
        low: for prose, or else the first kind that it judges; ``None``: no bound.
        high: likewise.
        applies_to: kinds that it judges.
        by_kind: ``(low, high)`` of each kind that it judges.

    """

    name: str
    version: int
    gate: Gate
    statistic: str
    low: float | None
    high: float | None
    applies_to: tuple[str, ...]
    by_kind: Mapping[str, tuple[float | None, float | None]]


def in_force(active: ActiveRule) -> RuleInForce:
    """Plain values of a rule that judges at least one kind."""
    by_kind = {
        kind: (_finite(active.low[code]), _finite(active.high[code]))
        for code, kind in enumerate(KINDS)
        if active.judges[code]
    }
    rule, (low, high) = active.rule, next(iter(by_kind.values()))
    return RuleInForce(rule.name, rule.version, rule.gate, rule.statistic, low, high, tuple(by_kind), by_kind)


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


@dataclass(frozen=True, slots=True)
class Judgement:
    """What one rule says of some documents; arrays of shape ``(m,)``.

    Attributes:
        values: the statistic, NaN where the floor settled it.
        floors: the floor where the rule has one.
        failed: which are refused.

    """

    values: F64
    floors: F64 | None
    failed: npt.NDArray[np.bool_]


def judge(active: ActiveRule, view: Measures, kinds: I64) -> Judgement:
    """Measure one rule's statistic and decide.

    A value passes only if it compares true with both bounds, so NaN never does; the one way to pass
    without a value is a floor that reaches the lower bound where there is no upper one.

    Args:
        active: the rule and its bounds.
        view: the documents.
        kinds: codes into :data:`KINDS`, int64 of shape ``(len(view),)``.

    """
    low, high, judges = active.low[kinds], active.high[kinds], active.judges[kinds]
    rule = active.rule
    if rule.floor is None:
        values, floors = rule.measure(view), None
        settled = np.zeros(values.size, np.bool_)
    else:
        floors = rule.floor(view)
        settled = settled_by(active, floors, kinds)
        values = np.full(floors.size, np.nan)
        open_rows = np.flatnonzero(~settled)
        if open_rows.size:
            values[open_rows] = rule.measure(view.take(open_rows))
    passes = settled | ((values >= low) & (values <= high))
    return Judgement(values, floors, judges & ~passes)


def settled_by(active: ActiveRule, floors: F64, kinds: I64) -> npt.NDArray[np.bool_]:
    """Where the floor alone lets a document pass: bool of shape ``(m,)``.

    Args:
        active: a rule with a floor, and its bounds.
        floors: the floor of each document, float64 of shape ``(m,)``; NaN settles nothing.
        kinds: codes into :data:`KINDS`, int64 of shape ``(m,)``.

    """
    low, rule = active.low[kinds], active.rule
    wanted = np.where(np.isfinite(low), low, -np.inf if rule.low is None else rule.low)
    settled: npt.NDArray[np.bool_] = (floors >= wanted) & ~np.isfinite(active.high[kinds])
    return settled


def broken_bound(active: ActiveRule, kind: int, value: float) -> tuple[float, Literal["low", "high"]]:
    """The bound that a refused value lies beyond, and its side.

    A value that could not be measured (NaN) is named by the bound it failed to reach.
    """
    low, high = float(active.low[kind]), float(active.high[kind])
    is_high = value > high or (math.isnan(value) and not math.isfinite(low))
    return (high, "high") if is_high else (low, "low")
