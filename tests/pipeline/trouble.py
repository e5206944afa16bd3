"""Hooks that make trouble inside a run; picklable, so that they work in spawned workers too."""

from __future__ import annotations

import os
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path


def partition_here() -> str:
    """Partition of the task whose hook is being called (two frames up)."""
    return str(sys._getframe(2).f_locals["spec"].partition)


@dataclass(frozen=True)
class Signal:
    """Sends this process a signal the ``nth`` time (from 1) that it comes to a point; once for a marker."""

    point: str
    marker: Path
    nth: int = 1
    number: int = signal.SIGKILL

    def reached(self, point: str) -> None:
        if point != self.point:
            return
        # A process that is killed keeps no count, so the file does.
        with open(self.marker, "ab") as file:
            file.write(b".")
        if self.marker.stat().st_size == self.nth:
            os.kill(os.getpid(), self.number)


@dataclass(frozen=True)
class Poison:
    """Kills its process each time that one partition of a step comes to a point."""

    point: str
    partition: str

    def reached(self, point: str) -> None:
        if point == self.point and partition_here() == self.partition:
            os.kill(os.getpid(), signal.SIGKILL)


@dataclass(frozen=True)
class Hang:
    """Stays at a point for half a minute, after leaving a mark."""

    point: str
    marker: Path

    def reached(self, point: str) -> None:
        if point == self.point:
            self.marker.touch()
            time.sleep(30)


@dataclass(frozen=True)
class Fail:
    """Raises at a point, as a fault in a step's code would."""

    point: str

    def reached(self, point: str) -> None:
        if point == self.point:
            raise ZeroDivisionError("a fault in the code of a step")


@dataclass(frozen=True)
class Log:
    """Writes down process and point."""

    path: Path

    def reached(self, point: str) -> None:
        with open(self.path, "a", encoding="utf-8") as out:
            out.write(f"{os.getpid()} {point}\n")
