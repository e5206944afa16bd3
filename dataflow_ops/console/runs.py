"""A run that is asked for by name, and the one it is compared with."""

from __future__ import annotations

import shlex

from dataflow_ops.console.place import NotThere, Place
from dataflow_ops.console.said import fault
from dataflow_ops.console.shown_layers import Totals
from dataflow_ops.pipeline.refusals import SILENT, refusal_of
from dataflow_ops.state.machine import LIVE_RUNS
from dataflow_ops.state.records import RunRecord


def known_run(place: Place, run_id: str) -> RunRecord:
    """The run.

    Raises:
        NotThere: there is none (yet): the orchestrator has a name for it before its first task has begun, and
            keeps it where that task failed.
    """
    row = place.state.get_run(run_id)
    if row is None:
        refused = refusal_of(place.home, run_id)
        if refused is None:
            raise fault(NotThere, "not_started")
        raise fault(NotThere, "not_begun", why=refused.why or SILENT)
    return row


def full_before(place: Place, row: RunRecord, until: float) -> tuple[RunRecord | None, Totals]:
    """The last full run before this one that came to its end, and its sums."""
    before = place.state.run_before(row, "full", finished=True)
    if before is None:
        return None, {}
    return before, place.sums.totals(before.run_id, until)[0]


def is_live(row: RunRecord) -> bool:
    """Whether the run still wants its tasks."""
    return row.state in LIVE_RUNS


def command(*words: str) -> str:
    """A command line to be copied."""
    return shlex.join(("dataflow", *words))
