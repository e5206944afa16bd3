"""``samples import`` and ``samples letters``."""

from __future__ import annotations

import getpass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dataflow_ops.cli.console import OUT, counted, print_json, print_table, told_when_interrupted, watched
from dataflow_ops.cli.options import DEFAULT_HOME, EXIT_PAUSED, EXIT_WAITING, HomeOption, JsonOption
from dataflow_ops.cli.samples_home import opened
from dataflow_ops.cli.samples_running import end_told, run_here, told_of
from dataflow_ops.cli.samples_words import DatasetOption, FileOption, dataset_of, short

if TYPE_CHECKING:
    from dataflow_ops.state.samples.records import SampleTask


def register(app: typer.Typer) -> None:
    """Add the commands to ``dataflow samples``."""
    app.command("import")(import_)
    app.command()(letters)


def import_(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILE…", help="JSON Lines, a JSON array or Parquet; .gz, .zst too."),
    ],
    dataset: Annotated[str, typer.Option("--dataset", metavar="NAME", help="Where the dialogues go.")],
    format_: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar="NAME",
            help="messages, sharegpt or instruction; told by the records if left out.",
        ),
    ] = None,
    home: HomeOption = DEFAULT_HOME,
    as_json: JsonOption = False,
) -> None:
    """Import dialogues as rows. The same command goes on where it stopped; a file comes in once."""
    from dataflow_ops.pipeline.home import open_home
    from dataflow_ops.samples.importing import plan_import

    open_home(home)  # made where it is not there
    paths = [str(path.absolute()) for path in files]
    with opened(home) as (place, store):
        with watched("files", quiet=as_json) as progress:
            wanted = plan_import(store, dataset, paths, getpass.getuser(), format_, told=progress)
        done: list[SampleTask] = []
        for task_id in (*wanted.resumed, *([wanted.task_id] if wanted.task_id else ())):
            with told_when_interrupted(as_json):
                done.append(run_here(place, store, store.sample_task(task_id), quiet=as_json))
        flag = next((store.paused(task.task_id, dataset) for task in done if task.state == "PAUSED"), None)
    counts: dict[str, float] = {}
    for task in done:
        for name, number in task.counts.items():
            counts[name] = counts.get(name, 0) + number
    if as_json:
        print_json({"tasks": [told_of(task) for task in done], "there": list(wanted.there), "counts": counts})
    else:
        if wanted.there:
            OUT.print(f"{counted(len(wanted.there), 'file')} imported before: nothing to do.", markup=False)
        for task in done:
            OUT.print(f"{task.task_id}: {end_told(task)}", markup=False)
        if counts.get("refused"):
            OUT.print(
                f"What was refused, and why: dataflow samples letters --dataset {dataset}", markup=False
            )
        if paused := next((task for task in done if task.state == "PAUSED"), None):
            why = f"It is {flag.told}. " if flag is not None else ""
            OUT.print(f"{why}Go on with: dataflow samples resume {paused.task_id}", markup=False)
        elif done:
            OUT.print(f"Look at them: dataflow samples list --dataset {dataset}", markup=False)
    if any(task.state == "PAUSED" for task in done):
        raise typer.Exit(EXIT_PAUSED)
    if counts.get("refused"):
        raise typer.Exit(EXIT_WAITING)


def letters(
    dataset: DatasetOption = None,
    file: FileOption = None,
    limit: Annotated[int, typer.Option(metavar="N", min=1, help="How many to show.")] = 50,
    home: HomeOption = DEFAULT_HOME,
    as_json: JsonOption = False,
) -> None:
    """Records that are no dialogue, and why."""
    from dataflow_ops.samples.browse import letter_rows, meant_files

    with opened(home) as (_, store):
        named = {f.id: f for f in meant_files(store, dataset_of(store, dataset), file or ())}
        groups = store.letters_by_error(list(named))
        rows = letter_rows(store.sample_letters(list(named), limit), with_text=True)
    if as_json:
        print_json({"by_error": groups, "letters": rows})
        return
    if not rows:
        OUT.print("No record was refused.")
        return
    print_table("By error", ("error", "records"), list(groups.items()))
    columns = ("file", "record", "error", "message", "begins with")
    print_table(
        "",
        columns,
        [
            (
                named[row["dataset_file_id"]].path.rsplit("/", 1)[-1],
                row["row_identifier"],
                row["error"],
                short(row["message"], 70),
                short(row["raw"], 50),
            )
            for row in rows
        ],
    )
    total = sum(groups.values())
    if total > len(rows):
        OUT.print(f"{len(rows):,} of {total:,}; --limit {total} shows all.")
