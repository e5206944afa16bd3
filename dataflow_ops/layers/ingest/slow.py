"""Waiting for what may be slow, with a question now and then whether to go on waiting."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

ASK_EVERY_S = 0.5

T = TypeVar("T")


def waited_for(call: Callable[[], T], ask: Callable[[], None]) -> T:
    """What a call gives, made in a thread of its own; raises what it raises.

    Args:
        call: may block for minutes in a silent server's socket, where no question can be asked.
        ask: called every half second. What it raises ends the waiting; the call is left to its own time
            limits, and what comes of it is dropped.
    """
    given: list[T] = []
    raised: list[BaseException] = []

    def make() -> None:
        try:
            given.append(call())
        except BaseException as e:  # noqa: BLE001 - told where it is waited for
            raised.append(e)

    # A daemon: a process that ends does not wait for a silent server.
    thread = threading.Thread(target=make, name="slow-call", daemon=True)
    thread.start()
    while thread.is_alive():
        thread.join(ASK_EVERY_S)
        if thread.is_alive():
            ask()
    if raised:
        raise raised[0]
    return given[0]
