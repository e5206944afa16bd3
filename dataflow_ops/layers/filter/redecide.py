"""What other rules and bounds would decide, from statistics that a run stored.

A document is measured anew only where its stored statistics do not settle which rule refuses it first: an
earlier gate had stopped it, its floor does not reach the new bound, or the statistic was not measured then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dataflow_ops.kernels.arrow import F64, I64
from dataflow_ops.layers.filter.measures import Context, Measures
from dataflow_ops.layers.filter.rule import ActiveRule, Gate, judge, settled_by
from dataflow_ops.layers.filter.rules import marking
from dataflow_ops.layers.filter.step import FLOOR

Texts = Callable[[I64], Iterator[tuple[I64, pa.Table]]]
"""Gives documents by their ascending numbers, in pieces: ``(numbers, columns of the filter's input)``."""

_OF_BAD_WORDS = frozenset({marking.bad_word_share.__name__})
"""Statistics that the job's list of bad words shapes."""


@dataclass(frozen=True, slots=True)
class Stored:
    """What a run left about some documents.

    Attributes:
        kinds: codes into :data:`rule.KINDS`, int64 of shape ``(n,)``.
        stopped: bool of shape ``(n,)``: L1 refused the document, so L2 did not see it.
        measured: statistic -> the earliest gate that measured it then; what is missing has no values.
        stats: columns of ``stats``, floats of shape ``(n,)``, null as NaN.

    """

    kinds: I64
    stopped: npt.NDArray[np.bool_]
    measured: Mapping[str, Gate]
    stats: Mapping[str, F64]

    def take(self, rows: I64) -> Stored:
        """Some of the documents."""
        stats = {name: values[rows] for name, values in self.stats.items()}
        return replace(self, kinds=self.kinds[rows], stopped=self.stopped[rows], stats=stats)


@dataclass(frozen=True, slots=True)
class Decided:
    """What the rules say; arrays of shape ``(n,)``.

    Attributes:
        rule: index of the first rule that refuses the document; -1: none.
        value: the statistic that it refuses; NaN where it could not be measured, or nothing refuses.
        measured: documents whose text was measured.

    """

    rule: I64
    value: F64
    measured: npt.NDArray[np.bool_]


def measured_then(rules: Sequence[ActiveRule], bad_words_differ: bool) -> dict[str, Gate]:
    """Statistics that a run with these rules stored and that would be the same today.

    Args:
        rules: the run's, as :func:`selection.select` gave them.
        bad_words_differ: the list of bad words has changed since.

    Returns:
        Statistic -> the earliest gate that measured it.

    """
    gates: dict[str, Gate] = {}
    for active in rules:  # in order of gates
        gates.setdefault(active.rule.statistic, active.rule.gate)
    return {name: gate for name, gate in gates.items() if not (bad_words_differ and name in _OF_BAD_WORDS)}


def wanted(rules: Sequence[ActiveRule], measured: Mapping[str, Gate]) -> list[str]:
    """Columns of ``stats`` that deciding by these rules reads."""
    names: dict[str, None] = {}
    for active in rules:
        if active.judges.any() and active.rule.statistic in measured:
            names[active.rule.statistic] = None
            if active.rule.floor is not None:
                names[active.rule.statistic + FLOOR] = None
    return list(names)


def decide(rules: Sequence[ActiveRule], stored: Stored, texts: Texts, context: Context) -> Decided:
    """The first rule that refuses each document, as the filter step would find it.

    Args:
        rules: in the order in which they name the first failure.
        stored: what a run left, with the columns that :func:`wanted` names.
        texts: gives the documents that must be measured; asked once, and not at all if there are none.
        context: for these rules.

    """
    rule, value, measured = _walk(rules, stored, None)
    rows = np.flatnonzero(measured)
    if rows.size:
        for piece, table in texts(rows):
            rule[piece], value[piece], _ = _walk(rules, stored.take(piece), Measures.of(table, context))
    return Decided(rule, value, measured)


def _walk(
    rules: Sequence[ActiveRule], stored: Stored, view: Measures | None
) -> tuple[I64, F64, npt.NDArray[np.bool_]]:
    """First failure by stored statistics; what they don't settle is measured or, without a view, marked."""
    n = stored.kinds.size
    rule, value = np.full(n, -1, np.int64), np.full(n, np.nan)
    unsettled = np.zeros(n, np.bool_)
    for index, active in enumerate(rules):
        rows = np.flatnonzero((rule < 0) & ~unsettled & active.judges[stored.kinds])
        if not rows.size:
            continue
        values, known, passes = _by_stored(active, stored, rows)
        failed = rows[known & ~passes]
        rule[failed], value[failed] = index, values[known & ~passes]
        rest = rows[~known]
        if view is None:
            unsettled[rest] = True
        elif rest.size:
            judged = judge(active, view.take(rest), stored.kinds[rest])
            rule[rest[judged.failed]], value[rest[judged.failed]] = index, judged.values[judged.failed]
    return rule, value, unsettled


def _by_stored(
    active: ActiveRule, stored: Stored, rows: I64
) -> tuple[F64, npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """``(values, known, passes)`` of one rule for some rows; ``passes`` means something where known."""
    name = active.rule.statistic
    gate = stored.measured.get(name)
    if gate is None:
        nothing = np.zeros(rows.size, np.bool_)
        return np.full(rows.size, np.nan), nothing, nothing
    kinds, values = stored.kinds[rows], stored.stats[name][rows]
    known = ~stored.stopped[rows] if gate == "L2" else np.ones(rows.size, np.bool_)
    passes = (values >= active.low[kinds]) & (values <= active.high[kinds])
    if active.rule.floor is not None:
        # Null means that the floor settled it then; it need not settle the new bound.
        settled = settled_by(active, stored.stats[name + FLOOR][rows], kinds)
        known &= settled | ~np.isnan(values)
        passes |= settled
    return values, known, passes
