"""Airflow as a child process on an embedded database: prepared once, one DAG run, everything in one log."""

from __future__ import annotations

import fcntl
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import FrameType
from typing import IO

from dataflow_ops.errors import ConfigError, StateError

GRACE_S = 3.0
"""How long a child may take to end before it is killed: a task may be killed anywhere, at no loss."""

_ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


class Interrupted(Exception):
    """Somebody asked this process to end; its children have ended."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.exit_code = 128 + number


def environment(folder: Path, dags: Path, extra: Mapping[str, str]) -> dict[str, str]:
    """Airflow's settings for a run of its own in ``folder``, whatever the caller's shell says of Airflow.

    Args:
        folder: Airflow's home; holds its database and logs.
        dags: folder of DAG files.
        extra: variables for the DAG itself.
    """
    found = {name: value for name, value in os.environ.items() if not name.startswith("AIRFLOW")}
    # Without byte code every import of Airflow costs seconds more.
    found.pop("PYTHONDONTWRITEBYTECODE", None)
    found.update(
        AIRFLOW_HOME=str(folder),
        AIRFLOW__CORE__DAGS_FOLDER=str(dags),
        AIRFLOW__CORE__LOAD_EXAMPLES="False",
        AIRFLOW__CORE__UNIT_TEST_MODE="False",
        AIRFLOW__DATABASE__SQL_ALCHEMY_CONN=f"sqlite:///{folder / 'airflow.db'}",
        AIRFLOW__LOGGING__BASE_LOG_FOLDER=str(folder / "logs"),
        PYTHONWARNINGS="ignore",
        NO_COLOR="1",
        **extra,
    )
    return found


@contextmanager
def only_one(folder: Path) -> Iterator[int]:
    """Hold the folder's lock, and hand out its descriptor: children that inherit it hold it as well.

    Raises:
        StateError: another process (or a child that outlived its parent) is at work in the folder.
    """
    folder.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(folder / "running.lock", os.O_RDWR | os.O_CREAT, 0o644)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            owner = os.read(descriptor, 32).decode(errors="replace").strip()
            raise StateError(
                f"another demo (process {owner or 'unknown'}) is at work in {folder}; wait for it, end it,"
                " or take another folder with --home"
            ) from None
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, str(os.getpid()).encode(), 0)
        yield descriptor
    finally:
        os.close(descriptor)


def migrate(env: Mapping[str, str], log: Path, lock: int, note: Callable[[str], None]) -> int:
    """Bring Airflow's database to its newest schema, unless that was completed before; exit code.

    The mark is set only after the migration ended well, so one that was killed half way is done again. A
    database that can't be migrated is made anew: it holds nothing but Airflow's own history of demo runs.
    """
    folder = Path(env["AIRFLOW_HOME"])
    database, mark = folder / "airflow.db", folder / "airflow.db.ready"
    wanted = _airflow_version()
    if database.exists() and mark.exists() and mark.read_text(encoding="utf-8") == wanted:
        return 0
    again = database.exists()
    note("Preparing Airflow's database " + ("again …" if again else "(once, about 10 seconds) …"))
    code = run_airflow(["db", "migrate"], env, log, lock)
    if code and again:
        note("Airflow's database can't be used as it is; a fresh one is made …")
        for path in folder.glob("airflow.db*"):
            path.unlink()
        code = run_airflow(["db", "migrate"], env, log, lock)
    if not code:
        mark.write_text(wanted, encoding="utf-8")
    return code


def run_airflow(
    arguments: list[str],
    env: Mapping[str, str],
    log: Path,
    lock: int,
    every: Callable[[], None] | None = None,
) -> int:
    """Run one ``airflow`` command to its end, its output appended to the log.

    Args:
        arguments: after ``airflow``.
        env: the child's whole environment.
        log: file for everything it prints.
        lock: descriptor from :func:`only_one`.
        every: called about once a second meanwhile.

    Returns:
        The exit code.

    Raises:
        Interrupted: SIGINT, SIGTERM or SIGHUP came; the child and its children are gone.
    """
    with open(log, "ab") as out, _signals_noted() as noted:
        out.write(f"--- airflow {' '.join(arguments)}\n".encode())
        out.flush()
        process = subprocess.Popen(
            [sys.executable, "-m", "airflow", *arguments],
            env=dict(env),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            pass_fds=(lock,),
            start_new_session=True,
        )
        try:
            while process.poll() is None and not noted:
                if every is not None:
                    every()
                _wait(process, 1.0)
        finally:
            _end(process)
        if noted:
            raise Interrupted(noted[0])
        return process.returncode


def last_lines(log: Path, most: int = 12) -> list[str]:
    """What went wrong, out of a log: its last traceback, else from its last error on, else its end.

    Of a long one the beginning and the end are kept: where it was called, and the message.
    """
    text = _ANSI.sub("", _tail(log, 200_000))
    lines = [line.rstrip() for line in text.splitlines() if line.strip()]
    traces = [i for i, line in enumerate(lines) if line.startswith("Traceback (most recent call last)")]
    errors = [i for i, line in enumerate(lines) if _is_error(line)]
    if traces:
        first = traces[-1]
        # What follows the message is Airflow tidying up.
        flush = [i for i in range(first + 1, len(lines)) if not lines[i].startswith(" ")]
        # From the message to the next line that is not indented: a message may have several lines.
        after = flush[1] if len(flush) > 1 else len(lines)
        block = lines[first:after]
    else:
        block = lines[errors[-1] :] if errors else lines[-most:]
    return block if len(block) <= most else [*block[: most // 3], "…", *block[-(most - most // 3) :]]


def _is_error(line: str) -> bool:
    return bool(re.search(r"\b(error|critical|exception)\b|Error:", line[:200], re.IGNORECASE))


def _tail(path: Path, size: int) -> str:
    if not path.exists():
        return ""
    with open(path, "rb") as file:
        file.seek(0, os.SEEK_END)
        file.seek(max(0, file.tell() - size))
        return _read(file)


def _read(file: IO[bytes]) -> str:
    return file.read().decode("utf-8", "replace")


def _airflow_version() -> str:
    try:
        return version("apache-airflow")
    except PackageNotFoundError:
        raise ConfigError(
            "Airflow is not installed here; `make demo` sets it up, or leave it out with --no-airflow"
        ) from None


@contextmanager
def _signals_noted() -> Iterator[list[int]]:
    """Collect requests to end instead of dying of them: the children must go first."""
    noted: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        noted.append(number)

    if threading.current_thread() is not threading.main_thread():
        yield noted  # only the main thread may set handlers
        return
    before = {n: signal.signal(n, note) for n in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    try:
        yield noted
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _wait(process: subprocess.Popen[bytes], seconds: float) -> None:
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        return


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the child's whole session: Airflow's workers are in its process group."""
    group = process.pid
    if process.poll() is None:
        _signal(group, signal.SIGTERM)
        until = time.monotonic() + GRACE_S
        while process.poll() is None and time.monotonic() < until:
            _wait(process, 0.2)
    _signal(group, signal.SIGKILL)
    process.wait()


def _signal(group: int, number: int) -> None:
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        return
