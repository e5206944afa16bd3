"""``run``, ``status``, ``runs``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
import yaml

from dataflow_ops.cli.console import (
    OUT,
    ConsoleReporter,
    print_end,
    print_json,
    print_steps,
    print_table,
    told_when_interrupted,
)
from dataflow_ops.cli.options import (
    DEFAULT_HOME,
    PANEL_LOOK,
    PANEL_RUN,
    DatasetOption,
    HomeOption,
    JsonOption,
)
from dataflow_ops.cli.source_option import parse_source
from dataflow_ops.errors import ConfigError
from dataflow_ops.job_file import load_job
from dataflow_ops.pipeline.flow import LAYERS


def run(
    job: Annotated[Path, typer.Argument(metavar="JOB", help="Job file (YAML).")],
    source: Annotated[
        list[str] | None,
        typer.Option(
            "--source",
            metavar="PATH",
            help="Add a source: PATH, or KIND:PATH with files, jsonl, parquet, warc, git or http; @DOMAIN"
            " behind it is what the mix counts it as, else 'web'.",
        ),
    ] = None,
    until: Annotated[
        str | None,
        typer.Option(metavar="LAYER", help=f"Stop after this layer: {', '.join(LAYERS)}."),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=0,
            help="Worker processes; 0 runs in this one. Default: one for every 4 MB of input, at most cores;"
            " none below 8 MB.",
        ),
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="Change a value of the job file, as section.key=value; may be repeated.",
        ),
    ] = None,
    mode: Annotated[
        str,
        typer.Option(
            metavar="MODE",
            help="'full' makes the version from all sources; 'incremental' one that builds on the current"
            " version, with a day's files, or with those that it did not have.",
        ),
    ] = "full",
    date: Annotated[
        str | None,
        typer.Option(
            "--date",
            metavar="DAY",
            help="Day of the data, as 2026-11-30; default today in the data set's time zone.",
        ),
    ] = None,
    urgent: Annotated[
        bool, typer.Option("--urgent", metavar="", help="Go ahead of runs that are not urgent.")
    ] = False,
    promote: Annotated[
        bool,
        typer.Option("--promote", metavar="", help="Let a version that was made with --set become current."),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", metavar="", help="List sources and chunks; write nothing.")
    ] = False,
    home: HomeOption = DEFAULT_HOME,
    as_json: JsonOption = False,
) -> None:
    """Run a job: raw sources to a published version. Run it again to go on where it stopped."""
    from dataflow_ops.pipeline.run import dry_run_of, run_job

    if job.is_dir():
        raise ConfigError(f"{job} is a folder; a job file names it as a source, or --source PATH beside one")
    if not job.is_file():
        raise ConfigError(
            f"{job}: there is no job file of this name. The shortest one is\n"
            "dataset: {id: NAME}\n"
            "with --source PATH on the command line; jobs/demo.yaml is a longer example"
        )
    settings = load_job(job, readable(set_ or ()), [parse_source(s) for s in source or ()])
    if dry_run:
        found = dry_run_of(settings, until, workers, mode=mode, data_date=date or "", home_path=home)
        _show_listing(found, as_json)
        return
    with told_when_interrupted(as_json):
        result = run_job(
            settings,
            home,
            mode=mode,
            until=until,
            workers=workers,
            reporter=ConsoleReporter(quiet=as_json),
            data_date=date or "",
            job_name=job.stem,
            promote=promote or not set_,
            urgent=urgent,
        )
    print_end(result, as_json)


def status(
    run_id: Annotated[
        str | None, typer.Argument(metavar="RUN", help="Run; the newest when left out.")
    ] = None,
    dataset: DatasetOption = None,
    home: HomeOption = DEFAULT_HOME,
    as_json: JsonOption = False,
) -> None:
    """Where a run stands: by step, what is done, what runs where, what is dead."""
    from dataflow_ops.pipeline.status import status_of

    found: dict[str, Any] = status_of(home, run_id, dataset)
    if as_json:
        print_json(found, told=("sentence",))
        return
    OUT.print(found["sentence"], markup=False)
    print_steps(found["steps"], tasks=True)
    for line in found["running"]:
        OUT.print(line, markup=False)


def runs(
    dataset: DatasetOption = None,
    limit: Annotated[int, typer.Option(metavar="N", min=1, help="How many to show.")] = 20,
    home: HomeOption = DEFAULT_HOME,
    as_json: JsonOption = False,
) -> None:
    """All runs, newest first."""
    from dataflow_ops.pipeline.status import runs_of

    rows, total = runs_of(home, dataset, limit)
    if as_json:
        print_json(rows, told=("detail",))
        return
    if not rows:
        OUT.print("No runs yet; `dataflow run JOB` starts one.", markup=False)
        return
    columns = ("run", "dataset", "job", "state", "started", "ended", "detail")
    for row in rows:
        row["detail"] = " ".join((row["detail"] or "").split())
    print_table("", columns, [tuple(row[c] for c in columns) for row in rows], told=("detail",))
    if total > len(rows):
        OUT.print(f"{len(rows):,} of {total:,} runs; --limit {total} shows all.")


def register(app: typer.Typer) -> None:
    """Add the commands to an app."""
    for command in (run, status, runs):
        app.command(rich_help_panel=PANEL_LOOK if command in (status, runs) else PANEL_RUN)(command)


def readable(pairs: Sequence[str]) -> Sequence[str]:
    """Values of ``--set``, unless one can't be read: what a shell makes of brackets is told as that.

    Raises:
        ConfigError: a value is no YAML.
    """
    for pair in pairs:
        try:
            yaml.safe_load(pair.partition("=")[2])
        except yaml.YAMLError as e:
            raise ConfigError(
                f"--set {pair!r}: the value can't be read; write it as in a job file, and quote it for the"
                " shell if it holds brackets or blanks"
            ) from e
    return pairs


def _show_listing(found: dict[str, Any], as_json: bool) -> None:
    columns = ("source", "kind", "domain", "files", "bytes", "chunks")
    if as_json:
        print_json(found)
        return
    print_table("Sources", columns, [tuple(row[c] for c in columns) for row in found["sources"]])
    for note in found["notes"]:
        OUT.print(note, markup=False)
    OUT.print("Nothing was written. Leave out --dry-run to run it.")
