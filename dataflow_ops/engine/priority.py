"""Standing back: who is in no hurry lets urgent work have the processors."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import Final

log = logging.getLogger(__name__)

BACKGROUND_NICE: Final = 5
"""Beside one that did not stand back such a process gets a quarter of a core; alone, all of it. With 10 it
would be a tenth, and a batch of a second could take ten, which is too long for a pause to wait."""
_ENABLED: Final = Path("/proc/sys/kernel/sched_autogroup_enabled")
_OWN: Final = Path("/proc/self/autogroup")


def stand_back() -> None:
    """Let this process, and those it starts, take second place from now on. Where that is refused, say so.

    Linux may share the cores out between sessions first (autogroup), and then niceness acts within each
    session only. There the process becomes a session of its own, whose niceness is set as well.
    """
    try:
        os.nice(BACKGROUND_NICE)
    except OSError as e:
        log.warning("the worker keeps its priority: %s", e)
        return
    try:
        if _ENABLED.exists() and _ENABLED.read_text().strip() == "1":
            if os.getsid(0) != os.getpid():
                os.setsid()
            _OWN.write_text(str(BACKGROUND_NICE))
    except OSError as e:
        log.warning("the worker stands back within its own session only: %s", e)
