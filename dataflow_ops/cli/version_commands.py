"""``versions list | show | verify | approve | rollback``."""

from __future__ import annotations

from typing import Annotated

import typer

from dataflow_ops.cli.console import OUT, print_json, print_table
from dataflow_ops.cli.options import DEFAULT_HOME, EXIT_FAILED, HomeOption, JsonOption

app = typer.Typer(no_args_is_help=True, help="Published versions of data sets.")

DatasetOption = Annotated[
    str | None, typer.Option("--dataset", help="Data set; may be left out where there is one.")
]
VersionArgument = Annotated[
    str | None, typer.Argument(help="Version id, or the start of one; the current one when left out.")
]


@app.command("list")
def list_(
    dataset: DatasetOption = None, home: HomeOption = DEFAULT_HOME, as_json: JsonOption = False
) -> None:
    """All versions, newest last; the current one is marked."""
    from dataflow_ops.pipeline.versions import open_versions

    with open_versions(home) as versions:
        rows = versions.list(dataset)
    if as_json:
        print_json(rows)
        return
    columns = ("current", "dataset", "version", "state", "documents", "tokens", "shards", "published")
    print_table(
        "",
        columns,
        [
            tuple("*" if c == "current" and r[c] else "" if c == "current" else r[c] for c in columns)
            for r in rows
        ],
    )


@app.command()
def show(
    version: VersionArgument = None, home: HomeOption = DEFAULT_HOME, as_json: JsonOption = False
) -> None:
    """One version: what it holds, by domain, and where it lies."""
    from dataflow_ops.pipeline.versions import open_versions

    with open_versions(home) as versions:
        found = versions.show(version)
    if as_json:
        print_json(found)
        return
    for name, value in found["facts"].items():
        OUT.print(f"{name:<14} {value}", markup=False)
    print_table("Domains", ("domain", "documents", "tokens"), found["domains"])


@app.command()
def verify(
    version: VersionArgument = None, home: HomeOption = DEFAULT_HOME, as_json: JsonOption = False
) -> None:
    """Check every shard's bytes against the manifest, and the manifest against itself."""
    from dataflow_ops.pipeline.versions import open_versions

    with open_versions(home) as versions:
        code, output = versions.verify(version)
    if as_json:
        print_json({"ok": code == 0, "output": output})
    else:
        OUT.print(output, markup=False)
    if code:
        raise typer.Exit(EXIT_FAILED)


@app.command()
def approve(
    version: VersionArgument = None, home: HomeOption = DEFAULT_HOME, as_json: JsonOption = False
) -> None:
    """Let a version that waits for a person become current."""
    from dataflow_ops.pipeline.versions import open_versions

    with open_versions(home) as versions:
        _said(versions.make_current(version, approve=True), as_json)


@app.command()
def rollback(
    version: Annotated[str, typer.Argument(help="Version id to go back to.")],
    home: HomeOption = DEFAULT_HOME,
    as_json: JsonOption = False,
) -> None:
    """Make an older version current again. Nothing is deleted."""
    from dataflow_ops.pipeline.versions import open_versions

    with open_versions(home) as versions:
        _said(versions.make_current(version, approve=False), as_json)


def _said(version_id: str, as_json: bool) -> None:
    if as_json:
        print_json({"current": version_id})
    else:
        OUT.print(f"Current version: {version_id}", markup=False)
