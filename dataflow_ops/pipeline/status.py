"""Where a run stands, in one mapping."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from dataflow_ops.errors import ConfigError
from dataflow_ops.pipeline.flow import STEP_NAMES
from dataflow_ops.pipeline.home import open_home
from dataflow_ops.pipeline.session import latest_run
from dataflow_ops.state.store import StateStore


def status_of(home_path: Path, run_id: str | None) -> dict[str, Any]:
    """State, one row per step, and what runs where.

    Raises:
        ConfigError: there is no such run.
    """
    home = open_home(home_path, create=False)
    with StateStore(home.state_url) as state:
        run_id = run_id or latest_run(state)
        row = state.get_run(run_id)
        if row is None:
            known = ", ".join(r.run_id for r in state.list_runs(None, 5))
            raise ConfigError(f"no run '{run_id}' here; the newest are {known}")
        metrics = state.metrics_of_run(run_id)
        flag = state.paused(run_id, row.dataset)
        running = []
        for step in STEP_NAMES:
            if metrics.get(step) and metrics[step].tasks.get("RUNNING"):
                for record in state.records_of_step(run_id, step).values():
                    if record.state == "RUNNING":
                        age = time.time() - (record.heartbeat_at or time.time())
                        running.append(
                            f"running: {step}/{record.partition} by {record.owner}, attempt {record.attempt},"
                            f" heartbeat {max(0, age):.0f} s ago"
                        )
        letters = state.count_dead_letters("error", run_id=run_id)
    steps = []
    for step in STEP_NAMES:
        found = metrics.get(step)
        if found is None:
            continue
        wall = max(0.0, (found.last_end or 0) - (found.first_start or 0))
        counts = found.counts
        steps.append(
            {
                "step": step,
                "tasks": sum(found.tasks.values()),
                "done": found.tasks.get("SUCCESS", 0),
                "running": found.tasks.get("RUNNING", 0),
                "dead": found.tasks.get("DEAD", 0),
                "in": counts.documents_in,
                "kept": counts.kept,
                "rejected": counts.rejected,
                "dead documents": counts.dead,
                "documents/s": round(counts.documents_in / wall) if wall > 0 else 0,
            }
        )
    sentence = f"Run {run_id} of {row.dataset} is {row.state}"
    if row.detail:
        sentence += f" ({row.detail})"
    if steps and row.state in ("RUNNING", "PAUSED", "FAILED"):
        last = steps[-1]
        sentence += f", in step {last['step']}: {last['done']} of {last['tasks']} tasks done"
    if flag is not None:
        sentence += f". Pause asked for by {flag.who}: {flag.why or 'no reason given'}"
    if letters:
        sentence += f". {sum(letters.values())} dead letter(s) wait: dataflow dead-letters list"
    return {
        "run": run_id,
        "dataset": row.dataset,
        "state": row.state,
        "sentence": sentence + ".",
        "steps": steps,
        "running": running,
        "dead_letters": letters,
    }


def is_paused(home_path: Path, run_id: str) -> bool:
    """Whether a pause flag holds for a run."""
    with StateStore(open_home(home_path, create=False).state_url) as state:
        row = state.get_run(run_id)
        return row is not None and state.paused(run_id, row.dataset) is not None
