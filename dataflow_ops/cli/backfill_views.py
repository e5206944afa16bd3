"""Backfills in print: tables, sentences and exit codes."""

from __future__ import annotations

import datetime as dt
import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from dataflow_ops.cli.console import ERR, OUT, counted, print_json, print_table
from dataflow_ops.cli.options import DEFAULT_HOME, EXIT_FAILED, EXIT_PAUSED, EXIT_WAITING

if TYPE_CHECKING:
    from dataflow_ops.state.backfills import BackfillRecord

TOLD = ("detail", "run_detail")
"""Keys of texts for people in what is told of a backfill."""


@contextmanager
def told_when_away(home_path: Path, record: BackfillRecord | None = None) -> Iterator[None]:
    """Around a backfill (None: before there is one): the database or Airflow goes down under it.

    Raises:
        BackfillStopped: it did; the message says how to go on.
    """
    from dataflow_ops.pipeline.backfill_drive import AWAY, stopped

    try:
        yield
    except AWAY as e:
        name = "" if record is None else record.backfill_id
        home = [] if home_path == DEFAULT_HOME else ["--home", str(home_path)]
        again = shlex.join(["dataflow", "backfills", "resume", name, *home])
        raise stopped(e, record, again) from e


def left_out(plans: Sequence[Any]) -> list[str]:
    """A word about days that a person may have meant to be done."""
    failed = [
        p.day for p in plans if p.action == "skip" and p.state in ("FAILED", "CANCELLED") and not p.version
    ]
    if not failed:
        return []
    shown = ", ".join(failed[:3]) + (", …" if len(failed) > 3 else "")
    return [
        f"{counted(len(failed), 'day')} failed before, left out here ({shown});"
        " --reprocess failed does them again"
    ]


def nothing_to_do(plans: Sequence[Any], missing: Sequence[str], as_json: bool) -> None:
    """Say that no day needs anything; exit with 4 where failed days were left out."""
    if as_json:
        rows = [{"day": p.day, "action": p.action, "why": p.why, "run": p.run_id} for p in plans]
        print_json({"backfill": None, "state": "NOTHING_TO_DO", "days": rows})
    else:
        OUT.print(
            f"Nothing to do: of {counted(len(plans), 'day')} none needs it. --reprocess all does them again."
        )
        for line in missing:
            ERR.print(line, markup=False, style="yellow")
    if missing:
        raise typer.Exit(EXIT_WAITING)


def show_days(rows: Sequence[dict[str, Any]], as_json: bool) -> None:
    """The table of a dry run."""
    if as_json:
        print_json(rows)
        return
    columns = ("day", "action", "why", "state", "version", "files", "bytes", "chunks")
    print_table("", columns, [tuple(row[c] for c in columns) for row in rows])
    todo = sum(row["action"] != "skip" for row in rows)
    OUT.print(
        f"{todo} of {counted(len(rows), 'day')} would be run."
        " Nothing was written; leave out --dry-run to run them."
    )


def tell(found: dict[str, Any]) -> None:
    """One backfill for people: its sentence and its days."""
    driven = f", driven by {found['driven_by']}" if found["driven_by"] else ""
    detail = f": {found['detail']}" if found["detail"] else ""
    OUT.print(
        f"Backfill {found['backfill']} of {found['dataset']}, {found['from']} to {found['to']}"
        f" (--reprocess {found['reprocess']}), by {found['who']}: {state_of(found)}{detail}{driven}",
        markup=False,
    )
    print_table(
        "",
        ("day", "state", "detail", "run"),
        [
            (d["day"], d["state"], d["run_detail"] if d["state"] == "RUNNING" else d["detail"], d["run"])
            for d in found["days"]
        ],
        told=("detail",),
    )


def end(found: dict[str, Any], as_json: bool) -> None:
    """Say how a backfill stands, and exit with the code for it."""
    if as_json:
        print_json(found, told=TOLD)
    else:
        tell(found)
    state, name = found["state"], found["backfill"]
    if state == "PAUSED":
        ERR.print(f"Paused. Go on with: dataflow backfills resume {name}", markup=False, style="yellow")
        raise typer.Exit(EXIT_PAUSED)
    if state != "DONE":
        raise typer.Exit(EXIT_FAILED)
    if found["waits"]:
        ERR.print(
            f"{counted(found['waits'], 'day')} left something for a person: dataflow versions list,"
            " dataflow dead-letters list",
            markup=False,
            style="yellow",
        )
        raise typer.Exit(EXIT_WAITING)


def state_of(row: dict[str, Any]) -> str:
    """State, and whether a backfill that says it is running is driven by nobody."""
    if row["state"] == "RUNNING" and not row["driven_by"]:
        return "RUNNING (nobody drives it; resume goes on)"
    return str(row["state"])


def count(row: dict[str, Any], *states: str) -> int:
    """How many days are in one of the states."""
    return sum(d["state"] in states for d in row["days"])


def moment(seconds: float) -> str:
    """A time for people, in UTC."""
    return dt.datetime.fromtimestamp(seconds, dt.UTC).strftime("%Y-%m-%d %H:%M UTC")
