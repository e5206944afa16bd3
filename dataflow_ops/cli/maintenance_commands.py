"""``maintenance``: clear away what nothing reaches any more."""

from __future__ import annotations

from typing import Annotated

import typer

from dataflow_ops.cli.console import OUT, counted, print_json
from dataflow_ops.cli.options import DEFAULT_HOME, PANEL_MACHINE, HomeOption, JsonOption


def maintenance(
    dry_run: Annotated[
        bool, typer.Option("--dry-run", metavar="", help="Say what would go; remove nothing.")
    ] = False,
    grace_hours: Annotated[
        float,
        typer.Option(metavar="H", min=0, help="What is younger stays: a run may be about to use it."),
    ] = 24.0,
    keep_versions: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="Keep so many versions of each data set instead of what output.retention says.",
        ),
    ] = None,
    home: HomeOption = DEFAULT_HOME,
    as_json: JsonOption = False,
) -> None:
    """Remove left-over files, versions past output.retention, and outputs that nothing reaches."""
    from dataflow_ops.pipeline.home import open_home
    from dataflow_ops.pipeline.maintenance import maintain

    told: list[str] = []
    found = maintain(
        open_home(home, create=False),
        grace_hours=grace_hours,
        keep_versions=keep_versions,
        dry_run=dry_run,
        log=told.append,
    )
    if as_json:
        print_json(found)
        return
    for line in told:
        OUT.print(line, markup=False)
    for name, what in (
        ("compacted", "versions that build on many days, compacted"),
        ("versions", "versions past retention"),
        ("tasks", "tasks' outputs that no run holds"),
        ("orphans", "files that no task knows"),
        ("folders", "version folders that were never recorded"),
        ("staged", "tasks' staged rows that no run holds"),
        ("temporary", "temporary and scratch files of killed processes"),
        ("runs", "old runs whose tasks were let go (their sums: runs/ in the storage root)"),
        ("events", "events that were sent more than 30 days ago"),
    ):
        value = found[name]
        OUT.print(f"{len(value) if isinstance(value, list) else value:>9,} {what}", markup=False)
    # A shard's room comes free with its last name, which a rehearsal leaves.
    files, size = counted(found["files"], "file"), counted(found["bytes"], "byte")
    line = (
        f"{files} would be removed, at least {size} freed." if dry_run else f"{files} removed, {size} freed."
    )
    OUT.print(line, markup=False)


def register(app: typer.Typer) -> None:
    """Add the command to an app."""
    app.command(rich_help_panel=PANEL_MACHINE)(maintenance)
