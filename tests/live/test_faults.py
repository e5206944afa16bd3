"""Faults on a live stack that CI can afford; ``python -m bench.live_faults`` has them all."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from tests.live.lab import Ending, Lab, build_job, reference
from tests.stack.live import live_stack, missing

pytestmark = [
    pytest.mark.stack,
    pytest.mark.crash,
    pytest.mark.postgres,
    pytest.mark.redis,
    pytest.mark.timeout(1800),
    pytest.mark.xdist_group("stack"),
]


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    why = missing()
    if why:
        if os.environ.get("DATAFLOW_REQUIRE_STACK") == "1":
            pytest.fail(why)
        pytest.skip(why)
    base: Path = tmp_path_factory.mktemp("faults")
    job = build_job(base / "in", base / "jobs", files=24, rows=24)
    wanted = reference(job, base / "reference")
    with live_stack(base / "home", jobs=base / "jobs", airflow={"dag_refresh_s": 5}) as stack:
        yield Lab(stack, wanted)


@pytest.fixture
def run(lab: Lab) -> Iterator[str]:
    """A run of which the filter is under way."""
    lab.stack.wait_healthy(300)
    lab.fresh()
    yield lab.trigger()
    lab.give_up()


def ended(lab: Lab, run: str) -> Ending:
    ending = lab.judge(run, lab.end(run, 900))
    assert ending.wrong == []
    assert ending.same
    return ending


def test_a_killed_worker_costs_one_retry_of_what_it_had(lab: Lab, run: str) -> None:
    work = lab.at_work("filter")
    lab.stack.kill(lab.worker_of(work))
    ending = ended(lab, run)
    # It may have held two tasks, with a chunk in each.
    assert ending.chunks <= 2
    assert set(ending.tries.values()) <= {2}


def test_a_paused_run_stays_so_without_redis_and_triggerer(lab: Lab, run: str) -> None:
    lab.at_work("filter")
    lab.pause(run)
    with redis.Redis.from_url(lab.stack.environment()["AIRFLOW__CELERY__BROKER_URL"]) as broker:
        broker.flushall()
    with redis.Redis.from_url(lab.stack.environment()["DATAFLOW_REDIS_URL"]) as flags:
        flags.flushdb()
    lab.stack.kill("triggerer")
    lab.stack.wait_healthy(300)
    time.sleep(5)  # time to go on by itself, if it were to
    assert lab.run_state(run) == "PAUSED"
    assert lab.instances(run, ("running", "queued")) == []
    lab.command("resume", lab.ours(run))
    ending = ended(lab, run)
    assert ending.chunks == 0
    assert ending.tries == {}


def test_a_restart_of_postgresql_costs_no_attempt_at_a_chunk(lab: Lab, run: str) -> None:
    lab.at_work("filter")
    lab.stack.kill("postgres", group=False, number=signal.SIGINT)
    assert ended(lab, run).chunks == 0
