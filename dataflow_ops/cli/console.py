"""What a person sees while something runs: a bar where they watch, plain lines where they don't."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import typer
from rich.cells import cell_len
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

from dataflow_ops.cli.hints import with_home, with_home_in
from dataflow_ops.cli.options import EXIT_INTERRUPTED, EXIT_PAUSED, EXIT_WAITING
from dataflow_ops.engine.runner import TaskOutcome
from dataflow_ops.pipeline.driver import StepReport


class HintConsole(Console):
    """Prints commands in plain strings with the home that this one was called with (:mod:`.hints`).

    What comes from documents is printed as :class:`rich.text.Text`, and stays as it is. Of tables and JSON
    the caller says which parts are for people.
    """

    def print(self, *objects: Any, **options: Any) -> None:
        """Print as ever."""
        told = (with_home(one, sys.argv[1:]) if isinstance(one, str) else one for one in objects)
        super().print(*told, **options)


OUT = HintConsole(highlight=False, soft_wrap=True)
ERR = HintConsole(stderr=True, highlight=False, soft_wrap=True)
_LINE_EVERY_S = 10.0


def counted(number: int, noun: str) -> str:
    """``1 file``, ``2 files``, for nouns that take an s."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


class ConsoleReporter:
    """Progress of a run on standard error; results go to standard output."""

    def __init__(self, *, quiet: bool = False) -> None:
        self._quiet = quiet
        self._bar: Progress | None = None
        self._task: Any = None
        self.reports: dict[str, StepReport] = {}

    def step_planned(self, step: str, tasks: int, skipped: int) -> None:
        """Start a bar (or say a line) for the step."""
        if self._quiet or not tasks:
            return
        if ERR.is_terminal and tasks > skipped:
            self._bar = Progress(
                TextColumn("{task.description:<9}"),
                BarColumn(),
                MofNCompleteColumn(),
                TimeElapsedColumn(),
                TextColumn("{task.fields[state]}"),
                console=ERR,
                transient=True,
            )
            self._bar.start()
            self._task = self._bar.add_task(step, total=tasks, completed=skipped, state="")

    def task_ended(self, step: str, outcome: TaskOutcome) -> None:
        """Move the bar; faults are shown at once."""
        if outcome.ending in ("failed", "dead"):
            word = "given up" if outcome.ending == "dead" else "failed, tried again"
            ERR.print(
                f"{step}/{outcome.spec.partition}: {word}: {outcome.message}", markup=False, style="yellow"
            )
        if self._bar is not None and outcome.ending in ("done", "skipped", "dead"):
            self._bar.advance(self._task)

    def step_ended(self, report: StepReport) -> None:
        """One line per step."""
        self._stop()
        self.reports[report.step] = report
        counts = report.counts
        # Inner steps of an empty stretch say nothing: a line of zeros would only be asked about.
        if self._quiet or not (counts.documents_in or report.step == "discover"):
            return
        aside = {reason: n for reason, n in counts.skipped.items() if n}
        names = ", ".join(reason.replace("_", " ") for reason in aside)
        done = f"{report.ran} ran" if report.ran else ""
        skipped = f"{report.skipped} skipped" if report.skipped else ""
        ERR.print(
            f"{report.step:<9} {counts.documents_in:>9,} in {counts.kept:>9,} kept"
            f" {counts.rejected:>8,} rejected"
            f" {counts.dead:>5,} dead {sum(aside.values()):>9,} left out"
            f"   tasks: {', '.join(x for x in (done, skipped) if x) or 'none'}"
            + (f"   (left out: {names})" if names else ""),
            markup=False,
        )

    def note(self, message: str) -> None:
        """Something to read."""
        ERR.print(message, markup=False, style="yellow")

    def _stop(self) -> None:
        if self._bar is not None:
            self._bar.stop()
            self._bar = None


@contextmanager
def watched(what: str, *, quiet: bool = False) -> Iterator[Callable[[int, int], None]]:
    """How far something is, on standard error: a bar where a person watches, else a line now and then.

    Yields:
        What is told ``(done, in all)``.
    """
    if quiet or not ERR.is_terminal:
        yield (lambda done, total: None) if quiet else _lines(what)
        return
    columns = (TextColumn("{task.description:<9}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=ERR, transient=True) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _lines(what: str) -> Callable[[int, int], None]:
    last = time.monotonic()

    def tell(done: int, total: int) -> None:
        nonlocal last
        if time.monotonic() - last >= _LINE_EVERY_S:
            last = time.monotonic()
            ERR.print(f"{what:<9} {done:>9,} of {total:,}", markup=False)

    return tell


@contextmanager
def told_when_interrupted(as_json: bool = False) -> Iterator[None]:
    """Around a run: Ctrl-C ends it with a sentence and the exit code that a shell gives it.

    Args:
        as_json: say it to programs, too, which wait for a document.
    """
    try:
        yield
    except KeyboardInterrupt:
        told = "Interrupted. Finished tasks are kept: the same command goes on from here."
        ERR.print(told, markup=False, style="yellow")
        if as_json:
            print_json({"state": "INTERRUPTED", "message": told})
        raise typer.Exit(EXIT_INTERRUPTED) from None


def print_end(result: Any, as_json: bool) -> None:
    """How a run ended; exits with the code that says so."""
    if as_json:
        print_json(result.as_json(), told=("message", "waits", "notes"))
    else:
        (OUT if result.state != "PAUSED" else ERR).print(result.message, markup=False)
    if result.state == "PAUSED":
        raise typer.Exit(EXIT_PAUSED)
    if result.state in ("SUCCEEDED_WITH_DEAD", "AWAITING_APPROVAL"):
        raise typer.Exit(EXIT_WAITING)


STEP_COLUMNS = {
    "step": "step",
    "in": "in",
    "kept": "kept",
    "rejected": "rejected",
    "dead_documents": "dead",
    "left_out": "left out",
    "documents_per_worker_s": "per second and worker",
}
"""Field of a step -> its heading. What went in was kept, rejected, dead or left out."""
_TASK_COLUMNS = {"tasks": "tasks", "done": "done", "running": "running", "dead": "given up"}


def print_steps(steps: Sequence[Mapping[str, Any]], *, tasks: bool = False) -> None:
    """The steps that counted documents or are not done yet, with what became of the documents."""
    columns = {"step": "step", **(_TASK_COLUMNS if tasks else {}), **STEP_COLUMNS}
    shown = [row for row in steps if row["in"] or row["step"] == "discover" or row["done"] < row["tasks"]]
    print_table("", list(columns.values()), [tuple(row[c] for c in columns) for row in shown])


def print_json(value: object, *, told: Collection[str] = ()) -> None:
    """One JSON document on standard output.

    Args:
        value: the document.
        told: keys of texts for people, which name commands with the home as :class:`HintConsole` does.
    """
    value = with_home_in(value, told, sys.argv[1:])
    sys.stdout.write(json.dumps(value, ensure_ascii=False, indent=2, default=str) + "\n")


def print_table(
    title: str, columns: Sequence[str], rows: Sequence[Sequence[object]], *, told: Collection[str] = ()
) -> None:
    """Aligned columns, one line a row, never folded; numbers stand to the right.

    Args:
        title: a line above; none where empty.
        columns: headings.
        rows: a value for each column.
        told: columns of texts for people, which name commands with the home as :class:`HintConsole` does.
    """
    said = [
        [
            with_home_in({name: value}, told, sys.argv[1:])[name]
            for name, value in zip(columns, row, strict=True)
        ]
        for row in rows
    ]
    cells = [[_cell(value) for value in row] for row in said]
    width = [max([cell_len(name), *(cell_len(row[i]) for row in cells)]) for i, name in enumerate(columns)]
    right = [
        bool(rows) and all(isinstance(row[i], (int, float)) and not isinstance(row[i], bool) for row in rows)
        for i in range(len(columns))
    ]
    lines = [title] if title else []
    for line in ([*columns], *cells):
        padded = [
            " " * (width[i] - cell_len(text)) + text if right[i] else text + " " * (width[i] - cell_len(text))
            for i, text in enumerate(line)
        ]
        lines.append("  ".join(padded).rstrip())
    OUT.print(Text("\n".join(lines)))


def _cell(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.3g}" if abs(value) < 10 else f"{value:,.0f}"
    text = "" if value is None else str(value)
    # Names of files come from outside: they must not move the cursor or forge a line.
    return "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in text)
