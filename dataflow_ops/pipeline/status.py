"""Where a run stands, in one mapping; and which runs there are."""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dataflow_ops.engine.context import owner_is_gone
from dataflow_ops.errors import ConfigError
from dataflow_ops.pipeline.flow import COMPACTION, STEP_NAMES
from dataflow_ops.pipeline.home import open_home
from dataflow_ops.pipeline.orchestrated import job_is_gone
from dataflow_ops.pipeline.refusals import SILENT, refusal_of, refusals
from dataflow_ops.pipeline.session import latest_run, parse_job_text
from dataflow_ops.state.machine import LIVE_RUNS
from dataflow_ops.state.records import COMPACT, RunRecord, StepMetrics
from dataflow_ops.state.store import StateStore

SILENT_S = 60.0
"""A task whose owner has not been heard of for so long may be claimed by another process."""
NOT_BEGUN = "NOT_BEGUN"
"""How a run is listed that its orchestrator failed to begin: it has no row, and no state of its own."""


def status_of(home_path: Path, run_id: str | None, dataset: str | None = None) -> dict[str, Any]:
    """State, one row per step, and what runs where.

    Args:
        home_path: home folder.
        run_id: the run; None for the newest.
        dataset: of this data set.

    Raises:
        ConfigError: there is no such run.
    """
    home = open_home(home_path, create=False)
    with StateStore(home.state_url) as state:
        run_id = run_id or latest_run(state, dataset)
        row = state.get_run(run_id)
        if row is None:
            refused = refusal_of(home, run_id)
            if refused is not None:
                raise ConfigError(f"run '{run_id}' failed before it began: {refused.why or SILENT}")
            known = ", ".join(r.run_id for r in state.list_runs(None, 5))
            raise ConfigError(f"no run '{run_id}' here; the newest are {known}; `dataflow runs` lists them")
        metrics = state.metrics_of_run(run_id)
        flag = state.paused(run_id, row.dataset)
        running = _running(state, run_id, metrics)
        letters = state.count_dead_letters("error", run_id=run_id)
    steps = [_step(metrics[step]) for step in (*STEP_NAMES, *COMPACTION) if step in metrics]
    sentence = f"Run {run_id} of {row.dataset} is {row.state}"
    if row.detail:
        sentence += f" ({row.detail})"
    if steps and row.state in ("RUNNING", "PAUSED", "FAILED"):
        last = steps[-1]
        sentence += f", in step {last['step']}: {last['done']} of {last['tasks']} tasks done"
    sentence += _silence(row, running, metrics)
    if flag is not None:
        sentence += f". Pause asked for by {flag.who}: {flag.why or 'no reason given'}"
    gone = job_is_gone(home_path, row) if row.state in LIVE_RUNS else ""
    if gone:
        sentence += f". But {gone}"
    if letters:
        sentence += f". {sum(letters.values())} dead letter(s) wait: dataflow dead-letters list"
    return {
        "run": run_id,
        "dataset": row.dataset,
        "state": row.state,
        "sentence": sentence + ".",
        "steps": steps,
        "running": [line for line, _ in running],
        "dead_letters": letters,
    }


def runs_of(home_path: Path, dataset: str | None, limit: int) -> tuple[list[dict[str, Any]], int]:
    """One row per run, newest first, at most ``limit``; and how many there are (up to 10,000).

    Those that never began are told too, though nothing else is known of them.
    """
    home = open_home(home_path, create=False)
    with StateStore(home.state_url) as state:
        found = state.list_runs(dataset, 10_000)
    rows = [
        (
            r.created_at,
            {
                "run": r.run_id,
                "dataset": r.dataset,
                "job": r.job_name,
                "data_date": r.data_date or "",
                "state": r.state,
                "started": _moment(r.started_at),
                "ended": _moment(r.ended_at),
                "detail": r.detail or "",
            },
        )
        for r in found
    ]
    rows += [
        (
            one.at,
            {
                "run": one.run_id,
                "dataset": one.dataset,
                "job": one.job,
                "data_date": "",
                "state": NOT_BEGUN,
                "started": "",
                "ended": _moment(one.at),
                "detail": one.why or SILENT,
            },
        )
        for one in refusals(home, dataset)
    ]
    rows.sort(key=lambda row: -row[0])
    return [row for _, row in rows[:limit]], len(rows)


def at_work(state: StateStore, run_id: str) -> bool:
    """Whether a process that still lives holds a task of the run."""
    running = _running(state, run_id, state.metrics_of_run(run_id))
    return any(age < SILENT_S for _, age in running)


def is_paused(home_path: Path, run_id: str) -> bool:
    """Whether a pause flag holds for a run."""
    with StateStore(open_home(home_path, create=False).state_url) as state:
        row = state.get_run(run_id)
        return row is not None and state.paused(run_id, row.dataset) is not None


def _running(state: StateStore, run_id: str, metrics: dict[str, StepMetrics]) -> list[tuple[str, float]]:
    """``(line, seconds since its heartbeat)`` of each running task; infinite where its process is gone."""
    found = []
    for step in (*STEP_NAMES, *COMPACTION):
        if not (metrics.get(step) and metrics[step].tasks.get("RUNNING")):
            continue
        for record in state.records_of_step(run_id, step).values():
            if record.state != "RUNNING":
                continue
            age = max(0.0, time.time() - (record.heartbeat_at or time.time()))
            gone = owner_is_gone(record.owner)
            line = (
                f"running: {step}/{record.partition} by {record.owner}, attempt {record.attempt},"
                f" heartbeat {age:.0f} s ago" + (", its process is gone" if gone else "")
            )
            found.append((line, float("inf") if gone else age))
    return found


def _silence(row: RunRecord, running: Sequence[tuple[str, float]], metrics: dict[str, StepMetrics]) -> str:
    """A word about a run that says it is running while nobody works on it."""
    if row.state != "RUNNING" or any(age < SILENT_S for _, age in running):
        return ""
    again = f"the same `{_command(row)}` goes on from here"
    if running:
        ages = [age for _, age in running if age != float("inf")]
        since = f"no heartbeat for {min(ages):.0f} s" if ages else "its process is gone"
        return f". Nobody works on it ({since}); {again}"
    last = max([row.updated_at, *(m.last_end or 0.0 for m in metrics.values())])
    silent = time.time() - last
    # Between two steps, and while a version is published, no task is claimed.
    return (
        f". No task has been claimed for {silent:.0f} s; if nobody works on it, {again}"
        if (silent > SILENT_S)
        else ""
    )


def _command(row: RunRecord) -> str:
    """What was called to begin a run, and goes on with it."""
    if row.mode != COMPACT:
        return "dataflow run"
    interval = parse_job_text(row.settings, row.run_id).interval
    return "dataflow versions compact" + (f" {interval.base}" if interval is not None else "")


def _step(found: StepMetrics) -> dict[str, Any]:
    counts = found.counts
    return {
        "step": found.step,
        "tasks": sum(found.tasks.values()),
        "done": found.tasks.get("SUCCESS", 0),
        "running": found.tasks.get("RUNNING", 0),
        "dead": found.tasks.get("DEAD", 0),
        "in": counts.documents_in,
        "kept": counts.kept,
        "rejected": counts.rejected,
        "dead_documents": counts.dead,
        "left_out": sum(counts.skipped.values()),
        "left_out_why": {reason: n for reason, n in counts.skipped.items() if n},
        "worker_seconds": round(found.seconds, 3),
        # By workers' time: wall time of a run that skipped nearly everything would tell nonsense.
        "documents_per_worker_s": round(counts.documents_in / found.seconds) if found.seconds > 0 else 0,
        "counted": dict(sorted(found.metrics.items())),
    }


def _moment(seconds: float | None) -> str:
    if seconds is None:
        return ""
    return dt.datetime.fromtimestamp(seconds, dt.UTC).strftime("%Y-%m-%d %H:%M UTC")
