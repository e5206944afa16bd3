"""A real supervisor over small real processes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from dataflow_ops.stack import control, plan, processes
from dataflow_ops.stack.layout import Layout, read_json
from dataflow_ops.stack.processes import Component
from dataflow_ops.stack.supervise import cut

_SLEEP = "import time; time.sleep(600)"


def _component(name: str, code: str = _SLEEP, **fields: Any) -> Component:
    environment = {"PATH": os.environ["PATH"]}
    return Component(name, (sys.executable, "-c", code), environment, digest=code, **fields)


def _until(what: str, look: Callable[[], Any]) -> Any:
    end = time.monotonic() + 60
    while time.monotonic() < end:
        value = look()
        if value:
            return value
        time.sleep(0.05)
    raise AssertionError(f"{what}: never came")


@pytest.fixture
def layout(tmp_path: Path) -> Iterator[Layout]:
    layout = Layout(tmp_path / "home")
    layout.make()
    yield layout
    control.down(layout, lambda line: None)
    assert processes.leftovers(layout.folder, ["a", "b"]) == []


def _supervise(layout: Layout, *components: Component, grace_s: float = 5) -> None:
    plan.save(components, layout, grace_s)
    control.supervise(layout)


def _record(layout: Layout, name: str) -> processes.Record | None:
    found = processes.load(layout.pids / f"{name}.json")
    return found if processes.is_alive(found) else None


def _running(layout: Layout, name: str) -> processes.Record:
    record: processes.Record = _until(f"{name} running", lambda: _record(layout, name))
    return record


def test_what_is_killed_comes_back_and_its_record_says_how_often(layout: Layout) -> None:
    _supervise(layout, _component("a"))
    first = _running(layout, "a")
    os.kill(first.pid, signal.SIGKILL)
    second = _until(
        "another process", lambda: (r := _record(layout, "a")) is not None and r.pid != first.pid and r
    )
    assert second.pid != first.pid
    notes = _until(
        "two starts", lambda: (n := read_json(layout.pids / "a.history.json"))["starts"] == 2 and n
    )
    assert notes["ended"]["code"] == -signal.SIGKILL


def test_what_a_killed_component_left_behind_is_killed_even_in_a_session_of_its_own(layout: Layout) -> None:
    note = layout.folder / "child"
    code = (
        "import subprocess,sys,time,pathlib\n"
        f"p=subprocess.Popen([sys.executable,'-c','import time; time.sleep(600)'],start_new_session=True)\n"
        f"pathlib.Path({str(note)!r}).write_text(str(p.pid)); time.sleep(600)"
    )
    _supervise(layout, _component("a", code))
    child = psutil.Process(int(_until("a child", lambda: note.exists() and note.read_text())))
    os.kill(_running(layout, "a").pid, signal.SIGKILL)
    _until("the child's end", lambda: not child.is_running() or child.status() == psutil.STATUS_ZOMBIE)


def test_components_outlive_a_killed_supervisor_and_the_next_one_takes_them_over(layout: Layout) -> None:
    _supervise(layout, _component("a"))
    first = _running(layout, "a")
    supervisor = _running(layout, "supervisor")
    os.kill(supervisor.pid, signal.SIGKILL)
    _until("the supervisor's end", lambda: _record(layout, "supervisor") is None)
    assert _running(layout, "a") == first
    control.supervise(layout)
    _until("the next supervisor", lambda: (r := _record(layout, "supervisor")) and r.pid != supervisor.pid)
    assert _running(layout, "a") == first
    os.kill(first.pid, signal.SIGKILL)
    _until("a new process", lambda: (r := _record(layout, "a")) and r.pid != first.pid)


def test_down_ends_all_even_without_a_supervisor(layout: Layout) -> None:
    _supervise(layout, _component("a"), _component("b"))
    pids = [_running(layout, name).pid for name in ("a", "b")]
    os.kill(_running(layout, "supervisor").pid, signal.SIGKILL)
    ended: list[str] = []
    assert control.down(layout, ended.append) == 2
    assert ended == ["a ended", "b ended"]
    assert not any(psutil.pid_exists(pid) and _is_running(pid) for pid in pids)
    assert list(layout.pids.glob("*.json")) == []


def _is_running(pid: int) -> bool:
    return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE


def test_who_does_not_listen_is_killed_after_the_grace(layout: Layout) -> None:
    deaf = "import signal,time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('deaf', flush=True); "
    _supervise(layout, _component("a", deaf + "time.sleep(600)"), grace_s=0.5)
    pid = _running(layout, "a").pid
    _until("deafness", lambda: "deaf" in layout.log("a").read_text())
    control.down(layout, lambda line: None)
    assert not psutil.pid_exists(pid) or not _is_running(pid)
    assert "a: killed after" in layout.log("supervisor").read_text()


def test_what_falls_again_and_again_is_started_ever_more_rarely(layout: Layout) -> None:
    _supervise(layout, _component("a", "raise SystemExit(3)"))
    log = layout.log("supervisor")
    _until("three falls", lambda: log.exists() and log.read_text().count("a: ended with code 3") >= 3)
    pauses = [
        line.split("next start in ")[1] for line in log.read_text().splitlines() if "next start" in line
    ]
    assert pauses[:3] == ["0 s", "2 s", "4 s"]


def test_a_program_that_is_not_there_does_not_keep_the_others_from_running(layout: Layout) -> None:
    _supervise(layout, Component("a", ("/nowhere/program",), {}), _component("b"))
    _running(layout, "b")
    _until("a word about it", lambda: "a: can't be started" in layout.log("supervisor").read_text())


def test_what_runs_once_is_not_run_again_and_who_waits_for_it_starts_after_it(layout: Layout) -> None:
    note = layout.folder / "count"
    once = f"open({str(note)!r},'a').write('x')"
    parts = (_component("prepare", once, once=True), _component("b", after=("prepare",)))
    _supervise(layout, *parts)
    _running(layout, "b")
    assert note.read_text() == "x"
    control.down(layout, lambda line: None)
    _supervise(layout, *parts)
    _running(layout, "b")
    assert note.read_text() == "x"


def test_a_changed_plan_is_taken_up_and_what_stays_in_it_is_left_alone(layout: Layout) -> None:
    _supervise(layout, _component("a"), _component("b"))
    a, b = _running(layout, "a"), _running(layout, "b")
    plan.save([_component("b"), _component("c")], layout, 5)
    _running(layout, "c")
    _until("the end of a", lambda: not processes.is_alive(a))
    assert _running(layout, "b") == b
    control.down(layout, lambda line: None)


def test_there_is_only_one_supervisor(layout: Layout) -> None:
    _supervise(layout, _component("a"))
    first = _running(layout, "supervisor")
    command = [sys.executable, "-m", "dataflow_ops.stack.supervise", str(layout.home)]
    second = subprocess.run(command, capture_output=True, text=True, check=False)
    assert second.returncode == 1
    assert "another supervisor" in second.stderr
    assert _running(layout, "supervisor") == first


def test_a_record_from_before_a_reboot_names_nobody_and_nobody_is_killed(layout: Layout) -> None:
    innocent = subprocess.Popen([sys.executable, "-c", _SLEEP], start_new_session=True)
    try:
        stale = processes.Record(innocent.pid, processes.record_of(innocent.pid).started - 1000)
        processes.save(stale, layout.pids / "a.json")
        processes.save(stale, layout.pids / "supervisor.json")
        assert not processes.is_alive(stale)
        _supervise(layout, _component("a"))
        assert _running(layout, "a").pid != innocent.pid
        assert innocent.poll() is None
    finally:
        innocent.kill()
        innocent.wait()


def test_a_damaged_record_is_no_record(layout: Layout) -> None:
    path = layout.pids / "a.json"
    path.write_text(json.dumps({"pid": 1, "wrong": 2}), encoding="utf-8")
    assert processes.load(path) is None
    path.write_text("{", encoding="utf-8")
    assert processes.load(path) is None


def test_a_long_log_is_moved_aside_while_its_writer_goes_on(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    with open(log, "ab", buffering=0) as writer:
        writer.write(b"x" * 100)
        assert not cut(log, most=100)
        writer.write(b"y")
        assert cut(log, most=100)
        writer.write(b"new")
    assert (tmp_path / "a.log.1").read_bytes() == b"x" * 100 + b"y"
    assert log.read_bytes() == b"new"
