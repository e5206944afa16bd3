"""``whatif``: other bounds of the filter, answered from what a run stored."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from dataflow_ops.cli.console import OUT, counted, print_json, print_table, watched
from dataflow_ops.cli.options import DEFAULT_HOME, PANEL_LOOK, HomeOption, JsonOption
from dataflow_ops.cli.run_commands import readable

_SHOWN = 20
"""Lines of a table for people; --json has all."""


def whatif(
    job: Annotated[Path, typer.Argument(metavar="JOB", help="Job file (YAML).")],
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="A bound or rule of the filter, as clean.quality_rules.KEY=VALUE; may be repeated.",
        ),
    ] = None,
    run_id: Annotated[
        str | None,
        typer.Option(
            "--run", metavar="RUN", help="Run to ask; the data set's newest finished full run when left out."
        ),
    ] = None,
    home: HomeOption = DEFAULT_HOME,
    as_json: JsonOption = False,
) -> None:
    """What the filter would keep and refuse with other bounds; runs nothing and changes nothing."""
    from dataflow_ops.pipeline.whatif import what_if
    from dataflow_ops.pipeline.whatif_settings import Question

    question = Question.of(job, readable(set_ or ()))
    with watched("whatif", quiet=as_json) as progress:
        found = what_if(home, question, run_id, progress)
    if as_json:
        print_json(found)
    else:
        _tell(found)


def _tell(found: dict[str, Any]) -> None:
    say = [f"Run {found['told']}, {counted(found['documents'], 'document')}"]
    say += [f"  {row['key']}: {_shown(row['old'])} -> {_shown(row['new'])}" for row in found["settings"]]
    if not found["settings"]:
        say.append("  no bound differs from the run's; --set changes one")
    say.append(
        f"The filter would keep {found['kept_after']:,} instead of {found['kept_before']:,}:"
        f" {found['gained']:,} gained, {found['lost']:,} lost"
        + (f"; {found['other_rule']:,} refused by another rule" if found["other_rule"] else "")
        + "."
    )
    anew = found["measured_anew"]
    say.append(
        f"{counted(anew, 'document')} measured anew; stored statistics decided the others."
        if anew
        else "Stored statistics decided all of them."
    )
    OUT.print("\n".join([*say, *found["notes"]]), markup=False)
    if not found["moves"]:
        return
    moves = [(m["from"] or "(kept)", m["to"] or "(kept)", m["documents"]) for m in found["moves"]]
    _table("Rule by rule", ("from", "to", "documents"), moves)
    groups = [
        (
            row["domain"],
            row["language"] + (" (script)" if row["by"] == "script" else ""),
            *(row[key] for key in ("documents", "kept_before", "kept_after", "gained", "lost")),
        )
        for row in found["groups"]
    ]
    heads = ("domain", "language", "documents", "kept before", "kept then", "gained", "lost")
    _table("By domain and language", heads, groups)
    if found["examples"]:
        OUT.print("\nExamples", markup=False)
    for row in found["examples"]:
        told = (
            f"{row['change']}  {row['doc_id']}  {row['source_id']}  {row['rule']}"
            f" {_number(row['value'], 'not measurable')}"
            f" ({row['side']} bound {_number(row['old_bound'])} -> {_number(row['new_bound'])})\n"
            f"    {_line(row['text'])}"
        )
        OUT.print(Text(told))
    OUT.print(f"\n{found['downstream']}", markup=False)


def _table(title: str, heads: tuple[str, ...], rows: Sequence[Sequence[object]]) -> None:
    OUT.print("")
    print_table(title, heads, rows[:_SHOWN])
    if len(rows) > _SHOWN:
        OUT.print(f"… and {len(rows) - _SHOWN:,} more; --json has all", markup=False)


def _shown(value: object) -> str:
    return "not set" if value is None else str(value)


def _number(value: float | None, nothing: str = "none") -> str:
    return nothing if value is None else f"{value:.4g}"


def _line(text: str) -> str:
    """One line of a terminal, whatever the document holds."""
    return "".join(c if c.isprintable() else " " for c in " ".join(text.split()))


def register(app: typer.Typer) -> None:
    """Add the command to an app."""
    app.command(rich_help_panel=PANEL_LOOK)(whatif)
