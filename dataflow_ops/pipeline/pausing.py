"""Pausing and going on, as people ask for it: a run, a data set, everything."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dataflow_ops.control.flags import PauseFlags
from dataflow_ops.errors import ConfigError
from dataflow_ops.pipeline.home import open_home
from dataflow_ops.pipeline.session import latest_run
from dataflow_ops.state.machine import LIVE_RUNS, RUN_STATES
from dataflow_ops.state.records import PauseFlag, RunRecord
from dataflow_ops.state.store import StateStore

ENDED = tuple(sorted(RUN_STATES - {*LIVE_RUNS, "FAILED"}))
"""States of a run that nothing is left to be done in; a failed one may be tried again."""


@dataclass(frozen=True, slots=True)
class Resumed:
    """What came of taking a flag back.

    Attributes:
        cleared: whether there was such a flag.
        run: the run that was meant; None where it was a data set or everything.
        held_by: the flag that holds the run still, if one does.
    """

    cleared: bool
    run: RunRecord | None = None
    held_by: PauseFlag | None = None

    @property
    def run_id(self) -> str:
        """The run that was meant, or empty."""
        return "" if self.run is None else self.run.run_id

    @property
    def origin(self) -> str:
        """Kind of what drives the run (``airflow``); empty for the command line."""
        return "" if self.run is None else origin_of(self.run)


def pause(home_path: Path, scope: str, target: str | None, who: str, why: str) -> PauseFlag:
    """Set a flag.

    Args:
        home_path: home folder.
        scope: ``run``, ``dataset`` or ``all``.
        target: run or data set; the newest run for ``None`` in scope ``run``.
        who: name of the person or service.
        why: for people.

    Raises:
        ConfigError: no such run or data set, or the run has ended.
    """
    home = open_home(home_path, create=False)
    with StateStore(home.state_url) as state:
        if scope == "run":
            row = known_run(state, target)
            if row.state not in LIVE_RUNS:
                raise ConfigError(f"run '{row.run_id}' is {row.state}: there is nothing to pause")
            target = row.run_id
        elif scope == "dataset" and target and not state.list_runs(target, 1):
            latest_run(state, target)  # raises, and names those that there are
        return PauseFlags(state, home.redis_url).pause(scope, target or "", who, why)


def resume(home_path: Path, scope: str, target: str | None, who: str) -> Resumed:
    """Take a flag back. Nothing is run here.

    Args:
        home_path: home folder.
        scope: ``run``, ``dataset`` or ``all``.
        target: run or data set; the newest run for ``None`` in scope ``run``.
        who: name of the person or service.

    Raises:
        ConfigError: no such run, or it has ended.
    """
    home = open_home(home_path, create=False)
    with StateStore(home.state_url) as state:
        flags = PauseFlags(state, home.redis_url)
        if scope != "run":
            return Resumed(flags.resume(scope, target or "", who))
        row = known_run(state, target)
        if row.state in ENDED:
            raise ConfigError(
                f"run '{row.run_id}' is {row.state}, it has ended: run the job again{_else(row)}"
            )
        cleared = flags.resume("run", row.run_id, who)
        return Resumed(cleared, row, flags.effective(row.run_id, row.dataset))


def pauses(home_path: Path) -> list[dict[str, Any]]:
    """All flags, oldest first: ``scope``, ``target``, ``who``, ``why``, ``since`` (epoch seconds)."""
    with StateStore(open_home(home_path, create=False).state_url) as state:
        return [
            {"scope": f.scope, "target": f.target, "who": f.who, "why": f.why, "since": f.created_at}
            for f in state.pauses()
        ]


def resume_line(scope: str, target: str) -> str:
    """The command that takes a flag back."""
    return f"dataflow resume {({'run': target, 'dataset': f'--dataset {target}', 'all': '--all'})[scope]}"


def paused_line(run_id: str, flag: PauseFlag | None) -> str:
    """Who paused a run, and how it goes on: a wider flag is taken back first.

    Args:
        run_id: the run.
        flag: the narrowest that holds; None where it was taken back a moment ago.
    """
    go_on = f"Go on with: {resume_line('run', run_id)}"
    if flag is None:
        return f"It was paused. {go_on}"
    why = f" ({flag.why})" if flag.why else ""
    if flag.scope == "run":
        return f"Paused by {flag.who or 'somebody'}{why}. {go_on}"
    covers = f"all runs of {flag.target}" if flag.scope == "dataset" else "all runs"
    return (
        f"Paused by {flag.who or 'somebody'}, with {covers}{why}. Take that back with:"
        f" {resume_line(flag.scope, flag.target)}\nThen: {resume_line('run', run_id)}"
    )


def progress_of(state: StateStore, run_id: str) -> dict[str, int]:
    """How far a pause has come: ``tasks_paused`` stopped, ``tasks_open`` those and what still runs.

    Tasks that had not begun are in neither: nobody waits for them.
    """
    found = state.states_of_run(run_id)
    stopped = running = 0
    for states in found.values():
        stopped += states.get("PAUSED", 0)
        running += states.get("RUNNING", 0)
    return {"tasks_paused": stopped, "tasks_open": stopped + running}


def known_run(state: StateStore, run_id: str | None) -> RunRecord:
    """A run by name; the newest for ``None``.

    Raises:
        ConfigError: there is none.
    """
    row = state.get_run(run_id or latest_run(state))
    if row is None:
        raise ConfigError(f"no run '{run_id}' here; `dataflow runs` lists them")
    return row


def origin_of(row: RunRecord) -> str:
    """Kind of what started a run (``airflow``); empty for the command line."""
    return str(json.loads(row.origin).get("kind", "")) if row.origin else ""


def _else(row: RunRecord) -> str:
    if row.state != "AWAITING_APPROVAL":
        return ""
    return ", or decide about its version: `dataflow versions approve` or `dataflow versions reject`"
