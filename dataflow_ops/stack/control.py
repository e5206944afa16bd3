"""Starting, looking at and ending the stack: what the commands do, without a terminal."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from dataflow_ops.errors import ConfigError, StackError
from dataflow_ops.stack import plan, processes
from dataflow_ops.stack.account import data_folder, unprivileged
from dataflow_ops.stack.binaries import find_programs
from dataflow_ops.stack.components import stages
from dataflow_ops.stack.environment import as_shell, connection, environment, inherited, local_places
from dataflow_ops.stack.keys import load_keys
from dataflow_ops.stack.layout import Layout, write_json, write_private
from dataflow_ops.stack.object_store import find_weed
from dataflow_ops.stack.ports import check_ports
from dataflow_ops.stack.processes import Component
from dataflow_ops.stack.relay_part import relay_part
from dataflow_ops.stack.report import Row, is_up, look
from dataflow_ops.stack.servers import create_cluster, write_access, write_redis
from dataflow_ops.stack.settings import StackSettings

_TRIES = 3
"""A component that fell this often while ``up`` waits does not come up."""
_TAIL_LINES = 25


@dataclass(frozen=True)
class Login:
    """Where to go and who to be."""

    url: str
    user: str
    password: str


def up(
    settings: StackSettings,
    shell: Mapping[str, str],
    note: Callable[[str], None],
    show: Callable[[list[Row]], None],
) -> Login:
    """Start what is not running and wait until all is healthy; a running stack stays as it is.

    Args:
        settings: the settings file.
        shell: the caller's environment; part of it is handed on.
        note: told about each thing that is done before components start.
        show: given the state of all components about once a second.

    Raises:
        ConfigError: a program is missing, a port is taken, or settings changed under a running stack.
        StackError: a component does not come up; the message shows the end of its log.
    """
    layout = Layout(settings.home)
    _refuse_embedded(settings)
    layout.make()
    with _alone(layout):
        programs, weed = find_programs(), find_weed(settings)
        programs |= {} if weed is None else {"weed": weed}
        account = unprivileged()
        data = data_folder(layout.folder, account)
        keys = load_keys(layout)
        own = environment(settings, local_places(settings, layout.airflow, "weed" in programs), keys)
        components = plan.build(settings, layout, keys, programs, data, account, own, inherited(shell))
        relay = relay_part(settings, own, shell)
        if relay is not None:
            components.append(relay)
        running = _running(components, layout)
        check_ports(settings, [c.name for c in components if c.name not in running])
        if data.parent != layout.folder:
            note(f"PostgreSQL's files are in {data}: {account and account.name} can't enter {layout.folder}")
        if create_cluster(programs["initdb"], data, account, keys):
            note("created the PostgreSQL cluster")
        write_access(data, settings, account)
        write_redis(layout, settings, keys)
        write_private(layout.environment, as_shell(own))
        write_json(layout.connect, connection(own))
        login = Login(own["AIRFLOW__API__BASE_URL"], settings.user, keys.admin_password)
        write_json(layout.api, {"url": login.url, "user": login.user, "password": login.password})
        if not _same(components, layout):
            plan.save(components, layout, settings.stop_timeout_s)
        supervise(layout)
        _wait(layout, settings.start_timeout_s, show)
    return login


def supervise(layout: Layout) -> None:
    """Start the supervisor unless one runs."""
    if processes.is_alive(processes.load(layout.pids / "supervisor.json")):
        return
    with open(layout.log("supervisor"), "ab") as out:
        subprocess.Popen(
            [sys.executable, "-m", "dataflow_ops.stack.supervise", str(layout.home)],
            cwd=layout.folder,
            env={**inherited(os.environ), "PYTHONUNBUFFERED": "1"},
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            start_new_session=True,
        )


def down(layout: Layout, note: Callable[[str], None]) -> int:
    """End everything, in order; data stay. How many components were running.

    Raises:
        StackError: the supervisor did not end in time.
    """
    components, grace_s = plan.load(layout)
    running = list(_running(components, layout))
    record = processes.load(layout.pids / "supervisor.json")
    if record is not None and processes.is_alive(record):
        os.kill(record.pid, signal.SIGTERM)
        until = time.monotonic() + (grace_s + 5) * (len(components) + 1)
        seen = set(running)
        alive = True
        while alive:
            if time.monotonic() > until:
                raise StackError(
                    f"the supervisor (process {record.pid}) does not end; see {layout.log('supervisor')}"
                )
            time.sleep(0.2)
            alive = processes.is_alive(record)
            left = set(_running(components, layout))
            for name in [name for name in running if name in seen - left]:
                note(f"{name} ended")
            seen = left
    # Whatever no supervisor ended: it may have been killed.
    orphans = _running(components, layout)
    signals = {component.name: component.stop for component in components}
    for stage in stages(list(signals)):
        now = {name: (orphans[name], signals[name]) for name in stage if name in orphans}
        processes.end(layout.folder, now, grace_s)
        for name in now:
            note(f"{name} ended")
    processes.clear(layout.folder, signals)
    for path in layout.pids.glob("*.json"):
        path.unlink()
    return len(running)


def purge(layout: Layout) -> None:
    """Remove the stack's folder: databases, logs and secrets. Data sets' files stay.

    Raises:
        ConfigError: something still runs.
    """
    components, _ = plan.load(layout)
    if _running(components, layout):
        raise ConfigError("the stack still runs; `dataflow stack down` first")
    account = unprivileged()
    data = data_folder(layout.folder, account)
    shutil.rmtree(layout.folder)
    if data.parent != layout.folder and data.exists():
        shutil.rmtree(data.parent)


def _wait(layout: Layout, timeout_s: float, show: Callable[[list[Row]], None]) -> None:
    until = time.monotonic() + timeout_s
    first = {row.name: row.starts for row in look(layout, deep=False)}
    while True:
        rows = look(layout)
        show(rows)
        if is_up(rows):
            return
        for row in rows:
            if row.state != "healthy" and row.starts - first.get(row.name, 0) >= _TRIES:
                raise StackError(
                    f"{row.name} does not stay up; it is tried again, but look at {layout.log(row.name)}"
                    f" first. Its end:\n{tail(layout, row.name)}"
                )
        if time.monotonic() > until:
            late = [row for row in rows if row.state not in ("healthy", "done")]
            told = "\n".join(f"{r.name}: {r.state}, {r.detail}; {layout.log(r.name)}" for r in late)
            raise StackError(
                f"not all is healthy after {timeout_s:.0f} s; it may still come, see `dataflow stack status`."
                f"\n{told}\nEnd of the first one's log:\n{tail(layout, late[0].name)}"
            )
        time.sleep(0.5)


def tail(layout: Layout, name: str, lines: int = _TAIL_LINES) -> str:
    """The last lines of a component's log."""
    path = layout.log(name)
    if not path.exists():
        return "(no log yet)"
    with open(path, "rb") as file:
        file.seek(0, os.SEEK_END)
        file.seek(max(0, file.tell() - 400 * lines))
        text = file.read().decode("utf-8", "replace")
    return "\n".join(text.splitlines()[-lines:])


def _refuse_embedded(settings: StackSettings) -> None:
    if (settings.home / "state.db").exists():
        raise ConfigError(
            f"{settings.home}: this home keeps its state in SQLite already, the stack would keep it in"
            " PostgreSQL. Two states over the same files would remove each other's; take another folder"
            " with --home"
        )


def _running(components: list[Component], layout: Layout) -> dict[str, processes.Record]:
    found = {}
    for component in components:
        record = processes.load(layout.pids / f"{component.name}.json")
        if record is not None and processes.is_alive(record):
            found[component.name] = record
    return found


def _same(components: list[Component], layout: Layout) -> bool:
    """Whether what runs was started with these settings; the plan need not be written again.

    Raises:
        ConfigError: something that runs was started with others.
    """
    wanted = {component.name: component.digest for component in components}
    changed = sorted(
        name
        for name, record in _running(components, layout).items()
        if record.digest != wanted[name] and name != "prepare"
    )
    if changed:
        raise ConfigError(
            f"settings changed since these started: {', '.join(changed)}."
            " `dataflow stack down`, then up again, takes them over"
        )
    known, _ = plan.load(layout)
    supervised = processes.is_alive(processes.load(layout.pids / "supervisor.json"))
    return supervised and [(c.name, c.digest) for c in known] == list(wanted.items())


@contextmanager
def _alone(layout: Layout) -> Iterator[None]:
    with open(layout.folder / "up.lock", "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StackError(
                "another `dataflow stack up` is at work on this home; wait for it, or end it"
            ) from None
        yield
