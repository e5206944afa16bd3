"""The supervisor: one small process that keeps a plan's components alive (``python -m … FOLDER``).

It is told nothing but the stack's home. It reads the plan again whenever that changes, adopts components that
a predecessor started, starts what is missing once what it waits for answers, and on SIGTERM ends all in
reverse order. When it is killed itself, the components go on; the next one finds them by their records.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import FrameType

from dataflow_ops.errors import ConfigError
from dataflow_ops.stack import plan, processes
from dataflow_ops.stack.components import PREPARE, stages
from dataflow_ops.stack.health import answers
from dataflow_ops.stack.layout import Layout, read_json, write_json
from dataflow_ops.stack.processes import Component, Record

LOOK_EVERY_S = 0.5
STEADY_S = 60.0
"""A component that ran this long is thought well: its next fall starts with the shortest pause again."""
MOST_PAUSE_S = 60.0
CUT_EVERY_S = 60.0
MOST_LOG_BYTES = 64 * 2**20


class Keeper:
    """Keeps one component alive.

    Args:
        component: what to run.
        layout: where records and logs are.
    """

    def __init__(self, component: Component, layout: Layout) -> None:
        self.component = component
        self._layout = layout
        self._path = layout.pids / f"{component.name}.json"
        self._process: subprocess.Popen[bytes] | None = None
        self._notes = read_json(self._notes_path) or {"starts": 0, "ended": None}
        self._falls = 0
        self._not_before = 0.0
        self._since = time.monotonic()

    @property
    def _notes_path(self) -> Path:
        return self._layout.pids / f"{self.component.name}.history.json"

    @property
    def record(self) -> Record | None:
        """Its process, running or not."""
        return processes.load(self._path)

    def is_done(self) -> bool:
        """Whether a component that runs once has ended well under its present settings."""
        return self.component.once and read_json(self._layout.prepared) == self.component.digest

    def tend(self, ready: bool) -> None:
        """Look once: note an end, start again after a pause that doubles with each fall.

        Args:
            ready: whether all that it waits for answers.
        """
        now = time.monotonic()
        code = None if self._process is None else self._process.poll()  # also reaps
        if processes.is_alive(self.record):
            if now - self._since > STEADY_S:
                self._falls = 0
            return
        if self.is_done():
            return
        if self.record is not None:
            self._fallen(code, now)
            if self.is_done():
                return
        if ready and now >= self._not_before:
            self._start(now)

    def _fallen(self, code: int | None, now: float) -> None:
        self._process = None
        left = processes.clear(self._layout.folder, [self.component.name])
        self._path.unlink(missing_ok=True)
        if self.component.once and code == 0:
            write_json(self._layout.prepared, self.component.digest)
            _say(f"{self.component.name}: done")
            return
        pause = min(MOST_PAUSE_S, 2.0**self._falls) if self._falls else 0.0
        self._falls += 1
        self._not_before = now + pause
        how = "ended" if code is None else f"ended with code {code}"
        self._note(ended={"at": time.time(), "code": code})
        _say(
            f"{self.component.name}: {how}; {left} left-over process(es) killed; next start in {pause:.0f} s"
        )

    def _start(self, now: float) -> None:
        processes.clear(self._layout.folder, [self.component.name])
        try:
            self._process = processes.start(
                self.component, self._layout.folder, self._layout.log(self.component.name)
            )
        except OSError as e:
            self._not_before = now + MOST_PAUSE_S
            self._note(ended={"at": time.time(), "code": None})
            _say(f"{self.component.name}: can't be started: {e}")
            return
        self._since = now
        record = processes.record_of(self._process.pid, self.component.digest)
        processes.save(record, self._path)
        self._note(starts=int(self._notes["starts"]) + 1)
        _say(f"{self.component.name}: started, pid {self._process.pid}")

    def _note(self, **news: object) -> None:
        self._notes.update(news)
        write_json(self._notes_path, self._notes)

    def forget(self) -> None:
        """It was ended on purpose: nothing is left to know of it."""
        if self._process is not None:
            self._process.wait()
        self._path.unlink(missing_ok=True)
        self._notes_path.unlink(missing_ok=True)


class Supervisor:
    """Tends all keepers until told to end."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._keepers: dict[str, Keeper] = {}
        self._grace_s = 0.0
        self._read = 0
        self._cut = time.monotonic()
        self.ending = False

    def turn(self) -> None:
        """Take up a changed plan, cut long logs, then look after each component once."""
        if time.monotonic() - self._cut > CUT_EVERY_S:
            self._cut = time.monotonic()
            for path in self._layout.logs.glob("*.log"):
                cut(path)
        changed = self._layout.plan.stat().st_mtime_ns
        if changed != self._read:
            self._take_up()
            self._read = changed
        known: dict[str, bool] = {}
        for keeper in self._keepers.values():
            component = keeper.component
            waiting = not keeper.is_done() and not processes.is_alive(keeper.record)
            ready = waiting and all(self._answers(name, known) for name in component.after)
            keeper.tend(ready)

    def end(self) -> None:
        """End all, stage by stage, so that who still works finds what it needs."""
        for stage in stages(list(self._keepers)):
            self._end(stage)

    def _end(self, names: list[str]) -> None:
        keepers = [self._keepers.pop(name) for name in names]
        running = {
            keeper.component.name: (record, keeper.component.stop)
            for keeper in keepers
            if (record := keeper.record) is not None
        }
        killed = processes.end(self._layout.folder, running, self._grace_s)
        for keeper in keepers:
            keeper.forget()
        for name in running:
            _say(f"{name}: {f'killed after {self._grace_s:.0f} s' if name in killed else 'ended'}")

    def _answers(self, name: str, known: dict[str, bool]) -> bool:
        if name not in known:
            keeper = self._keepers[name]
            known[name] = (
                keeper.is_done()
                if name == PREPARE
                else processes.is_alive(keeper.record)
                and answers(name, self._keepers[PREPARE].component.environment)
            )
        return known[name]

    def _take_up(self) -> None:
        try:
            components, self._grace_s = plan.load(self._layout)
        except ConfigError as e:
            _say(str(e))
            return
        wanted = {component.name: component for component in components}
        self._end([name for name in self._keepers if name not in wanted])
        keepers = {}
        for name, component in wanted.items():
            keeper = self._keepers.get(name)
            if keeper is None:
                keeper = Keeper(component, self._layout)
            keeper.component = component
            keepers[name] = keeper
        self._keepers = keepers


def main(home: Path) -> int:
    """Run until SIGTERM or SIGINT; exit code."""
    layout = Layout(home)
    lock = os.open(layout.folder / "supervisor.lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        _say("another supervisor looks after this stack already")
        return 1
    processes.save(processes.record_of(os.getpid()), layout.pids / "supervisor.json")
    supervisor = Supervisor(layout)

    def note(number: int, frame: FrameType | None) -> None:
        supervisor.ending = True

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, note)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    _say("looking after the stack")
    while not supervisor.ending:
        try:
            supervisor.turn()
        except OSError as e:
            # A full disk passes; whoever gives up here leaves the stack without anybody to look after it.
            _say(f"this turn failed: {e}")
        time.sleep(LOOK_EVERY_S)
    supervisor.end()
    _say("all ended")
    (layout.pids / "supervisor.json").unlink(missing_ok=True)
    return 0


def cut(log: Path, most: int = MOST_LOG_BYTES) -> bool:
    """Move a log that got long to ``NAME.log.1``, over the one before; whether it was.

    Its writer keeps the file open for appending, so it is copied and emptied in place.
    """
    if log.stat().st_size <= most:
        return False
    shutil.copyfile(log, log.with_name(f"{log.name}.1"))
    os.truncate(log, 0)
    return True


def _say(line: str) -> None:
    sys.stderr.write(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {line}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
