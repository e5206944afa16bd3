"""CPU time of this process and its children between two marks; the standard library alone.

Every runner is started as ``python RUNNER.py STAGE DOCS OUT`` in the environment of its peer: DOCS holds
Parquet files, OUT is an empty folder. It leaves ``OUT/marks.json`` with the CPU seconds before the first
document, those of the work, and what was decided.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable
from pathlib import Path


class Clock:
    """Marks where the work begins and ends."""

    def __init__(self, out: Path) -> None:
        self._out = out
        self.began = 0.0
        self.ended = 0.0

    def begin(self) -> None:
        """Imports and loading are over; said again, the later call counts."""
        self.began = cpu_seconds()

    def end(self) -> None:
        """Everything is decided."""
        self.ended = cpu_seconds()

    def leave(self, kept: Iterable[int], groups: dict[int, int] | None = None, **more: float) -> None:
        """Write the marks and the decisions: ids that stay; for duplicates the group of each id in one."""
        marks = {"start": self.began, "work": self.ended - self.began, **more}
        found = {"kept": sorted(map(int, kept)), "groups": groups}
        (self._out / "decisions.json").write_text(json.dumps(found))
        (self._out / "marks.json").write_text(json.dumps(marks))


def cpu_seconds() -> float:
    """CPU seconds so far, of this process and of the children that have ended."""
    t = os.times()
    return time.process_time() + t.children_user + t.children_system
