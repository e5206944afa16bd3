"""Letting a run go ahead of those that are not urgent."""

from __future__ import annotations

from pathlib import Path

from dataflow_ops.errors import ConfigError
from dataflow_ops.pipeline.home import open_home
from dataflow_ops.pipeline.pausing import known_run
from dataflow_ops.state.machine import LIVE_RUNS
from dataflow_ops.state.records import RunRecord
from dataflow_ops.state.store import StateStore


def set_urgent(home_path: Path, run_id: str | None, urgent: bool, who: str) -> RunRecord:
    """Mark a run as urgent, or take that back, with a record of who did.

    Workers of urgent runs keep their full share of the processors, those of all others stand back. It acts
    on workers that are started from now on: with the run's next step, or the next Airflow task.

    Args:
        home_path: home folder.
        run_id: the run; ``None`` for the newest.
        urgent: whether it is.
        who: name of the person or service.

    Raises:
        ConfigError: no such run, or it has ended.
    """
    with StateStore(open_home(home_path, create=False).state_url) as state:
        row = known_run(state, run_id)
        if row.state not in (*LIVE_RUNS, "FAILED"):
            raise ConfigError(f"run '{row.run_id}' is {row.state}: there is nothing to hurry")
        return state.set_urgent(row.run_id, urgent, who)
