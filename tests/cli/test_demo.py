"""How the demo handles its child: one at a time, ended with its parent, its log read for a person."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from dataflow_ops.cli import airflow_process, demo
from dataflow_ops.errors import StateError
from dataflow_ops.job_file import load_job
from tests.pipeline.harness import ROOT

pytestmark = pytest.mark.xdist_group("cli")

STUB = """
import subprocess, sys, time
print("Traceback (most recent call last):")
print("ValueError: told by the stub", flush=True)
if sys.argv[1:] == ["sleep"]:
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    open("pids", "w").write(str(child.pid))
    time.sleep(600)
sys.exit(7)
"""
CALLER = """
import os, sys
from pathlib import Path
from dataflow_ops.cli import airflow_process as a
try:
    with a.only_one(Path("airflow")) as lock:
        a.run_airflow(["sleep"], dict(os.environ, PYTHONPATH="."), Path("log"), lock)
except a.Interrupted as e:
    sys.exit(e.exit_code)
"""


@pytest.fixture
def stub(tmp_path: Path) -> Path:
    """A folder with an ``airflow`` that does as told, and a caller of it."""
    (tmp_path / "airflow.py").write_text(STUB)
    (tmp_path / "caller.py").write_text(CALLER)
    return tmp_path


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().split(") ")[1][0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_caller_leaves_no_child_behind(stub: Path, number: int) -> None:
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    caller = subprocess.Popen([sys.executable, "caller.py"], cwd=stub, env=env)
    until = time.monotonic() + 60
    while not (stub / "pids").exists() or not (stub / "pids").read_text():
        assert time.monotonic() < until
        time.sleep(0.1)
    grandchild = int((stub / "pids").read_text())
    assert alive(grandchild)
    with pytest.raises(StateError, match=f"process {caller.pid}"), airflow_process.only_one(stub / "airflow"):
        pass
    caller.send_signal(number)
    assert caller.wait(60) == 128 + number
    assert not alive(grandchild)
    with airflow_process.only_one(stub / "airflow"):
        pass


def test_a_failing_child_gives_its_code_and_its_last_words(stub: Path) -> None:
    log = stub / "log"
    with airflow_process.only_one(stub / "folder") as lock:
        env = {**os.environ, "PYTHONPATH": str(stub)}
        assert airflow_process.run_airflow(["fail"], env, log, lock) == 7
    assert airflow_process.last_lines(log)[-1] == "ValueError: told by the stub"


def test_a_migration_that_can_not_be_done_is_tried_afresh_once(stub: Path) -> None:
    notes: list[str] = []
    folder = stub / "folder"
    with airflow_process.only_one(folder) as lock:
        env = {**os.environ, "PYTHONPATH": str(stub), "AIRFLOW_HOME": str(folder)}
        (folder / "airflow.db").write_bytes(b"half")
        assert airflow_process.migrate(env, stub / "log", lock, notes.append) == 7
    assert [("again" in n, "fresh" in n) for n in notes] == [(True, False), (False, True)]
    assert not (folder / "airflow.db").exists()
    assert not (folder / "airflow.db.ready").exists()


def test_the_end_of_a_log_is_what_went_wrong(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("a\n\x1b[31mb\x1b[0m\n\n")
    assert airflow_process.last_lines(log) == ["a", "b"]
    trace = ["Traceback (most recent call last):", *(f"  frame {i}" for i in range(40)), "KeyError: 'x'"]
    log.write_text("noise\n" * 50 + "\n".join(trace) + "\nPost execute\n")
    found = airflow_process.last_lines(log, 12)
    assert (found[0], found[-1], len(found)) == (trace[0], trace[-1], 13)
    log.write_text("Traceback (most recent call last):\n  frame\nConfigError: job:\n  key: wrong\nPost\n")
    assert airflow_process.last_lines(log)[-2:] == ["ConfigError: job:", "  key: wrong"]
    log.write_text("fine\n[error    ] no such table\nthen this\n")
    assert airflow_process.last_lines(log) == ["[error    ] no such table", "then this"]
    assert airflow_process.last_lines(tmp_path / "none") == []


def test_the_job_of_the_demo_is_whole(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from dataflow_ops.layers.ingest.listing import list_sources

    for name, value in demo.demo_variables(ROOT, tmp_path).items():
        monkeypatch.setenv(name, value)
    listing = list_sources(load_job(ROOT / "jobs" / "demo.yaml"))
    assert listing.num_rows >= 5_000
    found = listing.group_by("media_type").aggregate([("path", "count")]).to_pylist()
    assert len([row for row in found if row["path_count"] >= 10]) >= 4
