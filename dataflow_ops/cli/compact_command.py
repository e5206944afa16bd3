"""``versions compact``: a version and all that it builds on become one."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from dataflow_ops.cli.console import ConsoleReporter, print_end, told_when_interrupted
from dataflow_ops.cli.options import DEFAULT_HOME, DatasetOption, HomeOption, JsonOption
from dataflow_ops.errors import ConfigError


def compact(
    of: Annotated[
        str | None,
        typer.Argument(
            metavar="JOB|VERSION",
            help="Job file, whose current version is meant, or a version's id or the start of one; the"
            " current version when left out.",
        ),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(metavar="N", min=0, help="Worker processes; 0 runs in this one. Default: cores."),
    ] = None,
    dataset: DatasetOption = None,
    home: HomeOption = DEFAULT_HOME,
    as_json: JsonOption = False,
) -> None:
    """Put a version and all that it builds on together: the same rows in the same order, in few shards."""
    from dataflow_ops.pipeline.compact import compact as run

    version, name = of, dataset
    if of is not None and (Path(of).is_file() or Path(of).suffix in (".yaml", ".yml")):
        from dataflow_ops.job_file import load_job

        if not Path(of).is_file():
            raise ConfigError(f"{of}: there is no job file of this name")
        version, name = None, load_job(Path(of), ()).dataset.id
        if dataset not in (None, name):
            raise ConfigError(f"--dataset {dataset}: {of} is the job of '{name}'; leave out one of them")
    with told_when_interrupted(as_json):
        done = run(
            home,
            version,
            os.cpu_count() or 1 if workers is None else workers,
            ConsoleReporter(quiet=as_json),
            dataset=name,
        )
    print_end(done, as_json)
