"""How fast sample tasks move, from what was seen of them while somebody looked."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Final

WINDOW_S: Final = 300.0
"""A pace is that of the last five minutes at most: one task may take days."""
_LEAST_S: Final = 1.0


class Pace:
    """Rows per second of tasks that run. Threads may share one.

    Args:
        clock: seconds that only grow.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._seen: dict[tuple[str, int], deque[tuple[float, int]]] = {}
        self._totals: dict[tuple[str, int], int] = {}
        self._lock = threading.Lock()

    def rate(self, task_id: str, epoch: int, rows: int) -> float | None:
        """Rows per second of one claim of a task; None until it was seen to move.

        Args:
            task_id: the task, which runs.
            epoch: of its claim: a pause in between is no slow stretch.
            rows: that it has processed by now.
        """
        now, key = self._clock(), (task_id, epoch)
        with self._lock:
            seen = self._seen.setdefault(key, deque())
            if not seen or now - seen[-1][0] >= _LEAST_S:
                seen.append((now, rows))
            while len(seen) > 2 and now - seen[1][0] >= WINDOW_S:
                seen.popleft()
            self._forget(now)
            (then, before) = seen[0]
            return (rows - before) / (now - then) if now - then >= _LEAST_S and rows > before else None

    def total(self, task_id: str, epoch: int, count: Callable[[], int]) -> int:
        """How many rows a claim has before it, counted once."""
        key = (task_id, epoch)
        known = self._totals.get(key)
        if known is None:
            known = self._totals[key] = count()
        return known

    def _forget(self, now: float) -> None:
        for key in [key for key, seen in self._seen.items() if now - seen[-1][0] > WINDOW_S]:
            del self._seen[key]
            self._totals.pop(key, None)
