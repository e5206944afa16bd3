"""Whether to pause, asked at every batch boundary and looked up at most twice a second."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol


class Flag(Protocol):
    """A wish to pause: by whom, why, and what it covers."""

    @property
    def scope(self) -> str:
        """``run``, ``dataset`` or ``all``."""

    @property
    def target(self) -> str:
        """Run id or data set; empty for ``all``."""

    @property
    def who(self) -> str:
        """Name of the person or service."""

    @property
    def why(self) -> str:
        """For people."""


class PauseSource(Protocol):
    """Where flags are kept: the state store."""

    def paused(self, run_id: str, dataset: str) -> Flag | None:
        """The flag that holds for a run, or ``None``."""

    def wanted_elsewhere(self, key: str, run_id: str) -> bool:
        """Whether another live run that nobody paused wants this task too."""


class PauseWatch:
    """Pause flags of one run, as one worker sees them. Cheap enough for every batch boundary.

    Args:
        source: asked when the last answer is too old. Its row is the truth: a cache put in front may make
            "paused" known sooner, but its silence never means "go on".
        run_id: the run that the worker serves.
        dataset: its data set.
        interval_s: how old an answer may get, in seconds.
        clock: seconds that only grow.
    """

    def __init__(
        self,
        source: PauseSource,
        run_id: str,
        dataset: str,
        interval_s: float = 0.5,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._source = source
        self._run_id = run_id
        self._dataset = dataset
        self._interval_s = interval_s
        self._clock = clock
        self._flag: Flag | None = None
        self._asked_at: float | None = None

    def flag(self) -> Flag | None:
        """The flag that holds for the run, at most ``interval_s`` old."""
        now = self._clock()
        if self._asked_at is None or now - self._asked_at >= self._interval_s:
            self._flag = self._source.paused(self._run_id, self._dataset)
            self._asked_at = now
        return self._flag

    def should_stop(self, key: str) -> Flag | None:
        """The flag for which the worker should give this task back, or ``None``.

        A task that another live run wants goes on: its result serves both.
        """
        flag = self.flag()
        if flag is None or self._source.wanted_elsewhere(key, self._run_id):
            return None
        return flag
