"""Whether to pause, asked at every batch boundary and inside long ones, looked up once or twice a second."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Final, Protocol

from dataflow_ops.errors import DatabaseUnavailable

log = logging.getLogger(__name__)

ALONE_S: Final = 0.5
"""How old an answer of the database may get where nothing else tells of a pause."""
BESIDE_COPY_S: Final = 1.0
"""The same beside a fast copy, which is what makes a pause known sooner."""
GLANCE_S: Final = 0.2
"""How often the fast copy is looked at."""


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


class FastCopy(Protocol):
    """A quick hint that a flag was set. Never raises, and proves nothing either way."""

    def hints(self, run_id: str, dataset: str) -> bool:
        """Whether the database should be asked now."""


class PauseWatch:
    """Pause flags of one run, as one worker sees them. Cheap enough for every batch boundary.

    While the database is away the last answer stands: whatever is to be saved meets the fault itself.

    Args:
        source: asked when the last answer is too old. Its row is the truth.
        run_id: the run that the worker serves.
        dataset: its data set.
        copy: looked at between two questions: a hint makes "paused" known sooner, silence means nothing.
        interval_s: how old an answer may get, in seconds; chosen by whether there is a copy when ``None``.
        clock: seconds that only grow.
    """

    def __init__(
        self,
        source: PauseSource,
        run_id: str,
        dataset: str,
        copy: FastCopy | None = None,
        interval_s: float | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._source = source
        self._run_id = run_id
        self._dataset = dataset
        self._copy = copy
        self._interval_s = interval_s or (ALONE_S if copy is None else BESIDE_COPY_S)
        self._clock = clock
        self._flag: Flag | None = None
        self._spared: dict[str, bool] = {}
        self._asked_at: float | None = None
        self._glanced_at = clock()
        self._away = False

    def flag(self) -> Flag | None:
        """The flag that holds for the run, at most the interval old."""
        now = self._clock()
        if self._asked_at is None or now - self._asked_at >= self._interval_s or self._hinted(now):
            self._ask()
            self._asked_at = now
        return self._flag

    def begin(self) -> None:
        """A task begins: a flag that stopped an earlier one may have been taken back since."""
        if self._flag is not None:
            self._asked_at = None

    def should_stop(self, key: str) -> Flag | None:
        """The flag for which the worker should give this task back, or ``None``.

        A task that another live run wants goes on: its result serves both.
        """
        flag = self.flag()
        if flag is None:
            return None
        if key not in self._spared:
            self._spared[key] = self._source.wanted_elsewhere(key, self._run_id)
        return None if self._spared[key] else flag

    def _hinted(self, now: float) -> bool:
        """Whether the copy has news. A stale hint makes the database be asked as often as without a copy."""
        if self._copy is None or self._flag is not None or now - self._glanced_at < GLANCE_S:
            return False
        self._glanced_at = now
        fresh = self._asked_at is not None and now - self._asked_at < GLANCE_S
        return not fresh and self._copy.hints(self._run_id, self._dataset)

    def _ask(self) -> None:
        try:
            self._flag = self._source.paused(self._run_id, self._dataset)
        except DatabaseUnavailable as e:
            if not self._away:
                log.warning("pause flags can't be read, the last answer stands: %s", e)
            self._away = True
            return
        self._away = False
        self._spared.clear()
