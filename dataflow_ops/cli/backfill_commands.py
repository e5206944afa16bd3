"""``backfill JOB`` and ``backfills list | show | pause | resume | cancel``."""

from __future__ import annotations

import getpass
import os
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from dataflow_ops.cli.backfill_progress import BackfillProgress
from dataflow_ops.cli.backfill_views import (
    TOLD,
    count,
    end,
    left_out,
    moment,
    nothing_to_do,
    show_days,
    state_of,
    tell,
    told_when_away,
)
from dataflow_ops.cli.console import OUT, print_json, print_table, told_when_interrupted
from dataflow_ops.cli.options import (
    DEFAULT_HOME,
    PANEL_LOOK,
    PANEL_RUN,
    DatasetOption,
    HomeOption,
    JsonOption,
)
from dataflow_ops.pipeline.flow import LAYERS

app = typer.Typer(no_args_is_help=True, help="Backfills: what was asked for, how far each is, and its end.")

IdArgument = Annotated[
    str, typer.Argument(metavar="ID", help="Id of the backfill, or the start of one; `list` shows them.")
]
WorkersOption = Annotated[
    int | None,
    typer.Option(metavar="N", min=0, help="Worker processes of a day; 0 runs in this one. Default: cores."),
]
ParallelOption = Annotated[
    int,
    typer.Option(
        metavar="N",
        min=1,
        max=32,
        help="Days under way at once: they overlap up to the filter; from then on it is one at a time.",
    ),
]
LocalOption = Annotated[
    bool,
    typer.Option("--local", metavar="", help="Run the days in this process, also where Airflow is up."),
]


def backfill(
    job: Annotated[Path, typer.Argument(metavar="JOB", help="Job file (YAML).")],
    from_: Annotated[str, typer.Option("--from", metavar="DAY", help="First day, as 2026-11-01.")],
    to: Annotated[str, typer.Option("--to", metavar="DAY", help="Last day; it is done as well.")],
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", metavar="", help="Show what would become of each day; write nothing."),
    ] = False,
    reprocess: Annotated[
        str,
        typer.Option(
            metavar="WHICH",
            help="'none': days that were never done. 'failed': failed and cancelled ones too. 'all': every"
            " day again, with this job and these --set.",
        ),
    ] = "none",
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="Change a value of the job file for every day, as section.key=value; may be repeated.",
        ),
    ] = None,
    until: Annotated[
        str | None,
        typer.Option(metavar="LAYER", help=f"Stop each day after this layer: {', '.join(LAYERS)}."),
    ] = None,
    promote: Annotated[
        bool,
        typer.Option("--promote", metavar="", help="Treat versions made with --set like those made without."),
    ] = False,
    urgent: Annotated[
        bool, typer.Option("--urgent", metavar="", help="Go ahead of runs that are not urgent.")
    ] = False,
    workers: WorkersOption = None,
    parallel: ParallelOption = 1,
    local: LocalOption = False,
    home: HomeOption = DEFAULT_HOME,
    as_json: JsonOption = False,
) -> None:
    """Do a stretch of days in order. The same command goes on where it stopped."""
    from dataflow_ops.pipeline.backfill_control import BackfillBook
    from dataflow_ops.pipeline.backfill_drive import airflow_if_up, check, drive
    from dataflow_ops.pipeline.backfill_plan import dry_run as look
    from dataflow_ops.pipeline.backfill_plan import request_of

    request = request_of(
        job,
        from_,
        to,
        reprocess=reprocess,
        overrides=set_ or (),
        until=until,
        promote=promote,
        urgent=urgent,
    )
    cores = os.cpu_count() or 1 if workers is None else workers
    if dry_run:
        show_days(look(request, home, cores), as_json)
        return
    progress = BackfillProgress(quiet=as_json)
    with ExitStack() as stack:
        api = None if local else airflow_if_up(home, progress.note)
        if api is not None:
            stack.enter_context(api)
        check(request, home, api, cores)  # a wrong call makes no folder
        with told_when_away(home):
            book = stack.enter_context(BackfillBook(home, create=True))
            record, plans = book.begin(request, getpass.getuser())
        missing = left_out(plans)
        if record is None:
            nothing_to_do(plans, missing, as_json)
            return
        for line in missing:
            progress.note(line)
        stack.callback(progress.close)
        with told_when_interrupted(), told_when_away(home, record):
            record = drive(book, request, record, api, progress, progress.reporter, cores, parallel)
            progress.close()
            found = book.describe(record)
        end(found, as_json)


@app.command("list")
def list_(
    dataset: DatasetOption = None,
    limit: Annotated[int, typer.Option(metavar="N", min=1, help="How many to show.")] = 20,
    home: HomeOption = DEFAULT_HOME,
    as_json: JsonOption = False,
) -> None:
    """All backfills, newest first, with how many of their days are done."""
    from dataflow_ops.pipeline.backfill_control import BackfillBook

    with BackfillBook(home) as book:
        rows = book.list(dataset, limit)
    if as_json:
        print_json(rows, told=TOLD)
        return
    if not rows:
        OUT.print("No backfills yet; `dataflow backfill JOB --from DAY --to DAY` begins one.", markup=False)
        return
    columns = ("backfill", "dataset", "from", "to", "state", "done", "failed", "days", "began", "detail")
    print_table(
        "",
        columns,
        [
            (
                row["backfill"],
                row["dataset"],
                row["from"],
                row["to"],
                state_of(row),
                count(row, "DONE", "SKIPPED"),
                count(row, "FAILED"),
                len(row["days"]),
                moment(row["created_at"]),
                row["detail"],
            )
            for row in rows
        ],
        told=("detail",),
    )


@app.command()
def show(backfill_id: IdArgument, home: HomeOption = DEFAULT_HOME, as_json: JsonOption = False) -> None:
    """One backfill: each of its days, the run that does it, and what it waits for."""
    from dataflow_ops.pipeline.backfill_control import BackfillBook

    with BackfillBook(home) as book:
        found = book.describe(book.find(backfill_id))
    if as_json:
        print_json(found, told=TOLD)
        return
    tell(found)


@app.command()
def pause(
    backfill_id: IdArgument,
    why: Annotated[str, typer.Option(metavar="TEXT", help="Shown to whoever finds it paused.")] = "",
    home: HomeOption = DEFAULT_HOME,
    as_json: JsonOption = False,
) -> None:
    """Begin no further day; the day under way stops at its next batch boundary. Nothing is lost."""
    from dataflow_ops.pipeline.backfill_control import BackfillBook

    with BackfillBook(home) as book:
        record = book.pause(backfill_id, getpass.getuser(), why)
        found = book.describe(record)
    if as_json:
        print_json(found, told=TOLD)
        return
    OUT.print(
        f"{record.backfill_id} is paused. Go on with: dataflow backfills resume {record.backfill_id}",
        markup=False,
    )


@app.command()
def resume(
    backfill_id: IdArgument,
    workers: WorkersOption = None,
    parallel: ParallelOption = 1,
    local: LocalOption = False,
    home: HomeOption = DEFAULT_HOME,
    as_json: JsonOption = False,
) -> None:
    """Go on with a backfill that was paused, stopped or killed, in this process."""
    from dataflow_ops.pipeline.backfill_control import BackfillBook
    from dataflow_ops.pipeline.backfill_drive import airflow_if_up, drive

    cores = os.cpu_count() or 1 if workers is None else workers
    progress = BackfillProgress(quiet=as_json)
    with ExitStack() as stack:
        book = stack.enter_context(BackfillBook(home))
        book.find(backfill_id)
        api = None if local else airflow_if_up(home, progress.note)
        if api is not None:
            stack.enter_context(api)
        record, request = book.resume(backfill_id, getpass.getuser())
        stack.callback(progress.close)
        with told_when_interrupted(), told_when_away(home, record):
            record = drive(book, request, record, api, progress, progress.reporter, cores, parallel)
            progress.close()
            found = book.describe(record)
        end(found, as_json)


@app.command()
def cancel(backfill_id: IdArgument, home: HomeOption = DEFAULT_HOME, as_json: JsonOption = False) -> None:
    """End a backfill: the day under way is stopped, later ones are not begun, versions that exist stay."""
    from dataflow_ops.pipeline.backfill_control import BackfillBook
    from dataflow_ops.pipeline.backfill_drive import airflow_if_up

    with BackfillBook(home) as book, ExitStack() as stack:
        book.find(backfill_id)
        api = airflow_if_up(home, lambda _: None)
        if api is not None:
            stack.enter_context(api)
        record = book.cancel(backfill_id, getpass.getuser(), api)
        found = book.describe(record)
    if as_json:
        print_json(found, told=TOLD)
        return
    stopped = count(found, "CANCELLED")
    OUT.print(f"{record.backfill_id} is cancelled; {stopped} of its days were not done.", markup=False)


def register(root: typer.Typer) -> None:
    """Add the commands to an app."""
    root.command(rich_help_panel=PANEL_RUN)(backfill)
    root.add_typer(app, name="backfills", rich_help_panel=PANEL_LOOK)
