"""``dead-letters list | retry | drop``."""

from __future__ import annotations

from typing import Annotated

import typer

from dataflow_ops.cli.console import OUT, counted, print_json, print_table
from dataflow_ops.cli.options import DEFAULT_HOME, HomeOption, JsonOption

app = typer.Typer(no_args_is_help=True, help="Records, files and chunks that could not be processed.")

IdsArgument = Annotated[
    list[str] | None, typer.Argument(metavar="ID…", help="Ids as listed; or use --error or --all.")
]
ErrorOption = Annotated[str | None, typer.Option(metavar="NAME", help="Only letters with this error.")]
DatasetOption = Annotated[
    str | None, typer.Option("--dataset", metavar="NAME", help="Only letters of this data set.")
]
AllOption = Annotated[bool, typer.Option("--all", metavar="", help="All open letters.")]


@app.command("list")
def list_(
    error: ErrorOption = None,
    limit: Annotated[int, typer.Option(metavar="N", min=1, help="How many to show.")] = 50,
    dataset: DatasetOption = None,
    home: HomeOption = DEFAULT_HOME,
    as_json: JsonOption = False,
) -> None:
    """Open dead letters, and how many there are by error."""
    from dataflow_ops.pipeline.letters import list_letters

    groups, rows = list_letters(home, error, limit, dataset)
    total = groups.get(error, 0) if error else sum(groups.values())
    if as_json:
        print_json({"groups": groups, "total": total, "letters": rows})
        return
    if not groups:
        OUT.print("No open dead letters.")
        return
    print_table("By error", ("error", "letters"), list(groups.items()))
    columns = ("id", "dataset", "level", "step", "source", "path", "position", "error", "message")
    print_table("", columns, [tuple(row[c] for c in columns) for row in rows])
    if total > len(rows):
        OUT.print(f"{len(rows):,} of {total:,} letters; --limit {total} shows all.")
    OUT.print("Try again: dataflow dead-letters retry ID …   Give up: dataflow dead-letters drop ID …")


@app.command()
def retry(
    ids: IdsArgument = None,
    error: ErrorOption = None,
    every: AllOption = False,
    dataset: DatasetOption = None,
    home: HomeOption = DEFAULT_HOME,
    as_json: JsonOption = False,
) -> None:
    """Put open dead letters back: the next run processes their chunks again. Dropped ones stay out."""
    from dataflow_ops.pipeline.letters import change_and_name

    number, jobs = change_and_name(home, "retry", ids or (), error, every, dataset)
    names = " and of ".join(f"job '{job}'" for job in jobs)
    _said(number, f"put back; the next run of {names} tries them again" if jobs else "put back", as_json)


@app.command()
def drop(
    ids: IdsArgument = None,
    error: ErrorOption = None,
    every: AllOption = False,
    dataset: DatasetOption = None,
    home: HomeOption = DEFAULT_HOME,
    as_json: JsonOption = False,
) -> None:
    """Give up on dead letters: they are shown no more, and stay counted in their version."""
    from dataflow_ops.pipeline.letters import change_and_name

    _said(change_and_name(home, "drop", ids or (), error, every, dataset)[0], "dropped", as_json)


def _said(number: int, what: str, as_json: bool) -> None:
    if as_json:
        print_json({"letters": number})
    else:
        OUT.print(f"{counted(number, 'dead letter')} {what}.", markup=False)
