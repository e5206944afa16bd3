"""``diff``: two versions side by side."""

from __future__ import annotations

from typing import Annotated

import typer

from dataflow_ops.cli.console import OUT, print_json
from dataflow_ops.cli.options import DEFAULT_HOME, PANEL_VERSIONS, DatasetOption, HomeOption, JsonOption


def diff(
    a: Annotated[str, typer.Argument(metavar="V1", help="Version id, or the start of one.")],
    b: Annotated[str, typer.Argument(metavar="V2", help="The version to compare it with.")],
    n: Annotated[
        int, typer.Option("--n", "-n", metavar="N", min=0, help="Documents shown of each cause and change.")
    ] = 5,
    dataset: DatasetOption = None,
    home: HomeOption = DEFAULT_HOME,
    as_json: JsonOption = False,
) -> None:
    """What changed from V1 to V2, by cause: sources, parser, rules, dedup, mixing."""
    from dataflow_ops.observe.diff_text import as_text
    from dataflow_ops.pipeline.diff import diff_of

    found = diff_of(home, a, b, dataset, n)
    if as_json:
        print_json(found, told=("cli",))
    else:
        OUT.print(as_text(found), markup=False)


def register(app: typer.Typer) -> None:
    """Add the command to an app."""
    app.command(rich_help_panel=PANEL_VERSIONS)(diff)
