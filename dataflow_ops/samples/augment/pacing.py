"""Rate limits of one process: questions are spaced evenly, so that no minute ever holds more than allowed."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Final

from dataflow_ops.clients.endpoint_errors import CallStopped

log = logging.getLogger(__name__)
_TOLD_S: Final = 10.0


class Pacing:
    """When the next question may go out. Threads share one.

    Args:
        stop: set when everybody is to give up waiting.
        requests_per_minute: None for no limit.
        tokens_per_minute: None for no limit; counts what questions reserve, and gives back what they spare.
        clock: seconds that only grow.
    """

    def __init__(
        self,
        stop: threading.Event,
        requests_per_minute: float | None = None,
        tokens_per_minute: float | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._stop = stop
        self._per_request = 60.0 / requests_per_minute if requests_per_minute else 0.0
        self._per_token = 60.0 / tokens_per_minute if tokens_per_minute else 0.0
        self._clock = clock
        self._lock = threading.Lock()
        self._next_request = self._next_tokens = self._held_until = clock()

    def admit(self, tokens: int) -> None:
        """Wait for the next free moment of both limits, and past any hold.

        Raises:
            CallStopped: told to stop.
        """
        if self._stop.is_set():
            raise CallStopped("stopped before the question was asked")
        with self._lock:
            at = max(self._clock(), self._next_request, self._next_tokens)
            self._next_request = at + self._per_request
            self._next_tokens = at + self._per_token * tokens
        # A hold may come while somebody waits, so it is looked at again after each wait.
        while (left := max(at, self._held_until) - self._clock()) > 0:
            self.rest(left)

    def give_back(self, tokens: int) -> None:
        """So many of the admitted tokens were not used."""
        with self._lock:
            self._next_tokens -= self._per_token * max(0, tokens)

    def hold(self, seconds: float) -> None:
        """Admit nobody for so long."""
        if seconds >= _TOLD_S:
            log.warning("the endpoint asks everybody to wait for %.0f s", seconds)
        with self._lock:
            self._held_until = max(self._held_until, self._clock() + seconds)

    def rest(self, seconds: float) -> None:
        """Wait.

        Raises:
            CallStopped: told to stop.
        """
        if self._stop.wait(max(0.0, seconds)):
            raise CallStopped("stopped while the question waited")
