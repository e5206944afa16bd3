"""``samples links``: where the files of an export can be fetched."""

from __future__ import annotations

from typing import Annotated

import typer

from dataflow_ops.cli.console import OUT, print_json
from dataflow_ops.cli.options import DEFAULT_HOME, HomeOption, JsonOption
from dataflow_ops.cli.samples_home import opened


def register(app: typer.Typer) -> None:
    """Add the command to ``dataflow samples``."""
    app.command()(links)


def links(
    task_id: Annotated[str, typer.Argument(metavar="TASK", help="An export that is done.")],
    hours: Annotated[
        float, typer.Option(metavar="N", min=0.01, max=168.0, help="How long the links hold; at most a week.")
    ] = 24.0,
    home: HomeOption = DEFAULT_HOME,
    as_json: JsonOption = False,
) -> None:
    """Links to the files of an export, for people without an account; paths where they lie in a folder."""
    from dataflow_ops.samples.export.links import links_of
    from dataflow_ops.storage.opening import open_store

    with opened(home) as (place, store):
        found = links_of(store, open_store(place.root), place.root, task_id, int(hours * 3600))
    if as_json:
        print_json(found)
        return
    for link in found.values():
        OUT.print(link, markup=False)
