"""``samples clean`` and ``samples export``: tasks over rows, run in this process."""

from __future__ import annotations

import getpass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dataflow_ops.cli.console import OUT, print_json, told_when_interrupted
from dataflow_ops.cli.options import DEFAULT_HOME, EXIT_PAUSED, HomeOption, JsonOption
from dataflow_ops.cli.samples_home import opened
from dataflow_ops.cli.samples_running import run_here, told_of

if TYPE_CHECKING:
    from dataflow_ops.pipeline.home import Home
    from dataflow_ops.state.samples.records import SampleTask

DatasetOption = Annotated[str, typer.Option("--dataset", metavar="NAME", help="Whose samples.")]
SettingsOption = Annotated[
    Path | None, typer.Option("--settings", metavar="FILE", help="Settings (YAML); left out, the defaults.")
]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="One setting, as dedup.near=false; may be repeated."),
]
FileOption = Annotated[
    list[str] | None,
    typer.Option("--file", metavar="FILE", help="Only this file (id, path or name); may be repeated."),
]
TaskOption = Annotated[
    str | None, typer.Option("--task", metavar="ID", help="Name of the task; made up when left out.")
]


def register(app: typer.Typer) -> None:
    """Add the commands to ``dataflow samples``."""
    app.command()(clean)
    app.command()(export)


def clean(
    dataset: DatasetOption,
    settings: SettingsOption = None,
    set_: SetOption = None,
    file: FileOption = None,
    task_id: TaskOption = None,
    home: HomeOption = DEFAULT_HOME,
    as_json: JsonOption = False,
) -> None:
    """Normalise turns, judge dialogues, find duplicates. The same command goes on where it stopped."""
    task, _ = _run("clean", dataset, settings, set_ or [], file or [], task_id, home, as_json)
    if not as_json:
        _told(task, ("dialogues", "kept", "rejected", "duplicate", "turns_changed"))
        for name, number in sorted(task.counts.items()):
            if name.startswith("rule."):
                OUT.print(f"  refused by {name.removeprefix('rule.')}: {int(number):,}", markup=False)
    _end(task)


def export(
    dataset: DatasetOption,
    settings: SettingsOption = None,
    set_: SetOption = None,
    file: FileOption = None,
    task_id: TaskOption = None,
    home: HomeOption = DEFAULT_HOME,
    as_json: JsonOption = False,
) -> None:
    """Write dialogues as JSON Lines with checksums and a manifest, below exports/ in the storage root."""
    task, place = _run("export", dataset, settings, set_ or [], file or [], task_id, home, as_json)
    if not as_json:
        _told(task, ("dialogues", "records", "shards", "bytes"))
        for name, number in sorted(task.counts.items()):
            if name.startswith("left_out."):
                OUT.print(f"  left out, {name.removeprefix('left_out.')}: {int(number):,}", markup=False)
        if task.state == "SUCCESS":
            OUT.print(f"{place.root}/exports/{task.dataset}/{task.task_id}", markup=False)
            if not task.counts.get("dialogues"):
                OUT.print(
                    "No dialogue has the status that is wanted. `dataflow samples clean --dataset"
                    f" {task.dataset}` makes them KEPT; --set 'status=[NEW]' takes what was never cleaned.",
                    markup=False,
                )
    _end(task)


def _run(
    kind: str,
    dataset: str,
    path: Path | None,
    overrides: list[str],
    files: list[str],
    task_id: str | None,
    home: Path,
    as_json: bool,
) -> tuple[SampleTask, Home]:
    from dataflow_ops.samples.asking import ask, load_settings

    wanted = load_settings(kind, path, overrides)
    with opened(home) as (place, store):
        task = ask(store, kind, dataset, wanted, getpass.getuser(), files=files, task_id=task_id)
        if task.state == "SUCCESS" and not as_json:
            OUT.print(f"{task.task_id} is done; --task NAME runs it once more under that name", markup=False)
        with told_when_interrupted(as_json):
            task = run_here(place, store, task, quiet=as_json)
    if as_json:
        print_json(told_of(task))
    return task, place


def _told(task: SampleTask, names: tuple[str, ...]) -> None:
    numbers = ", ".join(f"{name.replace('_', ' ')} {int(task.counts.get(name, 0)):,}" for name in names)
    OUT.print(f"{task.task_id}: {task.state.lower()}; {numbers}", markup=False)


def _end(task: SampleTask) -> None:
    if task.state == "PAUSED":
        # The pause outlives this process: whoever set it takes it back, and the same command goes on.
        raise typer.Exit(EXIT_PAUSED)
