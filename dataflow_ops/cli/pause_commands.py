"""``pause``, ``resume``, ``cancel``, ``pauses``, ``urgent``."""

from __future__ import annotations

import datetime as dt
import getpass
from typing import Annotated

import typer

from dataflow_ops.cli.console import (
    OUT,
    ConsoleReporter,
    print_end,
    print_json,
    print_table,
    told_when_interrupted,
)
from dataflow_ops.cli.options import (
    DEFAULT_HOME,
    EXIT_FAILED,
    EXIT_PAUSED,
    PANEL_LOOK,
    PANEL_RUN,
    HomeOption,
    JsonOption,
)
from dataflow_ops.errors import ConfigError
from dataflow_ops.pipeline.pausing import Resumed, resume_line

RunArgument = Annotated[str | None, typer.Argument(metavar="RUN", help="Run; the newest when left out.")]
OfDataset = Annotated[
    str | None, typer.Option("--dataset", metavar="NAME", help="All runs of this data set, later ones too.")
]
OfAll = Annotated[bool, typer.Option("--all", metavar="", help="All runs of all data sets, later ones too.")]


def pause(
    run_id: RunArgument = None,
    dataset: OfDataset = None,
    everything: OfAll = False,
    why: Annotated[str, typer.Option(metavar="TEXT", help="Shown to whoever finds it paused.")] = "",
    home: HomeOption = DEFAULT_HOME,
    as_json: JsonOption = False,
) -> None:
    """Stop a run (or a data set's, or all) within seconds; nothing is lost, no attempt is used."""
    from dataflow_ops.pipeline import pausing

    scope, target = _meant(run_id, dataset, everything)
    flag = pausing.pause(home, scope, target, getpass.getuser(), why)
    if as_json:
        # "run" is null where more than one run is meant.
        run = flag.target if flag.scope == "run" else None
        print_json({"run": run, "paused": True, "scope": flag.scope, "target": flag.target})
        return
    covered = {"run": flag.target, "dataset": f"Every run of {flag.target}", "all": "Every run"}[flag.scope]
    OUT.print(
        f"{covered} stops within seconds. Go on with: {resume_line(flag.scope, flag.target)}", markup=False
    )


def resume(
    run_id: RunArgument = None,
    dataset: OfDataset = None,
    everything: OfAll = False,
    workers: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=0,
            help="Worker processes; 0 runs in this one. Default: one for every 4 MB of input, at most cores;"
            " none below 8 MB.",
        ),
    ] = None,
    home: HomeOption = DEFAULT_HOME,
    as_json: JsonOption = False,
) -> None:
    """Take a pause back. A run of the command line goes on in this process, one of Airflow where it was."""
    from dataflow_ops.pipeline import pausing
    from dataflow_ops.pipeline.run import resume_run

    scope, target = _meant(run_id, dataset, everything)
    done = pausing.resume(home, scope, target, getpass.getuser())
    if scope != "run":
        _tell_scope(done.cleared, scope, target or "", as_json)
        return
    if done.held_by is not None:
        told = f"{done.run_id} is still {done.held_by.told}. Go on with: "
        _say(told + resume_line(done.held_by.scope, done.held_by.target), done, "PAUSED", as_json)
        raise typer.Exit(EXIT_PAUSED)
    if done.run is not None and done.origin:
        from dataflow_ops.pipeline.orchestrated import job_is_gone, why_it_stays

        if stays := why_it_stays(home, done.run) or job_is_gone(home, done.run):
            _say(f"{done.run_id} is not paused, but {stays}.", done, "", as_json)
            raise typer.Exit(EXIT_FAILED)
        where = "Airflow" if done.origin == "airflow" else done.origin
        _say(f"{done.run_id} may go on; its tasks do so in {where} within seconds.", done, "", as_json)
        return
    with told_when_interrupted(as_json):
        result = resume_run(
            home,
            done.run_id,
            workers,
            ConsoleReporter(quiet=as_json),
        )
    print_end(result, as_json)


def cancel(
    run_id: Annotated[str, typer.Argument(metavar="RUN", help="Run; `dataflow runs` lists them.")],
    why: Annotated[str, typer.Option(metavar="TEXT", help="Kept with the run.")] = "",
    home: HomeOption = DEFAULT_HOME,
    as_json: JsonOption = False,
) -> None:
    """End a run for good; what is done stays, and later days of its data set wait for it no longer."""
    from dataflow_ops.pipeline.cancelling import cancel_run
    from dataflow_ops.pipeline.orchestrated import stop_dag_run

    done = cancel_run(home, run_id, getpass.getuser(), why)
    told = stop_dag_run(home, done.run)
    if as_json:
        print_json(
            {"run": run_id, "state": "CANCELLED", "tasks": done.tasks, "message": told}, told=("message",)
        )
        return
    OUT.print(
        f"{run_id} is cancelled; open tasks given up: {done.tasks:,}. What is done stays: the next run of the"
        f" job skips it. {told}".rstrip(),
        markup=False,
    )


def pauses(home: HomeOption = DEFAULT_HOME, as_json: JsonOption = False) -> None:
    """What is paused: by whom, since when, why."""
    from dataflow_ops.pipeline import pausing

    rows = pausing.pauses(home)
    if as_json:
        print_json(rows)
        return
    if not rows:
        OUT.print("Nothing is paused.", markup=False)
        return
    columns = ("scope", "target", "by", "since", "why", "go on with")
    shown = [
        (
            row["scope"],
            row["target"],
            row["who"],
            dt.datetime.fromtimestamp(row["since"], dt.UTC).strftime("%Y-%m-%d %H:%M UTC"),
            row["why"],
            resume_line(row["scope"], row["target"]),
        )
        for row in rows
    ]
    print_table("", columns, shown, told=("go on with",))


def urgent(
    run_id: RunArgument = None,
    off: Annotated[bool, typer.Option("--off", metavar="", help="No longer urgent.")] = False,
    home: HomeOption = DEFAULT_HOME,
    as_json: JsonOption = False,
) -> None:
    """Let a run go ahead of those that are not urgent, from its next step on."""
    from dataflow_ops.pipeline.urgency import set_urgent

    row = set_urgent(home, run_id, not off, getpass.getuser())
    if as_json:
        print_json({"run": row.run_id, "urgent": row.urgent})
    else:
        how = "goes first, from its next step on" if row.urgent else "is no longer urgent"
        OUT.print(f"{row.run_id} {how}.", markup=False)


def register(app: typer.Typer) -> None:
    """Add the commands to an app."""
    for command in (resume, pause, cancel, urgent):
        app.command(rich_help_panel=PANEL_RUN)(command)
    app.command(rich_help_panel=PANEL_LOOK)(pauses)


def _meant(run_id: str | None, dataset: str | None, everything: bool) -> tuple[str, str | None]:
    if sum((run_id is not None, dataset is not None, everything)) > 1:
        raise ConfigError("name a run, or --dataset NAME, or --all: one of them")
    if everything:
        return "all", ""
    return ("run", run_id) if dataset is None else ("dataset", dataset)


def _tell_scope(cleared: bool, scope: str, target: str, as_json: bool) -> None:
    if as_json:
        print_json({"scope": scope, "target": target, "cleared": cleared})
        return
    covered = f"The pause of data set {target}" if scope == "dataset" else "The pause of everything"
    if cleared:
        OUT.print(
            f"{covered} is taken back. Runs of Airflow go on by themselves, those of the command line with:"
            " dataflow resume RUN",
            markup=False,
        )
    else:
        OUT.print(f"{covered} was not set. `dataflow pauses` lists what is.", markup=False)


def _say(message: str, done: Resumed, state: str, as_json: bool) -> None:
    if as_json:
        print_json(
            {"run": done.run_id, "state": state, "cleared": done.cleared, "message": message},
            told=("message",),
        )
    else:
        OUT.print(message, markup=False)
