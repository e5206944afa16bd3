"""``samples delete`` and ``samples restore``."""

from __future__ import annotations

import getpass
from collections.abc import Callable
from pathlib import Path

import typer

from dataflow_ops.cli.console import OUT, print_json, told_when_interrupted
from dataflow_ops.cli.options import DEFAULT_HOME, EXIT_PAUSED, HomeOption, JsonOption
from dataflow_ops.cli.samples_home import opened
from dataflow_ops.cli.samples_running import run_here, told_of
from dataflow_ops.cli.samples_words import (
    Asked,
    ContainsOption,
    DatasetOption,
    FileOption,
    LongestOption,
    RecordOption,
    RoleOption,
    RuleOption,
    ShortestOption,
    StatusOption,
    counts_told,
    dataset_of,
)
from dataflow_ops.errors import ConfigError


def register(app: typer.Typer) -> None:
    """Add the commands to ``dataflow samples``."""
    app.command("delete")(
        _command(
            "Delete every dialogue that has a turn which meets all that is asked. `restore` brings it back.",
            restore=False,
        )
    )
    app.command("restore")(
        _command(
            "Bring back every deleted dialogue that has a turn which meets all that is asked.", restore=True
        )
    )


def _command(told: str, *, restore: bool) -> Callable[..., None]:
    def command(
        dataset: DatasetOption = None,
        file: FileOption = None,
        role: RoleOption = None,
        status: StatusOption = None,
        rule: RuleOption = None,
        contains: ContainsOption = "",
        shortest: ShortestOption = None,
        longest: LongestOption = None,
        record: RecordOption = None,
        home: HomeOption = DEFAULT_HOME,
        as_json: JsonOption = False,
    ) -> None:
        asked = Asked(file, role, status, rule, contains, shortest, longest, record)
        _change(asked, dataset, home, as_json, restore=restore)

    command.__doc__ = told
    return command


def _change(asked: Asked, dataset: str | None, home: Path, as_json: bool, *, restore: bool) -> None:
    from dataflow_ops.samples.deleting import ask_deletion

    if asked == Asked():
        raise ConfigError("say which: --file, --record, --status, … (--file FILE alone means the whole file)")
    with opened(home) as (place, store):
        name = dataset_of(store, dataset)
        only = asked.filter(store, name, ready=True)
        task = ask_deletion(store, name, only, getpass.getuser(), restore=restore)
        with told_when_interrupted(as_json):
            task = run_here(place, store, task, quiet=as_json)
    if as_json:
        print_json(told_of(task))
    else:
        told = counts_told(task.counts) or "no such dialogues"
        OUT.print(f"{'Restored' if restore else 'Deleted'}: {told} ({task.task_id})", markup=False)
        if task.counts and not restore:
            OUT.print(
                "They are kept: `dataflow samples restore` with the same options brings them back.",
                markup=False,
            )
    if task.state == "PAUSED":
        raise typer.Exit(EXIT_PAUSED)
