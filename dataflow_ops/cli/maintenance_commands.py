"""``maintenance``: clear away what nothing reaches any more."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from dataflow_ops.cli.console import OUT, counted, print_json, watched
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
    cold: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            envvar="DATAFLOW_COLD",
            help="Existing folder on cheaper storage: what is old and seldom read is moved there, now and by"
            " every later maintenance of this home.",
        ),
    ] = None,
    cold_after_days: Annotated[
        float,
        typer.Option(
            metavar="D",
            min=0,
            envvar="DATAFLOW_COLD_AFTER_DAYS",
            help="So old is what is moved; only where the home has a cold folder.",
        ),
    ] = 7.0,
    home: HomeOption = DEFAULT_HOME,
    as_json: JsonOption = False,
) -> None:
    """Remove left-over files, versions past output.retention, and outputs that nothing reaches."""
    from dataflow_ops.pipeline.home import open_home
    from dataflow_ops.pipeline.maintenance import maintain

    told: list[str] = []
    opened = open_home(home, create=False)
    if cold is not None:
        opened = replace(opened, cold=cold.absolute())
    with watched("moving", quiet=as_json) as progress:
        found = maintain(
            opened,
            grace_hours=grace_hours,
            keep_versions=keep_versions,
            cold_after_days=cold_after_days,
            dry_run=dry_run,
            log=told.append,
            progress=progress,
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
    copied, size = counted(found["copied"], "file"), counted(found["copied_bytes"], "byte")
    if found["copied"] and dry_run:
        OUT.print(f"{copied} would be copied to the cold folder, {size}.", markup=False)
    elif found["copied"]:
        after = f"the first copies go after {grace_hours:g} hours"
        OUT.print(f"{copied} copied to the cold folder, {size}; {after}.", markup=False)
    if found["moved"]:
        moved, size = counted(found["moved"], "file"), counted(found["moved_bytes"], "byte")
        OUT.print(f"{moved} now in the cold folder alone, {size} freed in the root.", markup=False)
    if found["damaged"]:
        OUT.print(f"{counted(found['damaged'], 'file')} not moved: damaged; see above.", markup=False)


def register(app: typer.Typer) -> None:
    """Add the command to an app."""
    app.command(rich_help_panel=PANEL_MACHINE)(maintenance)
