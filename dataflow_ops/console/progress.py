"""How far a run is: the layer it works on, and the shares of that layer and of the whole that are done."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dataflow_ops.console.shown_layers import LAYER_OF, SHOWN, Totals, current_layer
from dataflow_ops.console.work import StepWork, share_done
from dataflow_ops.state.machine import LIVE_RUNS
from dataflow_ops.state.records import RunRecord

FINISHED = ("SUCCEEDED", "SUCCEEDED_WITH_DEAD", "AWAITING_APPROVAL")


@dataclass(frozen=True, slots=True)
class Progress:
    """Shares are 0 to 1.

    Attributes:
        layer: the one under way, or in which the run ended; None where it is through.
        of_layer: share of that layer.
        of_run: share of everything that the run is to do.
    """

    layer: str | None
    of_layer: float
    of_run: float


def progress_of(row: RunRecord, totals: Totals, work: Sequence[StepWork]) -> Progress:
    """How far a run is.

    Args:
        row: the run.
        totals: its sums by step.
        work: its steps' work, see :func:`~dataflow_ops.console.work.work_of`.
    """
    layer = _layer(row, totals)
    of_layer = 1.0 if layer is None else share_done([one for one in work if LAYER_OF[one.step] == layer])
    through = layer is None and row.state not in LIVE_RUNS
    return Progress(layer, of_layer, 1.0 if through else share_done(work))


def _layer(row: RunRecord, totals: Totals) -> str | None:
    if row.state in FINISHED:
        return None
    if not totals:
        return SHOWN[0][0]
    return current_layer(totals, row.until_layer) or SHOWN[-1][0]
