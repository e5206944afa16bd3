"""Keeps a claim alive from a thread, and tells the task when it was lost."""

from __future__ import annotations

import threading
from types import TracebackType
from typing import Any, Protocol, Self

from dataflow_ops.errors import DataFlowError, LeaseLost
from dataflow_ops.values import Claim


class Beats(Protocol):
    """The part of the state store that a heartbeat needs."""

    def heartbeat(self, claim: Claim, progress: dict[str, Any] | None = None) -> None:
        """Renew the lease; raise LeaseLost when another attempt holds it."""


class Heartbeat:
    """Context manager: renews the lease every ``every_s`` seconds until left.

    The task calls :meth:`check` at batch boundaries and before it publishes. A database that is away for
    a moment is no loss; fencing decides in the end.
    """

    def __init__(self, store: Beats, claim: Claim, every_s: float) -> None:
        self._store = store
        self._claim = claim
        self._every_s = every_s
        self._stop = threading.Event()
        self._lost: LeaseLost | None = None
        self.progress: dict[str, Any] = {}
        self._thread = threading.Thread(target=self._beat, name="heartbeat", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()

    def check(self) -> None:
        """Raise :class:`LeaseLost` if another attempt has taken over."""
        if self._lost is not None:
            raise self._lost

    def _beat(self) -> None:
        while not self._stop.wait(self._every_s):
            try:
                self._store.heartbeat(self._claim, dict(self.progress))
            except LeaseLost as e:
                self._lost = e
                return
            except DataFlowError:
                continue  # the database may be back at the next beat; a late commit is fenced anyway
