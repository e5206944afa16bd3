"""A backfill as it is watched: a bar of days and one of steps in a terminal, plain lines elsewhere."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from typing import Any, Final

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from dataflow_ops.cli.console import ERR, counted
from dataflow_ops.engine.runner import TaskOutcome
from dataflow_ops.pipeline.driver import StepReport
from dataflow_ops.state.backfills import BackfillRecord

_STYLES: Final[Mapping[str, str]] = {"FAILED": "red", "PAUSED": "yellow", "CANCELLED": "yellow"}


class BackfillProgress:
    """Hears how a backfill goes and shows it on standard error. Days may report from several threads.

    Args:
        quiet: say nothing.
    """

    def __init__(self, *, quiet: bool = False) -> None:
        self._quiet = quiet
        self._bar: Progress | None = None
        self._days: Any = None
        self._lock = threading.Lock()
        self._total = self._before = self._ended = 0
        self._began = time.monotonic()
        self._steps: dict[str, Any] = {}

    def begins(self, record: BackfillRecord, days: int, done: int, where: str) -> None:
        """Say what is to be done, and start the bar."""
        self._total, self._before, self._began = days, done, time.monotonic()
        if self._quiet:
            return
        again = f", {done} of them done before" if done else ""
        self._say(
            f"Backfill {record.backfill_id} of {record.dataset}: {counted(days, 'day')}{again}, {where}"
        )
        if ERR.is_terminal:
            self._bar = Progress(
                TextColumn("{task.description:<22}"),
                BarColumn(),
                MofNCompleteColumn(),
                TimeElapsedColumn(),
                TextColumn("{task.fields[left]}"),
                console=ERR,
                transient=True,
            )
            self._bar.start()
            self._days = self._bar.add_task("days", total=days, completed=done, left="")

    def day_begins(self, day: str, why: str) -> None:
        """A line, or a second bar for the day's steps."""
        if self._quiet:
            return
        if self._bar is not None:
            with self._lock:
                self._steps[day] = self._bar.add_task(day, total=None, left=why)
        else:
            self._say(f"{day}: begins ({why})")

    def day_ended(self, day: str, state: str, detail: str) -> None:
        """One line per day, with how long the rest will take."""
        with self._lock:
            self._ended += 1
            done = self._before + self._ended
            step = self._steps.pop(day, None)
        if self._quiet:
            return
        left = self.left()
        if self._bar is not None:
            if step is not None:
                self._bar.remove_task(step)
            self._bar.update(self._days, completed=done, left=left)
        aside = f" ({done} of {self._total}{', ' + left if left else ''})"
        self._say(f"{day}: {state.lower()}, {detail}{aside}", _STYLES.get(state))

    def note(self, message: str) -> None:
        """Something to read."""
        if not self._quiet:
            self._say(message, "yellow")

    def left(self) -> str:
        """How long the days that are left will take at the pace so far; ``""`` before the first has ended."""
        to_do = self._total - self._before - self._ended
        if not self._ended or to_do <= 0:
            return ""
        seconds = (time.monotonic() - self._began) / self._ended * to_do
        return f"about {_span(seconds)} left"

    def reporter(self, day: str) -> DayReporter:
        """Who hears of one day's steps."""
        return DayReporter(self, day)

    def close(self) -> None:
        """Take the bar away."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

    def step(self, day: str, name: str, total: int, done: int) -> None:
        """A step of a day begins, or moves on when ``total`` is 0."""
        task = self._steps.get(day)
        if self._bar is None or task is None:
            return
        if total:
            self._bar.update(task, description=f"{day} {name}", total=total, completed=done, left="")
        else:
            self._bar.advance(task, done)

    def _say(self, text: str, style: str | None = None) -> None:
        ERR.print(text, markup=False, style=style)


class DayReporter:
    """Hears of one day's steps."""

    def __init__(self, progress: BackfillProgress, day: str) -> None:
        self._progress = progress
        self._day = day

    def step_planned(self, step: str, tasks: int, skipped: int) -> None:
        """The day's bar shows this step from now on."""
        if tasks:
            self._progress.step(self._day, step, tasks, skipped)

    def task_ended(self, step: str, outcome: TaskOutcome) -> None:
        """Move the bar; faults are shown at once."""
        if outcome.ending in ("failed", "dead"):
            word = "given up" if outcome.ending == "dead" else "failed, tried again"
            self._progress.note(f"{self._day} {step}/{outcome.spec.partition}: {word}: {outcome.message}")
        if outcome.ending in ("done", "dead"):
            self._progress.step(self._day, step, 0, 1)

    def step_ended(self, report: StepReport) -> None:
        """Nothing: a line for each step of each day would hide the days."""

    def note(self, message: str) -> None:
        """With the day that it is about."""
        self._progress.note(f"{self._day}: {message}")


def _span(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
