"""What a task's process must be allowed to do."""

from __future__ import annotations

import multiprocessing.process as known
import os


def allow_children() -> None:
    """Let this process start workers.

    A Celery worker marks its processes as daemons, which may have no children, and puts a process object of
    its own kind where Python's should be, with a key that can't be handed to a spawned child. A task runs in
    a process forked from one of them, for this task alone, and ends its own workers before it ends: in truth
    it is a main process.
    """
    current = known.current_process()
    if current.daemon or not isinstance(current, known.BaseProcess):
        own = known.BaseProcess(name="MainProcess", daemon=False)
        own.authkey = os.urandom(32)
        known._current_process = own  # type: ignore[attr-defined]
