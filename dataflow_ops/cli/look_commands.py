"""``lineage``, ``audit``, ``report``, ``doctor``: looking at what a run did."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from dataflow_ops.cli.console import OUT, counted, print_json, print_table
from dataflow_ops.cli.options import (
    DEFAULT_HOME,
    EXIT_FAILED,
    PANEL_LOOK,
    PANEL_MACHINE,
    PANEL_VERSIONS,
    DatasetOption,
    HomeOption,
    JsonOption,
)
from dataflow_ops.errors import ConfigError

RunOption = Annotated[str | None, typer.Option("--run", metavar="RUN", help="Run; the newest when left out.")]


def lineage(
    document: Annotated[
        str, typer.Argument(metavar="DOCUMENT", help="Document id, the start of one, or its URL.")
    ],
    run_id: RunOption = None,
    dataset: DatasetOption = None,
    home: HomeOption = DEFAULT_HOME,
    as_json: JsonOption = False,
) -> None:
    """Where a document came from and what became of it: kept, rejected, duplicate, not drawn or dead."""
    from dataflow_ops.pipeline.look import lineage_of

    text, data = lineage_of(home, run_id, document, dataset)
    if as_json:
        print_json(data)
    else:
        OUT.print(Text(text))


def audit(
    of: Annotated[
        str | None,
        typer.Argument(
            metavar="RUN|VERSION",
            help="Run; or a version's id or the start of one, for all runs that made it and those below it;"
            " the newest run when left out.",
        ),
    ] = None,
    rule: Annotated[
        str | None, typer.Option(metavar="RULE", help="Only this rule ('exact', 'near', 'language' too).")
    ] = None,
    n: Annotated[
        int, typer.Option("--n", "-n", metavar="N", min=1, help="How many removed documents to draw.")
    ] = 50,
    seed: Annotated[int, typer.Option(metavar="N", help="Another seed draws other documents.")] = 0,
    csv: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a CSV file instead ('-': standard output).")
    ] = None,
    keep: Annotated[
        list[str] | None,
        typer.Option(metavar="DOCUMENT", help="Say that this one was wrongly removed; may be repeated."),
    ] = None,
    drop: Annotated[
        list[str] | None,
        typer.Option(metavar="DOCUMENT", help="Say that it was rightly removed; may be repeated."),
    ] = None,
    dataset: DatasetOption = None,
    home: HomeOption = DEFAULT_HOME,
    as_json: JsonOption = False,
) -> None:
    """A seeded sample, even over rules and sources, of what was removed: text, value and bound."""
    import dataclasses

    from dataflow_ops.cli.audit_words import give_verdicts, verdicts_of
    from dataflow_ops.observe.audit import to_csv, to_table
    from dataflow_ops.pipeline.audited import audit_of, run_named

    run_id = run_named(home, of, dataset)
    if keep or drop:
        give_verdicts(home, run_id, dataset, keep or [], drop or [], as_json)
        return
    rows = audit_of(home, of or run_id, rule, n, seed, dataset)
    said = verdicts_of(home, run_id, dataset)
    if as_json:
        print_json([{**dataclasses.asdict(row), "review": said.get((row.doc_id, row.rule))} for row in rows])
    elif csv is not None:
        if str(csv) == "-":
            typer.echo(to_csv(rows), nl=False)
        else:
            try:
                csv.write_text(to_csv(rows), encoding="utf-8")
            except OSError as e:
                raise ConfigError(f"--csv {csv}: can't be written ({e.strerror})") from e
            OUT.print(f"{counted(len(rows), 'row')} written to {csv}", markup=False)
    elif rows:
        words = {key: f"{word['verdict']} ({word['who']})" for key, word in said.items()}
        OUT.print(to_table(rows, said=words))
    else:
        by = f" by rule '{rule}'" if rule else ""
        OUT.print(
            f"{of or f'Run {run_id}'} removed nothing{by}. Another one: dataflow audit RUN; `dataflow runs`"
            " lists them.",
            markup=False,
        )


def report(
    version: Annotated[
        str | None, typer.Argument(metavar="VERSION", help="Version; the current one when left out.")
    ] = None,
    dataset: DatasetOption = None,
    home: HomeOption = DEFAULT_HOME,
    as_json: JsonOption = False,
) -> None:
    """Print where a version's report.html lies."""
    from dataflow_ops.pipeline.versions import open_versions

    with open_versions(home) as versions:
        path = versions.report_path(version, dataset)
    if as_json:
        print_json({"report": str(path)})
    else:
        OUT.print(str(path), markup=False)


def doctor(home: HomeOption = DEFAULT_HOME, as_json: JsonOption = False) -> None:
    """Check what DataFlow needs on this machine, and how much its home holds, by tier and kind."""
    import dataclasses

    from dataflow_ops.pipeline.doctor import check

    rows = check(home)
    if as_json:
        print_json(
            [
                {"check": row.what, "ok": row.ok, "detail": row.detail}
                | ({} if row.stored is None else dataclasses.asdict(row.stored))
                for row in rows
            ],
            told=("detail",),
        )
    else:
        cells = [(row.what, row.ok, row.detail) for row in rows]
        print_table("", ("check", "ok", "detail"), cells, told=("detail",))
    if not all(row.ok for row in rows):
        raise typer.Exit(EXIT_FAILED)


def register(app: typer.Typer) -> None:
    """Add the commands to an app."""
    for command in (lineage, audit):
        app.command(rich_help_panel=PANEL_LOOK)(command)
    app.command(rich_help_panel=PANEL_VERSIONS)(report)
    app.command(rich_help_panel=PANEL_MACHINE)(doctor)
