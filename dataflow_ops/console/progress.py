"""How far a run is: the layer it works on, and the shares of that layer and of the whole that are done."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dataflow_ops.console.shown_layers import LAYER_OF, SHOWN, Totals, current_layer
from dataflow_ops.console.work import StepWork, share_of_run, share_of_tasks, tasks_done
from dataflow_ops.state.machine import FINISHED_RUNS, LIVE_RUNS
from dataflow_ops.state.records import RunRecord


@dataclass(frozen=True, slots=True)
class Progress:
    """Shares are 0 to 1.

    Attributes:
        layer: the one under way, or in which the run ended; None where it is through.
        of_layer: share of that layer's tasks.
        of_run: share of everything that the run is to do.
        tasks: of that layer, those that are done and all; None where nobody knows how many there will be.
    """

    layer: str | None
    of_layer: float
    of_run: float
    tasks: tuple[int, int] | None = None


def progress_of(row: RunRecord, totals: Totals, work: Sequence[StepWork]) -> Progress:
    """How far a run is.

    Args:
        row: the run.
        totals: its sums by step, see :func:`~dataflow_ops.console.planned.with_those_to_come`.
        work: its steps' work, see :func:`~dataflow_ops.console.work.work_of`.
    """
    layer = _layer(row, totals)
    mine = [one for one in work if LAYER_OF[one.step] == layer]
    of_layer = 1.0 if layer is None else share_of_tasks(mine)
    through = layer is None and row.state not in LIVE_RUNS
    return Progress(layer, of_layer, 1.0 if through else share_of_run(work), tasks_done(mine))


def _layer(row: RunRecord, totals: Totals) -> str | None:
    if row.state in FINISHED_RUNS:
        return None
    if not totals:
        return SHOWN[0][0]
    return current_layer(totals, row.until_layer) or SHOWN[-1][0]
