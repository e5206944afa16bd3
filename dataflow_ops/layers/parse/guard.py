"""How the step calls parsers that must not run in its own process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from dataflow_ops.errors import DocumentError

Request = Sequence[bytes]
"""Buffers of one request; what is sent is their concatenation, never a pickle."""

Ask = Callable[[], None]
"""Raises when the task must be given back: :meth:`~dataflow_ops.protocols.Side.checkpoint`."""

Answer = bytes | DocumentError


class Guard(Protocol):
    """Runs requests under limits on CPU time and memory; the engine's is ``engine.parse_guard``."""

    def run(self, requests: Sequence[Request], ask: Ask) -> list[Answer]:
        """One answer per request, in order; a DocumentError for one that broke its limits or the child.

        ``ask`` is called now and then while it waits; what that raises ends the call without any verdict.
        """


class InlineGuard:
    """Runs requests in this process without limits: for tests and for trusted input.

    Args:
        handle: the function that the child would run.
    """

    def __init__(self, handle: Callable[[memoryview], bytes]) -> None:
        self._handle = handle

    def run(self, requests: Sequence[Request], ask: Ask) -> list[Answer]:
        """One answer per request, in order."""
        answers: list[Answer] = []
        for request in requests:
            ask()
            answers.append(self._handle(memoryview(b"".join(request))))
        return answers
