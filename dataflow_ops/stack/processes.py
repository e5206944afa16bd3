"""Started processes and their records: who is alive is judged by pid *and* start time, never by pid alone."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil

from dataflow_ops.stack.layout import read_json, write_json

MARK = "DATAFLOW_STACK_PART"
"""Variable by which whatever a component left behind is recognised: ``<stack folder>:<component>``."""


@dataclass(frozen=True)
class Component:
    """One process to keep alive; plain values only, so that a plan can be written down.

    Attributes:
        name: of the component, its log and its record.
        command: program and arguments.
        environment: the process' whole environment.
        after: components that must answer before this one starts.
        once: it does its work and ends; done when it ended well.
        uid: account to run as, with ``gid``; None keeps the caller's.
        stop: signal that asks it to end.
        digest: of its command and the stack's own variables: tells when it needs a restart.
    """

    name: str
    command: tuple[str, ...]
    environment: Mapping[str, str]
    after: tuple[str, ...] = ()
    once: bool = False
    uid: int | None = None
    gid: int | None = None
    stop: int = signal.SIGTERM
    digest: str = ""


@dataclass(frozen=True)
class Record:
    """A process that was started.

    Attributes:
        pid: of the process, which leads its own process group.
        started: when, as the kernel tells it: tells a process from a later one with the same pid.
        digest: of the settings it was started with.
    """

    pid: int
    started: float
    digest: str = ""


def start(component: Component, folder: Path, log: Path) -> subprocess.Popen[bytes]:
    """Start detached: own session and group, output appended to its log."""
    with open(log, "ab") as out:
        return subprocess.Popen(
            component.command,
            env={**component.environment, MARK: mark(folder, component.name)},
            cwd=folder if component.uid is None else "/",
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            start_new_session=True,
            user=component.uid,
            group=component.gid,
            extra_groups=None if component.uid is None else [],
        )


def mark(folder: Path, name: str) -> str:
    """Value of :data:`MARK`."""
    return f"{folder}:{name}"


def record_of(pid: int, digest: str = "") -> Record:
    """The record of a running process of ours.

    Raises:
        psutil.NoSuchProcess: it ended already.
    """
    return Record(pid, psutil.Process(pid).create_time(), digest)


def save(record: Record, path: Path) -> None:
    """Write the record down."""
    write_json(path, asdict(record))


def load(path: Path) -> Record | None:
    """The record, or None where there is none or it is damaged (then nothing is known to run)."""
    try:
        found = read_json(path)
        return None if found is None else Record(**found)
    except (ValueError, TypeError):
        return None


def is_alive(record: Record | None) -> bool:
    """Whether the recorded process, and not a later one with its pid, runs."""
    if record is None:
        return False
    try:
        process = psutil.Process(record.pid)
        return abs(process.create_time() - record.started) < 1.5 and process.status() != psutil.STATUS_ZOMBIE
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return False


def leftovers(folder: Path, names: Iterable[str]) -> list[psutil.Process]:
    """Processes that carry the mark of one of the components, whatever group or parent they have now."""
    marks = {mark(folder, name) for name in names}
    found = []
    for process in psutil.process_iter():
        try:
            if process.pid != os.getpid() and process.environ().get(MARK) in marks:
                found.append(process)
        except (psutil.NoSuchProcess, psutil.AccessDenied, psutil.ZombieProcess, OSError):
            continue
    return found


def clear(folder: Path, names: Iterable[str]) -> int:
    """Kill what is left of components whose main process is gone: their slots are given to others.

    Returns:
        How many processes there were.
    """
    rest = leftovers(folder, names)
    for process in rest:
        _kill(process)
    psutil.wait_procs(rest, timeout=5)
    return len(rest)


def end(folder: Path, running: Mapping[str, tuple[Record, int]], grace_s: float) -> set[str]:
    """Ask components to end, all at once; wait; then kill who is left, and whatever any of them left.

    Args:
        folder: the stack's folder.
        running: by name, its process and the signal that asks it.
        grace_s: seconds to wait, for all together.

    Returns:
        Those that had to be killed.
    """
    for record, stop in running.values():
        if is_alive(record):
            _signal(record.pid, stop)
    until = time.monotonic() + grace_s
    left = {name: record for name, (record, _) in running.items() if is_alive(record)}
    while left and time.monotonic() < until:
        time.sleep(0.1)
        left = {name: record for name, record in left.items() if is_alive(record)}
    below = [process for record in left.values() for process in _tree(record.pid)]
    for process in below:
        _kill(process)
    psutil.wait_procs(below, timeout=5)
    clear(folder, running)
    return set(left)


def memory_bytes(record: Record, *, below: bool = True) -> int:
    """Memory of the process and all below it; shared pages count by their share where the kernel tells."""
    total = 0
    for process in _tree(record.pid) if below else _tree(record.pid)[:1]:
        try:
            full = process.memory_full_info()
            total += int(getattr(full, "pss", full.rss))
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
    return total


def _tree(pid: int) -> list[psutil.Process]:
    try:
        process = psutil.Process(pid)
        return [process, *process.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def _signal(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return


def _kill(process: psutil.Process) -> None:
    try:
        process.kill()  # checks the start time first
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return


def digest_of(parts: Sequence[object]) -> str:
    """Short hash that tells whether a component was started with other settings."""
    import hashlib
    import json

    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()[:16]
