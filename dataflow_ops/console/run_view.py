"""A run in a few numbers: where it is, until when, who holds it up, and what it wants from a person."""

from __future__ import annotations

from collections import Counter
from typing import Any
from urllib.parse import quote

from dataflow_ops.console.layers_view import WINDOW_S, tokens_per_document
from dataflow_ops.console.place import Place
from dataflow_ops.console.planned import planned, with_those_to_come
from dataflow_ops.console.progress import progress_of
from dataflow_ops.console.runs import command, full_before, is_live, known_run
from dataflow_ops.console.shown_layers import LAYER_OF, Totals
from dataflow_ops.console.work import StepWork, seconds_left, work_of
from dataflow_ops.pipeline.flow import STEP_NAMES
from dataflow_ops.pipeline.report_file import page_uri
from dataflow_ops.pipeline.version_states import SHOWN_WAITING, WITH_SET, shown
from dataflow_ops.state.glance import LetterGroup, TaskGlance
from dataflow_ops.state.records import PauseFlag, RunRecord, VersionRecord
from dataflow_ops.storage.opening import open_store

REPORT = "dataflow/api/run/report"
"""Relative to wherever Airflow is served."""
AT_HAND = ("RUNNING", "PAUSED")
"""States of tasks that somebody works on, or stopped working on because of a pause."""
AT_WORK = 500
"""Of these, tasks that are looked at."""


def summary(place: Place, run_id: str, *, dag_gone: bool = False) -> dict[str, Any]:
    """Everything that the top of the run's page says.

    Args:
        place: home.
        run_id: the run.
        dag_gone: whether its orchestrator knows its DAG no longer, as where the job file was deleted.

    Raises:
        NotThere: no such run.
    """
    row = known_run(place, run_id)
    until = place.sums.until()
    summed, complete = place.sums.totals(run_id, until)
    to_come = planned(place.home.root, place.state, row) if is_live(row) else {}
    totals = with_those_to_come(summed, to_come)
    before_run, before = full_before(place, row, until)
    flag = place.state.paused(run_id, row.dataset)
    few = place.state.tasks_in(run_id, AT_HAND, list(LAYER_OF), AT_WORK) if is_live(row) else []
    running = [task for task in few if task.state == "RUNNING"]
    version = next((v for v in place.state.versions(row.dataset) if v.run_id == run_id), None)
    groups, letters_known = place.sums.letters(run_id, until)
    tasks = _tasks(summed, few)
    work = work_of(totals, before, row.until_layer, to_come)
    far = progress_of(row, totals, work)
    has_report = version is not None and _report_is_there(place, version)
    return {
        "run": row.run_id,
        "dataset": row.dataset,
        "mode": row.mode,
        "state": row.state,
        "detail": row.detail or "",
        "urgent": row.urgent,
        "dag_gone": dag_gone and is_live(row),
        "until": row.until_layer,
        "data_date": row.data_date,
        "started_at": row.started_at,
        "ended_at": row.ended_at,
        "updated_at": row.updated_at,
        # Before the sources are listed only the run before tells how many there may be.
        "layer_tasks": far.tasks[1] if to_come and far.tasks is not None else None,
        "layer_done": far.tasks[0] if to_come and far.tasks is not None else None,
        "layer": far.layer,
        "progress": far.of_layer,
        "run_progress": far.of_run,
        "complete": complete and letters_known,
        **_pace(place, row, totals, before, work, running, flag),
        "pause": None if flag is None else _pause(flag, tasks),
        "tasks": tasks,
        "workers": len({task.owner for task in running if task.owner}),
        "decisions": _decisions(row, version, groups, tasks),
        "version": None if version is None else version.version_id,
        "current": version is not None and version.is_current,
        "report": f"{REPORT}?run={quote(run_id)}" if has_report else None,
        "previous_run": None if before_run is None else before_run.run_id,
        "cli": _commands(row, version, flag),
    }


def _tasks(totals: Totals, few: list[TaskGlance]) -> dict[str, int]:
    """State → tasks. What is at work or stopped in its midst is counted afresh: sums may be seconds old."""
    counts: Counter[str] = Counter()
    for one in totals.values():
        counts.update(one.tasks)
    counts.update({state: -counts[state] for state in AT_HAND})
    counts.update(task.state for task in few)
    return {state: number for state, number in sorted(counts.items()) if number}


def _pace(
    place: Place,
    row: RunRecord,
    totals: Totals,
    before: Totals,
    work: list[StepWork],
    running: list[TaskGlance],
    flag: PauseFlag | None,
) -> dict[str, Any]:
    """Rates over the last minutes, and when it will be done if it goes on like that."""
    nothing = {"eta": None, "documents_per_s": None, "tokens_per_s": None, "tokens_estimated": True}
    if not is_live(row) or flag is not None or row.state == "PAUSED":
        return nothing
    now = place.state.now()
    window = max(1.0, min(WINDOW_S, now - (row.started_at or row.created_at)))
    recent = place.state.recent_work(row.run_id, list(totals), now - window)
    newest = max((step for step in recent if step != "discover"), key=list(STEP_NAMES).index, default=None)
    rate = recent[newest][1] / window if newest is not None and recent[newest][1] else None
    each = tokens_per_document(totals, before)
    # What was spent lately misses long tasks that have not ended; those at work now miss short ones.
    workers = max(sum(seconds for *_, seconds in recent.values()) / window, float(len(running)))
    begun = sum(max(0.0, now - (task.started_at or now)) for task in running)
    left = seconds_left(work, workers, begun)
    return {
        "eta": None if left is None else now + left,
        "documents_per_s": rate,
        "tokens_per_s": None if rate is None or each is None or newest == "fetch" else rate * each,
        "tokens_estimated": True,
    }


def _pause(flag: PauseFlag, tasks: dict[str, int]) -> dict[str, Any]:
    paused = tasks.get("PAUSED", 0)
    return {
        "scope": flag.scope,
        "target": flag.target,
        "who": flag.who,
        "why": flag.why,
        "since": flag.created_at,
        "tasks_paused": paused,
        "tasks_open": paused + tasks.get("RUNNING", 0),
    }


def _decisions(
    row: RunRecord, version: VersionRecord | None, groups: list[LetterGroup], tasks: dict[str, int]
) -> list[dict[str, Any]]:
    found = []
    if version is not None and shown(version.state, version.is_current) == SHOWN_WAITING:
        told = row.detail.split("; ") if row.state == "AWAITING_APPROVAL" and row.detail else [WITH_SET]
        found.append(_decision("approve", 1, told, version.version_id))
    waiting = [group for group in groups if group.state == "open"]
    open_: Counter[str] = Counter()
    for group in waiting:
        if group.level != "chunk":
            open_[group.error] += group.number
    if open_:
        told = [f"{error}: {number}" for error, number in open_.most_common()]
        found.append(_decision("dead_letters", sum(open_.values()), told))
    if tasks.get("DEAD"):
        told = [
            f"{g.error} in {g.step}: {g.number}" for g in groups if g.level == "chunk" and g.state == "open"
        ]
        found.append(_decision("dead_chunks", tasks["DEAD"], told))
    return found


def _decision(kind: str, count: int, reasons: list[str], version: str | None = None) -> dict[str, Any]:
    return {"kind": kind, "count": count, "version": version, "reasons": reasons}


def _report_is_there(place: Place, version: VersionRecord) -> bool:
    return open_store(place.home.root).stat(page_uri(version.version_id)) is not None


def _commands(row: RunRecord, version: VersionRecord | None, flag: PauseFlag | None) -> dict[str, str | None]:
    run_id = row.run_id
    widened = {"run": [run_id], "dataset": ["--dataset", row.dataset], "all": ["--all"]}
    return {
        "pause": command("pause", run_id),
        "resume": command("resume", *widened["run" if flag is None else flag.scope]),
        "cancel": command("cancel", run_id),
        "urgent": command("urgent", run_id, *(["--off"] if row.urgent else [])),
        "status": command("status", run_id),
        "letters": command("dead-letters", "list", "--dataset", row.dataset),
        "approve": None if version is None else command("versions", "approve", version.version_id),
        "report": None if version is None else command("report", version.version_id),
    }
