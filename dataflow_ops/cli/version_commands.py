"""``versions list | show | verify | approve | reject | rollback | compact | announce | history``."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Annotated, Any

import typer

from dataflow_ops.cli.compact_command import compact
from dataflow_ops.cli.console import OUT, print_json, print_table
from dataflow_ops.cli.options import DEFAULT_HOME, EXIT_FAILED, DatasetOption, HomeOption, JsonOption
from dataflow_ops.pipeline.announce import Announced

app = typer.Typer(no_args_is_help=True, help="Published versions of data sets.")

INSIDE = "; the next full run makes a version that contains it"
BECAME = {"waiting": "built, waits", "increment": "published as an increment"}
"""What publishing a version made of it, where that is not the current one."""
NoteOption = Annotated[
    str, typer.Option("--note", "--why", metavar="TEXT", help="Why; kept in the version's history.")
]
VersionArgument = Annotated[
    str | None,
    typer.Argument(metavar="VERSION", help="Version id, or the start of one; the current one when left out."),
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
        print_json(rows, told=("waits",))
        return
    if not rows:
        OUT.print("No version has been published here yet; `dataflow run JOB` makes one.", markup=False)
        return
    columns = (
        "current",
        "dataset",
        "version",
        "holds",
        "state",
        "documents",
        "tokens",
        "shards",
        "published",
    )
    print_table(
        "",
        columns,
        [
            tuple("*" if c == "current" and r[c] else "" if c == "current" else r[c] for c in columns)
            for r in rows
        ],
    )
    for row in rows:
        if row["waits"]:
            OUT.print(f"{row['version']} waits for a person: {row['waits']}", markup=False)


@app.command()
def show(
    version: VersionArgument = None,
    dataset: DatasetOption = None,
    home: HomeOption = DEFAULT_HOME,
    as_json: JsonOption = False,
) -> None:
    """One version: what it holds, by domain, and where it lies."""
    from dataflow_ops.pipeline.versions import open_versions

    with open_versions(home) as versions:
        found = versions.show(version, dataset)
    line = found.pop("fates_line")
    if as_json:
        print_json(found, told=("waits", "notes"))
        return
    for name, value in (
        ("version", found["version"] + (" (current)" if found["current"] else "")),
        ("dataset", found["dataset"]),
        ("holds", found["holds"] + (INSIDE if found["increment"] else "")),
        *_below(found),
        ("state", found["state"] + (f": {found['waits']}" if found["waits"] else "")),
        ("run", found["run"]),
        ("fates", line),
        ("documents", f"{found['documents']:,}"),
        ("tokens", f"{found['tokens']:,}" + (" (estimated)" if found["tokens_estimated"] else "")),
        ("bytes", f"{found['bytes']:,}"),
        ("shards", f"{found['shards']:,}"),
        ("dead letters", f"{found['dead_letters']:,}"),
        ("manifest", f"SHA-256 {found['manifest_sha256']}"),
        ("folder", found["folder"]),
        *(("note", note) for note in found["notes"]),
    ):
        OUT.print(f"{name:<14} {value}", markup=False)
    columns = ("domain", "documents", "tokens")
    print_table("Domains", columns, [tuple(row[c] for c in columns) for row in found["domains"]])


def _below(found: dict[str, Any]) -> list[tuple[str, str]]:
    """What a version that builds on others has of its own, and where the others are."""
    if not found["base"]:
        return []
    own = f"{found['own']:,} documents in its own shards; {found['replaced']:,} of those below replaced"
    return [("own", own), *(("below", folder) for folder in found["folders"][:-1])]


@app.command()
def verify(
    version: VersionArgument = None,
    dataset: DatasetOption = None,
    home: HomeOption = DEFAULT_HOME,
    as_json: JsonOption = False,
) -> None:
    """Check every shard's bytes against the manifest, and the manifest against itself."""
    from dataflow_ops.pipeline.versions import open_versions

    with open_versions(home) as versions:
        code, output = versions.verify(version, dataset)
    if as_json:
        print_json({"ok": code == 0, "output": output})
    else:
        OUT.print(output, markup=False)
    if code:
        raise typer.Exit(EXIT_FAILED)


@app.command()
def approve(
    version: Annotated[
        str | None,
        typer.Argument(
            metavar="VERSION",
            help="Version id, or the start of one; left out: the newest that waits and was not overtaken.",
        ),
    ] = None,
    dataset: DatasetOption = None,
    note: NoteOption = "",
    anyway: Annotated[
        bool,
        typer.Option(
            "--anyway", help="Also a version that was overtaken: what became current without it leaves."
        ),
    ] = False,
    home: HomeOption = DEFAULT_HOME,
    as_json: JsonOption = False,
) -> None:
    """Let a version that waits become current; an increment is published, and never becomes current."""
    from dataflow_ops.pipeline.versions import open_versions

    with open_versions(home) as versions:
        chosen, beforehand = versions.approval(version, dataset, anyway=anyway)
        if not as_json:
            OUT.print(beforehand, markup=False)
        approved = versions.approve(chosen, dataset, note=note, anyway=anyway)
        increment = bool(versions.show(approved, dataset)["increment"])
        lacking = versions.lacking(approved, dataset)
    told = announced(home, approved, dataset)
    if increment and not as_json:
        OUT.print(f"Published as an increment: {approved}. The current version stays.", markup=False)
        _said_event(told)
    elif increment:
        print_json({"published": approved, "increment": True, "event": told.how})
    elif as_json:
        print_json({"current": approved, "event": told.how, "lacking": list(lacking)})
    else:
        _said(approved, told, as_json)
        for what in lacking:
            OUT.print(
                f"Not in it yet: {what}, published while it was made; the next day's run takes them.",
                markup=False,
            )


@app.command()
def reject(
    version: Annotated[
        str | None,
        typer.Argument(
            metavar="VERSION", help="Version id, or the start of one; the newest that waits when left out."
        ),
    ] = None,
    dataset: DatasetOption = None,
    note: NoteOption = "",
    home: HomeOption = DEFAULT_HOME,
    as_json: JsonOption = False,
) -> None:
    """Refuse a version: it can't become current, unless it is approved after all. Nothing is deleted."""
    from dataflow_ops.pipeline.versions import open_versions

    with open_versions(home) as versions:
        rejected = versions.reject(version, dataset, note=note)
    if as_json:
        print_json({"rejected": rejected})
    else:
        OUT.print(f"Rejected: {rejected}. The current version stays.", markup=False)


@app.command()
def rollback(
    version: Annotated[str, typer.Argument(metavar="VERSION", help="Version id to go back to.")],
    dataset: DatasetOption = None,
    note: NoteOption = "",
    home: HomeOption = DEFAULT_HOME,
    as_json: JsonOption = False,
) -> None:
    """Make an older version current again. Nothing is deleted."""
    from dataflow_ops.pipeline.versions import open_versions

    with open_versions(home) as versions:
        back = versions.rollback(version, dataset, note=note)
    _said(back, announced(home, back, dataset), as_json)


app.command()(compact)


@app.command()
def announce(
    version: VersionArgument = None,
    dataset: DatasetOption = None,
    home: HomeOption = DEFAULT_HOME,
    as_json: JsonOption = False,
) -> None:
    """Send the asset event of a published version: DAGs that wait for the data set start on it."""
    told = announced(home, version, dataset)
    if as_json:
        print_json({"event": told.how, "message": told.message}, told=("message",))
    else:
        OUT.print(told.message or "This home has no Airflow: there is nobody to tell.", markup=False)
    if told.how not in ("sent", "by_dag_run"):
        raise typer.Exit(EXIT_FAILED)


@app.command()
def history(
    dataset: DatasetOption = None, home: HomeOption = DEFAULT_HOME, as_json: JsonOption = False
) -> None:
    """What runs and people decided about versions, newest first."""
    from dataflow_ops.pipeline.version_states import became
    from dataflow_ops.pipeline.versions import open_versions

    with open_versions(home) as versions:
        rows = versions.events(dataset)
    if as_json:
        print_json(rows)
        return
    if not rows:
        OUT.print("Nothing has been decided about a version here yet.", markup=False)
        return
    columns = ("when", "dataset", "version", "action", "who", "note")
    told = [
        {
            **row,
            "when": _moment(row["at"]),
            # That a version was published doesn't always make it current.
            "action": BECAME.get(became(row["note"]), row["action"])
            if row["action"] == "published"
            else row["action"],
        }
        for row in rows
    ]
    print_table("", columns, [tuple(row[c] for c in columns) for row in told])


def _moment(seconds: float) -> str:
    """A moment for people."""
    return dt.datetime.fromtimestamp(seconds, dt.UTC).strftime("%Y-%m-%d %H:%M UTC")


def announced(home: Path, version: str | None, dataset: str | None) -> Announced:
    """Let Airflow know of a version that somebody let through."""
    from dataflow_ops.pipeline.announce import announce

    return announce(home, version, dataset)


def _said(version_id: str, told: Announced, as_json: bool) -> None:
    if as_json:
        print_json({"current": version_id, "event": told.how})
    else:
        OUT.print(f"Current version: {version_id}", markup=False)
        _said_event(told)


def _said_event(told: Announced) -> None:
    if told.message:
        OUT.print(told.message, markup=False)
