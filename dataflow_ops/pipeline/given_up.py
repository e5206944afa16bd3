"""Runs that nobody works on any more, though their rows say otherwise. Light: Airflow's servers import it."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from dataflow_ops.pipeline.home import open_home
from dataflow_ops.state.machine import LIVE_RUNS
from dataflow_ops.state.store import StateStore


def give_up_run(home_path: Path, run_id: str, why: str, states: Collection[str] = ("RUNNING",)) -> None:
    """Record that whoever drove a run is gone: it is FAILED from now on, and may be taken up again.

    Args:
        home_path: home folder.
        run_id: the run; nothing happens where there is no such run.
        why: for people.
        states: in which it is given up; one that has ended is left alone.
    """
    with StateStore(open_home(home_path, create=False).state_url) as state:
        row = state.get_run(run_id)
        if row is not None and row.state in states:
            state.set_run_state(run_id, "FAILED", why)


def cancel_if_live(home_path: Path, run_id: str, why: str) -> None:
    """Cancel a run that has not ended; nothing happens where it has, or where there is no such run."""
    with StateStore(open_home(home_path, create=False).state_url) as state:
        row = state.get_run(run_id)
        if row is not None and row.state in LIVE_RUNS:
            state.cancel(run_id, why)
