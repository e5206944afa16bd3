"""Several processes, one truth: stopped, locked out, killed, or cut off from the database."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import threading
import time
from pathlib import Path

import psutil
import psycopg
import pytest

from dataflow_ops.errors import CommitUnknown, DatabaseUnavailable
from dataflow_ops.pipeline.home import open_home
from dataflow_ops.state.store import StateStore
from tests.pipeline import child, inside, trouble
from tests.pipeline.inside import published


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return inside.sources(tmp_path_factory.mktemp("leases") / "in", files=9, run="max_attempts: 9")


@pytest.fixture(scope="module")
def wanted(job: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    home = tmp_path_factory.mktemp("reference")
    inside.run(job, home)
    return published(home)


def wait_for(found: Path, seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not found.exists():
        assert time.monotonic() < end, f"{found} never came"
        time.sleep(0.05)


@pytest.mark.crash
def test_a_worker_that_slept_beyond_its_lease(job: Path, wanted: dict[str, str], tmp_path: Path) -> None:
    """Another takes over and ends the run; the sleeper finds its lease gone and adds nothing."""
    home, mark = tmp_path / "home", tmp_path / "mark"
    stop = trouble.Signal("before publish sign", mark, number=signal.SIGSTOP)
    sleeper = child.start(job, home, tuning={"lease_s": 1.0}, hooks=stop)
    wait_for(mark)
    assert inside.run(job, home, tuning={"lease_s": 1.0}).state == "SUCCEEDED"
    done = published(home)
    os.killpg(sleeper.pid, signal.SIGCONT)
    assert child.end(sleeper) == "SUCCEEDED"
    assert done == wanted == published(home)
    state = StateStore(open_home(home).state_url)
    epochs = [r.epoch for r in state.records_of_step(state.list_runs()[0].run_id, "sign").values()]
    assert sorted(epochs)[-1] == 2
    assert len(list(home.glob("data/sign/*/*.tmp_*"))) == 0


@pytest.mark.crash
def test_killed_at_random_and_started_again(job: Path, wanted: dict[str, str], tmp_path: Path) -> None:
    """Parent, worker or any child, at any time; what is left of a dead parent ends by itself."""
    chance = random.Random(7)
    homes = [tmp_path / "home-0"]
    for _ in range(6):
        process = child.start(job, homes[-1], workers=2)
        time.sleep(chance.uniform(1.2, 5))
        family = [psutil.Process(process.pid), *psutil.Process(process.pid).children(recursive=True)]
        victim = chance.choice(family)
        victim.kill()
        if victim.pid == process.pid:
            _, alive = psutil.wait_procs(family, timeout=5)
            assert not alive, f"orphans go on: {alive}"
        if child.end(process, expect=None) == "SUCCEEDED":
            assert published(homes[-1]) == wanted
            homes.append(tmp_path / f"home-{len(homes)}")
    inside.run(job, homes[-1])
    assert published(homes[-1]) == wanted


@pytest.mark.parametrize("workers", [0, 1])
def test_interrupted_by_a_person_costs_no_attempt(
    job: Path, wanted: dict[str, str], tmp_path: Path, workers: int
) -> None:
    home, mark = tmp_path / "home", tmp_path / "mark"
    hang = trouble.Hang("before commit unite", mark)
    process = child.start(job, home, workers=workers, hooks=hang)
    wait_for(mark)
    os.killpg(process.pid, signal.SIGINT)  # Ctrl-C reaches the whole group
    child.end(process, expect=None)
    state = StateStore(open_home(home).state_url)
    run = state.list_runs()[0]
    [unite] = state.records_of_step(run.run_id, "unite").values()
    assert (unite.state, unite.attempt) == ("PAUSED", 1)
    assert inside.run(job, home).state == "SUCCEEDED"
    assert state.records([unite.key])[unite.key].attempt == 1
    assert published(home) == wanted


def test_a_database_that_is_locked_for_seconds(job: Path, wanted: dict[str, str], tmp_path: Path) -> None:
    home = tmp_path / "home"

    def lock() -> None:
        blocker = sqlite3.connect(home / "state.db", isolation_level=None, check_same_thread=False)
        blocker.execute("BEGIN IMMEDIATE")
        threading.Timer(2.5, blocker.close).start()

    left = [lock]
    hooks = inside.At("before publish filter", lambda: left.pop()() if left else None)
    assert inside.run(job, home, hooks=hooks, tuning={"lease_s": 1.0}).state == "SUCCEEDED"
    assert not left
    assert published(home) == wanted


@pytest.mark.postgres
def test_postgresql_gives_the_same_bytes_through_a_restart(
    job: Path, wanted: dict[str, str], tmp_path: Path, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every connection is cut while tasks run, as a restart of the server does."""
    monkeypatch.setenv("DATAFLOW_STATE_URL", postgres_url)
    cuts = []

    def cut() -> None:
        cuts.append(1)
        if len(cuts) in (1, 4):
            with psycopg.connect(postgres_url, autocommit=True) as connection:
                connection.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                    " WHERE datname = current_database() AND pid <> pg_backend_pid()"
                )

    for _ in range(3):
        try:
            inside.run(job, tmp_path / "home", hooks=inside.At("before commit sign", cut))
            break
        except (CommitUnknown, DatabaseUnavailable):
            continue  # the run may end when the database goes; it must go on when it is back
    assert published(tmp_path / "home") == wanted
