"""Today: every data set with its current version, what waits for a person, and what runs."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dataflow_ops.console.dags import DagFact, DagFacts, NoDags, origin_of
from dataflow_ops.console.planned import planned, with_those_to_come
from dataflow_ops.console.progress import progress_of
from dataflow_ops.console.version_facts import facts_of
from dataflow_ops.console.work import work_of
from dataflow_ops.pipeline.home import Home
from dataflow_ops.pipeline.overtaken import overtaken
from dataflow_ops.pipeline.refusals import SILENT, Refusal, refusals
from dataflow_ops.pipeline.version_states import SHOWN_WAITING, WITH_SET, shown
from dataflow_ops.state.machine import LIVE_RUNS
from dataflow_ops.state.records import RunRecord, VersionRecord
from dataflow_ops.state.store import StateStore
from dataflow_ops.state.totals import StepTotals
from dataflow_ops.storage.opening import Root

RECENT = 20
"""Newest runs of a data set among which the last one that ended is looked for."""


def today(
    home: Home,
    state: StateStore,
    dags: DagFacts | None = None,
    *,
    readable: Callable[[str], bool] | None = None,
    totals: Callable[[str], Mapping[str, StepTotals]] | None = None,
    letters: Callable[[str], Mapping[str, int]] | None = None,
    now: float | None = None,
) -> dict[str, Any]:
    """All data sets: those that have run, and those that a DAG will make.

    Args:
        home: where versions are.
        state: open state store.
        dags: what the orchestrator knows.
        readable: which data sets may be shown; all where None.
        totals: what the steps of a run add up to; added up here where None.
        letters: open dead letters of a data set by error; counted here where None.
        now: seconds since 1970.

    Returns:
        ``{"datasets": […]}``, those with decisions first, then by name.
    """
    facts: dict[str, list[DagFact]] = {}
    for dag in (dags or NoDags()).dags():
        facts.setdefault(dag.dataset, []).append(dag)
    refused: dict[str, Refusal] = {}
    for one in refusals(home):
        if not one.dry_run:
            refused.setdefault(one.dataset, one)
    names = sorted({*state.datasets(), *facts, *refused})
    moment = time.time() if now is None else now
    rows = [
        _dataset(
            home.root,
            state,
            name,
            sorted(facts.get(name, ()), key=lambda d: d.dag_id),
            totals or (lambda run: _totals(state, run)),
            letters or (lambda dataset: open_letters(state, dataset)),
            refused.get(name),
            moment,
        )
        for name in names
        if readable is None or readable(name)
    ]
    return {"datasets": sorted(rows, key=lambda row: (not row["decisions"], row["dataset"]))}


def open_letters(state: StateStore, dataset: str) -> Mapping[str, int]:
    """Error -> open dead letters of the newest run of a data set."""
    return state.count_dead_letters("error", dataset=dataset, newest=True)


def _totals(state: StateStore, run_id: str) -> Mapping[str, StepTotals]:
    found = state.kept_totals(run_id)
    for step in state.steps_of_run(run_id):
        total = found.get(step) or state.total_of_step(run_id, step)
        if total is not None:
            found[step] = total
    return found


def _dataset(
    root: Root,
    state: StateStore,
    name: str,
    dags: Sequence[DagFact],
    totals: Callable[[str], Mapping[str, StepTotals]],
    letters: Callable[[str], Mapping[str, int]],
    refused: Refusal | None,
    now: float,
) -> dict[str, Any]:
    runs = state.list_runs(name, RECENT)
    versions = state.versions(name)
    current = next((v for v in versions if v.is_current), None)
    live = state.live_runs(name)
    ended = next((run for run in runs if run.state not in LIVE_RUNS), None)
    if refused is not None and runs and runs[0].created_at > refused.at:
        refused = None  # another one has begun since
    return {
        "dataset": name,
        "description": _description(runs, dags),
        "dags": [
            {
                "dag_id": dag.dag_id,
                "mode": dag.mode,
                "schedule": dag.schedule,
                "next_run": dag.next_run,
                "is_paused": dag.is_paused,
            }
            for dag in dags
        ],
        "current": None if current is None else _current(root, state, current),
        "age_s": None if current is None else max(0.0, now - current.created_at),
        "decisions": [
            *_to_approve(state, versions),
            *([_not_begun(refused)] if refused is not None else _failed(ended)),
            *_letters(letters(name), runs),
        ],
        "live": [_live(root, state, run, totals) for run in live],
        "last": _last_refused(refused) if refused else None if ended is None else _last(ended),
    }


def _description(runs: Sequence[RunRecord], dags: Sequence[DagFact]) -> str:
    text = str(json.loads(runs[0].settings)["dataset"].get("description") or "") if runs else ""
    return text or next((dag.description for dag in dags if dag.description), "")


def _current(root: Root, state: StateStore, record: VersionRecord) -> dict[str, Any]:
    facts, run = facts_of(root, record), state.get_run(record.run_id)
    return {
        "version": record.version_id,
        "published_at": record.created_at,
        "documents": facts.documents if facts else None,
        "tokens": facts.tokens if facts else None,
        "tokens_estimated": facts.tokens_estimated if facts else None,
        "mode": run.mode if run else None,
        "data_date": run.data_date if run else None,
    }


def _to_approve(state: StateStore, versions: Sequence[VersionRecord]) -> list[dict[str, Any]]:
    waiting = [v for v in versions if shown(v.state, v.is_current) == SHOWN_WAITING]
    return [
        _decision(
            "approve", state.get_run(v.run_id), version=v.version_id, reasons=reasons(state, v, versions)
        )
        for v in waiting
    ]


def reasons(state: StateStore, record: VersionRecord, versions: Sequence[VersionRecord]) -> list[str]:
    """Why a version waits for a person, a sentence each; ``versions`` are those of its data set."""
    run = state.get_run(record.run_id)
    if run is not None and run.state == "AWAITING_APPROVAL" and run.detail:
        told = run.detail.split("; ")
    else:
        told = [WITH_SET if run is not None and not run.promote else "see its report"]
    late = overtaken(versions, record)
    return told if late is None else [*told, late.told]


def _failed(last: RunRecord | None) -> list[dict[str, Any]]:
    if last is None or last.state != "FAILED":
        return []
    return [_decision("failed", last, reasons=[last.detail or "see its tasks"])]


def _not_begun(one: Refusal) -> dict[str, Any]:
    """The last run never got as far as a row of its own."""
    found = _decision("not_begun", None, reasons=[one.why or SILENT])
    return {**found, "run": one.run_id, "dag_id": one.dag_id, "dag_run_id": one.dag_run_id}


def _last_refused(one: Refusal) -> dict[str, Any]:
    return {
        "run": one.run_id,
        "state": "FAILED",
        "ended_at": one.at,
        "dag_id": one.dag_id,
        "dag_run_id": one.dag_run_id,
    }


def _letters(counts: Mapping[str, int], runs: Sequence[RunRecord]) -> list[dict[str, Any]]:
    if not counts:
        return []
    told = [f"{error}: {number:,}" for error, number in counts.items()]
    return [_decision("dead_letters", runs[0] if runs else None, reasons=told, count=sum(counts.values()))]


def _decision(
    kind: str, run: RunRecord | None, *, version: str | None = None, reasons: Sequence[str], count: int = 1
) -> dict[str, Any]:
    dag_id, dag_run_id = origin_of(run)
    return {
        "kind": kind,
        "version": version,
        "run": run.run_id if run else None,
        "dag_id": dag_id,
        "dag_run_id": dag_run_id,
        "reasons": list(reasons),
        "count": count,
    }


def _live(
    root: Root, state: StateStore, run: RunRecord, totals: Callable[[str], Mapping[str, StepTotals]]
) -> dict[str, Any]:
    dag_id, dag_run_id = origin_of(run)
    to_come, before = planned(root, state, run), state.run_before(run, "full", finished=True)
    now = with_those_to_come(totals(run.run_id), to_come)
    work = work_of(now, {} if before is None else totals(before.run_id), run.until_layer, to_come)
    far, flag = progress_of(run, now, work), state.paused(run.run_id, run.dataset)
    return {
        "run": run.run_id,
        "dag_id": dag_id,
        "dag_run_id": dag_run_id,
        "mode": run.mode,
        "state": run.state,
        "layer": far.layer,
        "progress": far.of_layer,
        "run_progress": far.of_run,
        "urgent": run.urgent,
        "pause": None if flag is None else {"who": flag.who, "why": flag.why, "at": flag.created_at},
    }


def _last(run: RunRecord) -> dict[str, Any]:
    dag_id, dag_run_id = origin_of(run)
    return {
        "run": run.run_id,
        "state": run.state,
        "ended_at": run.ended_at,
        "dag_id": dag_id,
        "dag_run_id": dag_run_id,
    }
