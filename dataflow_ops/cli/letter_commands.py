"""``dead-letters list | retry | drop``."""

from __future__ import annotations

from typing import Annotated

import typer

from dataflow_ops.cli.console import OUT, print_json, print_table
from dataflow_ops.cli.options import DEFAULT_HOME, HomeOption, JsonOption

app = typer.Typer(no_args_is_help=True, help="Records, files and chunks that could not be processed.")

IdsArgument = Annotated[list[str] | None, typer.Argument(help="Ids as listed; or use --error or --all.")]
ErrorOption = Annotated[str | None, typer.Option(help="Only letters with this error.")]
AllOption = Annotated[bool, typer.Option("--all", help="All open letters.")]


@app.command("list")
def list_(
    error: ErrorOption = None,
    limit: Annotated[int, typer.Option(min=1, help="How many to show.")] = 50,
    home: HomeOption = DEFAULT_HOME,
    as_json: JsonOption = False,
) -> None:
    """Open dead letters, and how many there are by error."""
    from dataflow_ops.pipeline.letters import list_letters

    groups, rows = list_letters(home, error, limit)
    if as_json:
        print_json({"groups": groups, "letters": rows})
        return
    if not groups:
        OUT.print("No open dead letters.")
        return
    print_table("By error", ("error", "letters"), list(groups.items()))
    columns = ("id", "level", "step", "source", "path", "position", "error", "message")
    print_table("", columns, [tuple(row[c] for c in columns) for row in rows])
    OUT.print("Try again: dataflow dead-letters retry ID …   Give up: dataflow dead-letters drop ID …")


@app.command()
def retry(
    ids: IdsArgument = None,
    error: ErrorOption = None,
    every: AllOption = False,
    home: HomeOption = DEFAULT_HOME,
    as_json: JsonOption = False,
) -> None:
    """Put dead letters back: the next run processes their chunks again."""
    from dataflow_ops.pipeline.letters import change_letters

    _said(
        change_letters(home, "retry", ids or (), error, every),
        "put back; the next `dataflow run` tries them again",
        as_json,
    )


@app.command()
def drop(
    ids: IdsArgument = None,
    error: ErrorOption = None,
    every: AllOption = False,
    home: HomeOption = DEFAULT_HOME,
    as_json: JsonOption = False,
) -> None:
    """Give up on dead letters: they are shown no more, and stay counted in their version."""
    from dataflow_ops.pipeline.letters import change_letters

    _said(change_letters(home, "drop", ids or (), error, every), "dropped", as_json)


def _said(number: int, what: str, as_json: bool) -> None:
    if as_json:
        print_json({"letters": number})
    else:
        OUT.print(f"{number} dead letter(s) {what}.")
