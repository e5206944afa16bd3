"""Cancelling a run: its open tasks are given up, and no later day waits for it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from dataflow_ops.control.flags import PauseFlags
from dataflow_ops.errors import ConfigError
from dataflow_ops.pipeline.home import open_home
from dataflow_ops.pipeline.pausing import known_run
from dataflow_ops.state.machine import LIVE_RUNS
from dataflow_ops.state.records import RunRecord
from dataflow_ops.state.store import StateStore

CANCELLABLE = (*LIVE_RUNS, "FAILED")
"""A failed run may be tried again, and days after it may wait for that."""


@dataclass(frozen=True, slots=True)
class Cancelled:
    """A run that was cancelled.

    Attributes:
        run: as it stood before.
        tasks: how many tasks were given up; those that another live run wants too go on.
    """

    run: RunRecord
    tasks: int


def cancel_run(home_path: Path, run_id: str, who: str, why: str = "") -> Cancelled:
    """Cancel a run. What is done stays, and is skipped when the job is run again.

    Whoever works on it stops at the next batch boundary. Its own pause flag goes with it.

    Args:
        home_path: home folder.
        run_id: the run.
        who: name of the person or service.
        why: for people.

    Raises:
        ConfigError: no such run, or it has ended.
    """
    home = open_home(home_path, create=False)
    with StateStore(home.state_url) as state:
        row = known_run(state, run_id)
        if row.state not in CANCELLABLE:
            raise ConfigError(f"run '{row.run_id}' is {row.state}: there is nothing to cancel{_else(row)}")
        tasks = state.cancel(row.run_id, f"cancelled by {who}" + (f": {why}" if why else ""))
        PauseFlags(state, home.redis_url).resume("run", row.run_id, who)
    return Cancelled(row, tasks)


def _else(row: RunRecord) -> str:
    if row.state != "AWAITING_APPROVAL":
        return ""
    return "; its version waits for a person: `dataflow versions reject` refuses it"
