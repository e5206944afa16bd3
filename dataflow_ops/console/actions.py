"""Pausing, resuming, hurrying: what people press beside a run."""

from __future__ import annotations

from typing import Final

from dataflow_ops.console.place import Place
from dataflow_ops.console.runs import is_live, known_run
from dataflow_ops.console.said import fault
from dataflow_ops.control.flags import PauseFlags
from dataflow_ops.errors import ConfigError
from dataflow_ops.pipeline.cancelling import CANCELLABLE, cancel_run
from dataflow_ops.pipeline.urgency import set_urgent
from dataflow_ops.state.records import RunRecord

SCOPES: Final = ("run", "dataset", "all")
MAX_WHY = 1_000


def pause(place: Place, run_id: str, scope: str, who: str, why: str) -> None:
    """Ask a run, all runs of its data set, or everything to pause.

    Raises:
        NotThere: no such run.
        ConfigError: no such scope, or the run has ended.
    """
    row = known_run(place, run_id)
    if scope == "run" and not is_live(row):
        raise fault(ConfigError, "ended_pause", state=row.state)
    PauseFlags(place.state, place.home.redis_url).pause(scope, _target(row, scope), who, why[:MAX_WHY])
    place.sums.forget(run_id)


def resume(place: Place, run_id: str, scope: str, who: str) -> None:
    """Take a flag back. Others may hold still: the run then stays paused, and says by whom.

    Raises:
        NotThere: no such run.
        ConfigError: no such scope.
    """
    row = known_run(place, run_id)
    PauseFlags(place.state, place.home.redis_url).resume(scope, _target(row, scope), who)
    place.sums.forget(run_id)


def cancel(place: Place, run_id: str, who: str, why: str) -> None:
    """End a run for good; what is done stays.

    Raises:
        NotThere: no such run.
        ConfigError: it has ended.
    """
    row = known_run(place, run_id)
    if row.state not in CANCELLABLE:
        raise fault(ConfigError, "ended_cancel", state=row.state)
    cancel_run(place.home.path, run_id, who, why[:MAX_WHY])
    place.sums.forget(run_id)


def hurry(place: Place, run_id: str, urgent: bool, who: str) -> None:
    """Let a run go ahead of all that are not urgent, or take that back.

    Raises:
        NotThere: no such run.
        ConfigError: it has ended.
    """
    row = known_run(place, run_id)
    if not is_live(row) and row.state != "FAILED":
        raise fault(ConfigError, "ended_hurry", state=row.state)
    set_urgent(place.home.path, run_id, urgent, who)


def _target(row: RunRecord, scope: str) -> str:
    if scope not in SCOPES:
        raise ConfigError(f"scope '{scope}': use one of {', '.join(SCOPES)}")
    return {"run": row.run_id, "dataset": row.dataset, "all": ""}[scope]
