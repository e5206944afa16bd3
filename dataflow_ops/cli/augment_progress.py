"""How far an augmentation is: one line that stays where a person watches, a line now and then elsewhere."""

from __future__ import annotations

import time
from collections import deque
from typing import TYPE_CHECKING, Final

from dataflow_ops.cli.console import ERR

if TYPE_CHECKING:
    from rich.status import Status

    from dataflow_ops.samples.augment.tally import Tally
    from dataflow_ops.state.samples.records import SampleTask

_LINE_EVERY_S: Final = 10.0
_WINDOW_S: Final = 60.0
"""The rate is that of the last minute."""


class AugmentProgress:
    """Hears how an augmentation goes and shows it on standard error.

    Args:
        currency: of the cost.
        quiet: say nothing.
    """

    def __init__(self, currency: str, *, quiet: bool = False) -> None:
        self._currency = currency
        self._quiet = quiet
        self._total = 0
        self._seen: deque[tuple[float, int]] = deque()
        self._said_at = time.monotonic()
        self._line: Status | None = None

    def begins(self, task: SampleTask, tally: Tally, total: int) -> None:
        """Say what is to be done, and start the line."""
        self._total = total
        self._seen.append((time.monotonic(), tally.settled))
        if self._quiet:
            return
        before = f", {tally.settled:,} of them done before" if tally.settled else ""
        ERR.print(f"Task {task.task_id}: {total:,} requests{before}", markup=False)
        if ERR.is_terminal:
            self._line = ERR.status("")
            self._line.start()

    def moved(self, tally: Tally) -> None:
        """Bring the line up to date."""
        now = time.monotonic()
        self._seen.append((now, tally.settled))
        while len(self._seen) > 2 and now - self._seen[0][0] > _WINDOW_S:
            self._seen.popleft()
        if self._quiet:
            return
        if self._line is not None:
            self._line.update(self.told(tally))
        elif now - self._said_at >= _LINE_EVERY_S:
            self._said_at = now
            ERR.print(self.told(tally), markup=False)

    def note(self, message: str) -> None:
        """Something to read."""
        if not self._quiet:
            ERR.print(message, markup=False, style="yellow")

    def close(self) -> None:
        """Take the line away."""
        if self._line is not None:
            self._line.stop()
            self._line = None

    def told(self, tally: Tally) -> str:
        """Rows done of all, good, failed, tokens, cost, rate, time left."""
        done, used = tally.settled, tally.used
        share = f" ({100 * done / self._total:.0f} %)" if self._total else ""
        cost = f"  cost {used.most_cost:,.4f} {self._currency}" if used.most_cost else ""
        known = f"  known {tally.reused:,}" if tally.reused else ""
        rate = self._rate()
        left = f"  {_span((self._total - done) / rate)} left" if rate and done < self._total else ""
        return (
            f"{done:,} of {self._total:,}{share}  good {tally.answered:,}{known}  failed {tally.failed:,}"
            f"  tokens {used.tokens:,}{cost}  {rate:.1f}/s{left}"
        )

    def _rate(self) -> float:
        (began, first), (now, last) = self._seen[0], self._seen[-1]
        return max(0.0, (last - first) / (now - began)) if now > began else 0.0


def _span(seconds: float) -> str:
    if seconds < 90:
        return f"about {seconds:.0f} s"
    return f"about {seconds / 60:.0f} min" if seconds < 5400 else f"about {seconds / 3600:.1f} h"
