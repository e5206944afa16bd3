"""Whether a run may work now, asked of our state. Opens the database: for tasks and triggers only."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dataflow_ops.state.store import StateStore


def patient_state(home: str | Path) -> StateStore:
    """State as a task opens it: a database that restarts is waited for, so that no attempt is lost.

    Triggers must not: they ask again by themselves, and one that waits would hold up the others.

    Raises:
        ConfigError: there is no such home.
        DatabaseUnavailable: state stays away.
    """
    from dataflow_ops.pipeline.home import open_home
    from dataflow_ops.state.database import PATIENCE_S
    from dataflow_ops.state.store import StateStore

    return StateStore(open_home(Path(home), create=False, patience_s=PATIENCE_S).state_url, PATIENCE_S)


def held_back(home: str, dataset: str, run_id: str) -> bool:
    """Whether a pause flag holds for a run, its data set, or everything.

    Where one does, a run with nothing under way is PAUSED from now on. A run that is not there yet can be
    paused too, by its data set or by all.

    Raises:
        DatabaseUnavailable: state can't be reached.
    """
    if not Path(home).is_dir():
        return False  # the first run of all makes it
    with patient_state(home) as state:
        if state.get_run(run_id) is None:
            return state.paused(run_id, dataset) is not None
        return state.settle_pause(run_id) is not None


def may_go_on(home: str, dataset: str, run_id: str, turn: bool) -> bool:
    """Whether no pause flag holds and, where that is asked, it is the run's turn, which it then has.

    While one holds, the run is PAUSED once nobody works on it: a worker that was killed cannot say so, and
    what waits is the last to look.

    Raises:
        ConfigError: there is no such home.
        DatabaseUnavailable: state can't be reached.
    """
    from dataflow_ops.pipeline.home import open_home
    from dataflow_ops.pipeline.ordered import enter_ordered
    from dataflow_ops.state.store import StateStore

    with StateStore(open_home(Path(home), create=False).state_url) as state:
        run = state.get_run(run_id)
        if state.paused(run_id, dataset) is not None:
            if run is not None and run.state == "RUNNING":
                state.settle_pause(run_id)
            return False
        return not turn or run is None or enter_ordered(state, run) is None


@contextmanager
def turn(home: str, run_id: str, step: str) -> Iterator[None]:
    """Around the work of a step (or ``publish``) that the days of a data set take in turn.

    Raises:
        WaitsForTurn: another day comes first.
    """
    from dataflow_ops.pipeline.ordered import in_turn

    with patient_state(home) as state:
        run = state.get_run(run_id)
        if run is None:
            yield
            return
        with in_turn(state, run, step):
            yield


def leave_turn(home: str, run_id: str) -> None:
    """Let the next day of the data set go on, if it was this run's turn."""
    from dataflow_ops.pipeline.ordered import leave_ordered

    if not Path(home).is_dir():
        return  # nothing was ever run
    with patient_state(home) as state:
        run = state.get_run(run_id)
        if run is not None:
            leave_ordered(state, run)


def still_waits(home: str, dataset: str, version: str) -> bool:
    """Whether nobody has approved or rejected a version yet.

    Raises:
        DatabaseUnavailable: state can't be reached.
    """
    from dataflow_ops.pipeline.home import open_home
    from dataflow_ops.pipeline.version_states import SHOWN_WAITING, shown
    from dataflow_ops.state.store import StateStore

    with StateStore(open_home(Path(home), create=False).state_url) as state:
        return any(
            v.version_id == version and shown(v.state, v.is_current) == SHOWN_WAITING
            for v in state.versions(dataset)
        )


def embedded() -> bool:
    """Whether this task runs in the process of ``airflow dags test``: nobody is there to be asked."""
    from airflow.sdk.execution_time import task_runner
    from airflow.sdk.execution_time.supervisor import InProcessSupervisorComms

    return isinstance(getattr(task_runner, "SUPERVISOR_COMMS", None), InProcessSupervisorComms)
