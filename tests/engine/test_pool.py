"""Workers that die, wait for others, stop on demand, and never outlive whoever started them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from dataflow_ops.engine.pool import Pool
from dataflow_ops.state.store import StateStore
from tests.engine import tiny_steps

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("workers", [0, 2])
def test_all_tasks_end(tmp_path: Path, workers: int) -> None:
    context = tiny_steps.context_in(tmp_path)
    specs = tiny_steps.enqueued(context, "a", "b", "c", "d", "e")
    with Pool(context, tiny_steps.build, workers) as pool:
        outcomes = list(pool.run(specs, tiny_steps.NUMBERS, 0))
        again = list(pool.run(specs, tiny_steps.NUMBERS, 0))
    assert {(o.spec.partition, o.ending) for o in outcomes} == {(p, "done") for p in "abcde"}
    assert [o.ending for o in again] == ["skipped"] * 5


def test_a_step_must_give_a_cursor_always_or_never(tmp_path: Path) -> None:
    """Rows given without one would be lost by a resume at the next."""
    context = tiny_steps.context_in(tmp_path)
    specs = tiny_steps.enqueued(context, "mixed")
    with Pool(context, tiny_steps.build, 0) as pool:
        [outcome] = pool.run(specs, tiny_steps.NUMBERS, 0)
    assert (outcome.ending, "some of its results only" in outcome.message) == ("failed", True)


@pytest.mark.parametrize("own", [None, "5"])
def test_workers_are_started_with_settings_that_the_parent_does_not_keep(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, own: str | None
) -> None:
    monkeypatch.delenv("MIMALLOC_PURGE_DELAY", raising=False)
    if own is not None:
        monkeypatch.setenv("MIMALLOC_PURGE_DELAY", own)
    before = dict(os.environ)
    context = tiny_steps.context_in(tmp_path)
    with Pool(context, tiny_steps.build, 1) as pool:
        list(pool.run(tiny_steps.enqueued(context, "a"), tiny_steps.NUMBERS, 0))
        worker = Path("/proc", (tmp_path / "a.pids").read_text().strip(), "environ").read_bytes().split(b"\0")
    assert b"OMP_NUM_THREADS=1" in worker
    assert f"MIMALLOC_PURGE_DELAY={own or 10000}".encode() in worker
    assert dict(os.environ) == before


@pytest.mark.crash
def test_a_worker_that_dies_gives_its_task_back_and_others_go_on(tmp_path: Path) -> None:
    context = tiny_steps.context_in(tmp_path)
    specs = tiny_steps.enqueued(context, "die-once", "b", "c")
    with Pool(context, tiny_steps.build, 1) as pool:
        outcomes = {o.spec.partition: o for o in pool.run(specs, tiny_steps.NUMBERS, 0)}
        assert outcomes["die-once"].ending == "failed"
        assert outcomes["die-once"].message == "WorkerDied: the worker process ended with SIGKILL"
        assert [outcomes[p].ending for p in "bc"] == ["done", "done"]
        # Its owner is known to be gone, so that nobody waits for its lease.
        began = time.monotonic()
        [again] = pool.run(specs[:1], tiny_steps.NUMBERS, 0)
    assert again.ending == "done"
    assert time.monotonic() - began < context.lease_s / 4


@pytest.mark.crash
def test_a_worker_that_dies_idle_costs_no_task_anything(tmp_path: Path) -> None:
    context = tiny_steps.context_in(tmp_path)
    specs = tiny_steps.enqueued(context, "a", "b")
    with Pool(context, tiny_steps.build, 1) as pool:
        assert [o.ending for o in pool.run(specs[:1], tiny_steps.NUMBERS, 0)] == ["done"]
        os.kill(int((tmp_path / "a.pids").read_text()), signal.SIGKILL)
        time.sleep(0.2)
        assert [o.ending for o in pool.run(specs[1:], tiny_steps.NUMBERS, 0)] == ["done"]


def test_a_worker_that_can_not_begin_gives_its_task_back_unclaimed(tmp_path: Path) -> None:
    context = tiny_steps.context_in(tmp_path)
    [spec] = tiny_steps.enqueued(context, "a")
    with Pool(context, tiny_steps.build_nothing, 1) as pool:
        [outcome] = pool.run([spec], tiny_steps.NUMBERS, 0)
    assert outcome.message == "WorkerDied: the worker process ended with exit code 1"
    with StateStore(context.state_url) as state:
        assert state.records([spec.key])[spec.key].state == "PENDING"


def test_a_task_that_somebody_else_holds_is_waited_for(tmp_path: Path) -> None:
    context = tiny_steps.context_in(tmp_path)
    specs = tiny_steps.enqueued(context, "a", "b")
    with StateStore(context.state_url) as state:
        # Another host's, so that nobody can look whether it lives; silent from now on.
        assert state.claim(specs[0].key, "elsewhere:1:1", lease_s=1.0) is not None
        with Pool(context, tiny_steps.build, 0) as pool:
            began = time.monotonic()
            outcomes = list(pool.run(specs, tiny_steps.NUMBERS, 0))
        assert [o.ending for o in outcomes] == ["done", "done"]
        assert time.monotonic() - began >= 0.9
        assert state.records([specs[0].key])[specs[0].key].epoch == 2


@pytest.mark.parametrize("workers", [0, 1])
def test_halted_lets_what_runs_end_and_begins_nothing(tmp_path: Path, workers: int) -> None:
    context = tiny_steps.context_in(tmp_path)
    specs = tiny_steps.enqueued(context, "slow-a", "slow-b", "slow-c")
    ended: list[str] = []
    with Pool(context, tiny_steps.build, workers) as pool:
        for outcome in pool.run(specs, tiny_steps.NUMBERS, 0, lambda: bool(ended)):
            ended.append(outcome.spec.partition)
        assert ended == ["slow-a"]
        assert list(pool.run(specs[1:], tiny_steps.NUMBERS, 0, lambda: True)) == []


def test_a_run_left_in_the_middle_does_not_leak_into_the_next(tmp_path: Path) -> None:
    context = tiny_steps.context_in(tmp_path)
    specs = tiny_steps.enqueued(context, "a", "slow-b", "c")
    with Pool(context, tiny_steps.build, 2) as pool:
        for _ in pool.run(specs[:2], tiny_steps.NUMBERS, 0):
            break
        assert [o.spec.partition for o in pool.run(specs[2:], tiny_steps.NUMBERS, 0)] == ["c"]


@pytest.mark.crash
def test_workers_end_with_their_parent_even_in_the_middle_of_a_task(tmp_path: Path) -> None:
    script = (
        "from tests.engine import tiny_steps as t\n"
        "from dataflow_ops.engine.pool import Pool\n"
        "from pathlib import Path\n"
        "import sys, time\n"
        "if __name__ == '__main__':\n"
        "    c = t.context_in(Path(sys.argv[1]))\n"
        "    s = t.enqueued(c, *(f'slow-{i}' for i in range(90)))\n"
        "    list(Pool(c, t.build, 2).run(s, t.NUMBERS, 0))\n"
    )
    path = tmp_path / "script.py"
    path.write_text(script)
    parent = subprocess.Popen(
        [sys.executable, str(path), str(tmp_path)], env={**os.environ, "PYTHONPATH": str(ROOT)}
    )
    end = time.monotonic() + 60
    while len(list(tmp_path.glob("slow-*.pids"))) < 2:
        assert time.monotonic() < end
        time.sleep(0.05)
    family = psutil.Process(parent.pid).children(recursive=True)
    assert len(family) >= 2
    parent.kill()
    parent.wait()
    _, alive = psutil.wait_procs(family, timeout=3)
    assert not alive


def test_who_closes_at_once_waits_for_no_worker(tmp_path: Path) -> None:
    context = tiny_steps.context_in(tmp_path)
    specs = tiny_steps.enqueued(context, "ask-for-ever", "b")
    asking = tmp_path / "ask-for-ever.asking"

    def interrupted() -> bool:
        if asking.exists():
            raise SystemExit
        return False

    pool = Pool(context, tiny_steps.build, 1)
    with pytest.raises(SystemExit):
        list(pool.run(specs, tiny_steps.NUMBERS, 0, interrupted))
    # Nobody says "enough": a close that waited for it would end in a kill all the same, but 5 s later.
    pool.close(at_once=True)
    assert pool.cut_off == specs[:1]
    pid = int((tmp_path / "ask-for-ever.pids").read_text())
    assert not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
