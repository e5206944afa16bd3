"""``samples tasks | pause | resume | cancel``."""

from __future__ import annotations

import getpass
from typing import Annotated, Any

import typer

from dataflow_ops.cli.console import OUT, print_json, print_table, told_when_interrupted
from dataflow_ops.cli.options import DEFAULT_HOME, EXIT_PAUSED, EXIT_WAITING, HomeOption, JsonOption
from dataflow_ops.cli.samples_home import opened
from dataflow_ops.cli.samples_running import end_told, run_here, told_of
from dataflow_ops.cli.samples_words import counts_told, moment, short
from dataflow_ops.errors import ConfigError
from dataflow_ops.state.machine import OPEN_TASKS

TaskArgument = Annotated[
    str, typer.Argument(metavar="TASK", help="Task; `dataflow samples tasks` lists them.")
]


def register(app: typer.Typer) -> None:
    """Add the commands to ``dataflow samples``."""
    for command in (tasks, pause, resume, cancel):
        app.command()(command)


def tasks(
    dataset: Annotated[
        str | None, typer.Option("--dataset", metavar="NAME", help="Only of this data set.")
    ] = None,
    kind: Annotated[
        str | None, typer.Option(metavar="KIND", help="import, clean, augment, export, …")
    ] = None,
    state: Annotated[str | None, typer.Option(metavar="STATE", help="PENDING, RUNNING, PAUSED, …")] = None,
    limit: Annotated[int, typer.Option(metavar="N", min=1, help="How many.")] = 20,
    home: HomeOption = DEFAULT_HOME,
    as_json: JsonOption = False,
) -> None:
    """Tasks on samples, newest first: where they stand, and what they counted."""
    with opened(home) as (_, store):
        found = store.sample_tasks(dataset, kind, None if state is None else state.upper(), limit)
        shown = []
        for task in found:
            at = store.sample_cursor(task.task_id)
            flag = store.paused(task.task_id, task.dataset) if task.state in OPEN_TASKS else None
            shown.append((task, at, flag))
    if as_json:
        print_json(
            {
                "tasks": [
                    {
                        **told_of(task),
                        "silent": task.silent,
                        "attempt": task.attempt,
                        "who": task.who,
                        "turns": at.processed_rows if at else 0,
                        "of": task.snapshot_rows,
                        "file": at.file_id if at else None,
                        "record": at.offset if at else None,
                        "paused_by": flag.who if flag else None,
                        "created_at": task.created_at,
                        "started_at": task.started_at,
                        "ended_at": task.ended_at,
                    }
                    for task, at, flag in shown
                ]
            }
        )
        return
    if not shown:
        OUT.print("No tasks yet.")
        return
    columns = ("task", "data set", "kind", "state", "turns", "of", "by", "asked", "")
    rows = []
    for task, at, flag in shown:
        state_ = "no sign of life" if task.silent else task.state
        told = flag.told if flag else task.error_message or counts_told(task.counts)
        done = at.processed_rows if at else 0
        of: Any = task.snapshot_rows if task.snapshot_rows is not None else ""
        rows.append(
            (
                task.task_id,
                task.dataset,
                task.kind,
                state_,
                done,
                of,
                task.who,
                moment(task.created_at),
                short(told),
            )
        )
    print_table("", columns, rows)


def pause(
    task: Annotated[str | None, typer.Argument(metavar="TASK", help="Task.")] = None,
    dataset: Annotated[
        str | None,
        typer.Option("--dataset", metavar="NAME", help="All tasks of this data set, later ones too."),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", metavar="", help="All tasks and runs.")] = False,
    why: Annotated[str, typer.Option(metavar="TEXT", help="Shown to whoever finds it paused.")] = "",
    home: HomeOption = DEFAULT_HOME,
    as_json: JsonOption = False,
) -> None:
    """Stop a task (or a data set's, or all) after its batch; nothing is lost, no attempt is used."""
    from dataflow_ops.control.flags import PauseFlags

    scope, target = _meant(task, dataset, everything)
    with opened(home) as (place, store):
        if scope == "run":
            known = store.sample_task(target)
            if known.state not in OPEN_TASKS:
                raise ConfigError(f"{target} is {known.state}: there is nothing to pause")
        if scope == "dataset" and not (store.sample_files(target) or store.sample_tasks(target, limit=1)):
            raise ConfigError(
                f"there are no samples of data set {target!r}; `dataflow samples files` names them"
            )
        PauseFlags(store, place.redis_url).pause(scope, target, getpass.getuser(), why)
    if as_json:
        print_json({"paused": True, "scope": scope, "target": target})
        return
    covered = {"run": target, "dataset": f"Every task of {target}", "all": "Every task"}[scope]
    OUT.print(f"{covered} stops after its batch. Go on with: {_resume_line(scope, target)}", markup=False)


def resume(
    task: Annotated[str | None, typer.Argument(metavar="TASK", help="Task.")] = None,
    dataset: Annotated[
        str | None, typer.Option("--dataset", metavar="NAME", help="Take the pause of this data set back.")
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", metavar="", help="Take the pause of all back.")
    ] = False,
    home: HomeOption = DEFAULT_HOME,
    as_json: JsonOption = False,
) -> None:
    """Take a pause back; a task that was paused, failed or left goes on from its cursor in this process."""
    from dataflow_ops.control.flags import PauseFlags

    scope, target = _meant(task, dataset, everything)
    with opened(home) as (place, store):
        if scope == "run":
            known = store.sample_task(target)
            if known.state not in OPEN_TASKS:
                raise ConfigError(f"{target} is {known.state}: there is nothing to go on with")
        cleared = PauseFlags(store, place.redis_url).resume(scope, target, getpass.getuser())
        if scope != "run":
            if as_json:
                print_json({"scope": scope, "target": target, "cleared": cleared})
            else:
                OUT.print("The pause is taken back." if cleared else "There was no such pause.", markup=False)
            return
        flag = store.paused(target, known.dataset)
        if flag is not None:
            told = f"{target} is still {flag.told}. Go on with: {_resume_line(flag.scope, flag.target)}"
            _say({**told_of(known), "message": told}, told, as_json)
            raise typer.Exit(EXIT_PAUSED)
        if known.task_id.startswith("airflow-") and known.state == "PAUSED":
            told = f"{target} may go on; Airflow takes it up within seconds."
            _say({**told_of(known), "message": told}, told, as_json)
            return
        with told_when_interrupted(as_json):
            ended = run_here(place, store, known, quiet=as_json)
    _say(told_of(ended), f"{target}: {end_told(ended)}", as_json)
    if ended.state == "PAUSED":
        raise typer.Exit(EXIT_PAUSED)
    if ended.counts.get("refused"):
        raise typer.Exit(EXIT_WAITING)


def cancel(task: TaskArgument, home: HomeOption = DEFAULT_HOME, as_json: JsonOption = False) -> None:
    """Give a task up; what it wrote stays. Asked for again, it goes on from there."""
    with opened(home) as (_, store):
        if (known := store.sample_task(task)).state not in OPEN_TASKS:
            raise ConfigError(f"{task} is {known.state}: there is nothing to cancel")
        store.cancel_task(task, getpass.getuser())
    _say({"task": task, "state": "CANCELLED"}, f"{task} is cancelled. What it wrote stays.", as_json)


def _meant(task: str | None, dataset: str | None, everything: bool) -> tuple[str, str]:
    if sum((task is not None, dataset is not None, everything)) != 1:
        raise ConfigError("name a task, or --dataset NAME, or --all: one of them")
    if everything:
        return "all", ""
    return ("run", str(task)) if dataset is None else ("dataset", dataset)


def _resume_line(scope: str, target: str) -> str:
    words = {"run": target, "dataset": f"--dataset {target}", "all": "--all"}[scope]
    return f"dataflow samples resume {words}"


def _say(value: dict[str, Any], told: str, as_json: bool) -> None:
    if as_json:
        print_json(value, told=("message",))
    else:
        OUT.print(told, markup=False)
