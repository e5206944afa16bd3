"""How much of a run was done before it began."""

from __future__ import annotations

from pathlib import Path

from dataflow_ops.pipeline.flow import STEP_NAMES
from dataflow_ops.pipeline.home import open_home
from dataflow_ops.state.store import StateStore


def skipped_of(home_path: Path, run_id: str) -> tuple[int, int]:
    """``(tasks that ran, tasks that were finished already)`` of a run."""
    with StateStore(open_home(home_path, create=False).state_url) as state:
        row = state.get_run(run_id)
        began = row.created_at if row else 0.0
        ran = skipped = 0
        for step in STEP_NAMES:
            for record in state.records_of_step(run_id, step).values():
                # The last heartbeat of a task finished by an earlier run is older than this run.
                if record.heartbeat_at is not None and record.heartbeat_at >= began:
                    ran += 1
                else:
                    skipped += 1
    return ran, skipped
