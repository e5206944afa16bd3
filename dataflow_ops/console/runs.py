"""A run that is asked for by name, and the one it is compared with."""

from __future__ import annotations

import shlex

from dataflow_ops.console.place import NotThere, Place
from dataflow_ops.console.said import fault
from dataflow_ops.console.shown_layers import Totals
from dataflow_ops.pipeline.refusals import SILENT, refusal_of
from dataflow_ops.state.machine import LIVE_RUNS
from dataflow_ops.state.records import RunRecord

_LOOKED_THROUGH = 20


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
            raise _queued(place, run_id)
        raise fault(NotThere, "not_begun", why=refused.why or SILENT)
    return row


def _queued(place: Place, run_id: str) -> NotThere:
    """Why the orchestrator has not begun a run, where another one of its DAG shows it."""
    dag, full, _ = run_id.partition("__full-")
    if full:
        dataset = dag.removeprefix("airflow-")
        before = [
            r for r in place.state.list_runs(dataset, _LOOKED_THROUGH) if r.run_id.startswith(dag + full)
        ]
        for row in before:
            if row.state in LIVE_RUNS:
                return fault(NotThere, "queued_behind", run=row.run_id)
            if row.state == "AWAITING_APPROVAL":
                return fault(NotThere, "queued_approval", run=row.run_id)
    return fault(NotThere, "not_started")


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
