"""Faults on a live stack: each run must end with the bytes of ``dataflow run``, published once.

    python -m bench.live_faults                     one stack, every fault in turn
    python -m bench.live_faults --only postgres     those whose name holds the word
    python -m bench.live_faults --keep              leave the folder (logs of all processes) behind

A line for each fault: what was done at which moment, seconds until the run had ended, attempts of our tasks
and tries of Airflow's beyond the first, and whether bytes and records are as they must be. The exit code is 1
where any is not.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import redis

from dataflow_ops.stack.environment import LOCAL_SETTINGS
from tests.live import deliver
from tests.live.backfills import build_days, two_at_once
from tests.live.lab import DAG, Ending, Lab, build_job, reference
from tests.stack.live import ROOT, live_stack


@dataclass(frozen=True)
class Fault:
    """One fault.

    Attributes:
        name: for ``--only``.
        moment: when it is put in, for people.
        act: puts it in; gets the lab and the run, returns the run to be judged (mostly the same one).
        free: attempts of our tasks that it may cost: nothing failed where it is 0.
    """

    name: str
    moment: str
    act: Callable[[Lab, str], str]
    free: int = 0


def say(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {text}", flush=True)


def kill_worker(lab: Lab, run: str) -> str:
    name = lab.worker_of(lab.at_work("filter"))
    lab.stack.kill(name)
    return run


def kill_triggerer(lab: Lab, run: str) -> str:
    lab.at_work("filter")
    lab.pause(run)
    lab.stack.kill("triggerer")
    time.sleep(5)
    lab.command("resume", lab.ours(run))
    return run


def kill_scheduler(lab: Lab, run: str) -> str:
    lab.at_work("filter")
    lab.stack.kill("scheduler")
    return run


def kill_supervisor(lab: Lab, run: str) -> str:
    lab.at_work("filter")
    lab.stack.kill("supervisor", group=False)
    for name in ("scheduler", lab.worker_of(lab.at_work("filter"))):
        lab.stack.kill(name)
    time.sleep(20)
    done = lab.stack.up()
    assert done.returncode == 0, done.stdout + done.stderr
    return run


def restart_redis(lab: Lab, run: str) -> str:
    lab.at_work("filter")
    lab.stack.kill("redis")
    return run


def flush_redis(lab: Lab, run: str) -> str:
    lab.at_work("filter")
    _flush(lab)
    return run


def _flush(lab: Lab) -> None:
    own = lab.stack.environment()
    for name in ("DATAFLOW_REDIS_URL", "AIRFLOW__CELERY__BROKER_URL"):
        with redis.Redis.from_url(own[name]) as client:
            client.flushall()


def flush_while_paused(lab: Lab, run: str) -> str:
    lab.at_work("filter")
    lab.pause(run)
    _flush(lab)
    lab.stack.kill("redis")
    time.sleep(15)
    assert lab.run_state(run) == "PAUSED", "it went on by itself"
    assert not lab.instances(run, ("running", "queued"))
    lab.command("resume", lab.ours(run))
    return run


def postgres_fast(lab: Lab, run: str) -> str:
    lab.at_work("filter")
    lab.stack.kill("postgres", group=False, number=signal.SIGINT)
    return run


def postgres_immediate(lab: Lab, run: str) -> str:
    lab.at_work("filter")
    lab.stack.kill("postgres", group=False, number=signal.SIGQUIT)
    return run


def postgres_gone(lab: Lab, run: str, seconds: float = 60.0) -> str:
    lab.at_work("filter")
    hold(lab, seconds)
    return run


def hold(lab: Lab, seconds: float) -> None:
    """PostgreSQL is down for so long: nobody starts it meanwhile."""
    supervisor = lab.stack.pid("supervisor")
    os.kill(supervisor, signal.SIGSTOP)
    try:
        lab.stack.kill("postgres", group=False, number=signal.SIGINT)
        time.sleep(seconds)
    finally:
        os.kill(supervisor, signal.SIGCONT)


def postgres_while_paused(lab: Lab, run: str) -> str:
    lab.at_work("filter")
    lab.pause(run)
    hold(lab, 20)
    lab.stack.wait_healthy(180)
    assert lab.run_state(run) == "PAUSED", "it went on by itself"
    lab.command("resume", lab.ours(run))
    return run


def delivered_twice(lab: Lab, run: str) -> str:
    lab.at_work("filter")
    deliver.again(lab, run)
    return run


def two_processes(lab: Lab, run: str) -> str:
    lab.at_work("filter")
    deliver.beside(lab, run, "filter")
    return run


def cleared_after(lab: Lab, run: str) -> str:
    assert lab.end(run) == "success"
    clear(lab, run)
    return run


def cleared_amid(lab: Lab, run: str) -> str:
    lab.at_work("filter")
    clear(lab, run)
    return run


def clear(lab: Lab, run: str) -> None:
    """What the page's *Clear run* does."""
    lab.ask("POST", f"{DAG}/dagRuns/{run}/clear", {"dry_run": False, "only_failed": False})
    lab.stack.wait(
        "the run to go again",
        lambda: lab.ask("GET", f"{DAG}/dagRuns/{run}")["state"] in ("queued", "running"),
        30,
    )


def marked_failed(lab: Lab, run: str) -> str:
    lab.at_work("filter")
    lab.ask("PATCH", f"{DAG}/dagRuns/{run}", {"state": "failed"})
    again = lab.trigger()
    return again


FAULTS = (
    Fault("worker", "kill -9 of a worker and its tasks, in a batch of filter", kill_worker, free=2),
    Fault("triggerer", "kill -9 of the triggerer while paused, then resume", kill_triggerer),
    Fault("scheduler", "kill -9 of the scheduler, in a batch of filter", kill_scheduler),
    Fault(
        "supervisor",
        "kill -9 of supervisor, scheduler and a worker; `up` 20 s later",
        kill_supervisor,
        free=2,
    ),
    Fault("redis-restart", "kill -9 of Redis, in a batch of filter", restart_redis),
    Fault("redis-flush", "FLUSHALL of Redis, in a batch of filter", flush_redis),
    Fault("redis-paused", "FLUSHALL and kill -9 of Redis while paused, then resume", flush_while_paused),
    Fault("postgres-fast", "stop -m fast of PostgreSQL, in a batch of filter", postgres_fast),
    Fault("postgres-immediate", "stop -m immediate of PostgreSQL, in a batch of filter", postgres_immediate),
    Fault("postgres-60s", "PostgreSQL down for 60 s, in a batch of filter", postgres_gone),
    Fault("postgres-paused", "PostgreSQL down for 20 s while paused, then resume", postgres_while_paused),
    Fault("twice-message", "the same Celery message published again", delivered_twice),
    Fault("twice-process", "a second process runs the same bundle at once", two_processes),
    Fault("clear-after", "the run cleared over the API after success", cleared_after),
    Fault("clear-amid", "the run cleared over the API, in a batch of filter", cleared_amid),
    Fault("mark-failed", "the run marked failed in a batch of filter, and triggered again", marked_failed),
)


def once(lab: Lab, fault: Fault) -> Ending:
    """Put one fault into one run; how it ended."""
    lab.fresh()
    run = lab.trigger()
    began = time.monotonic()
    try:
        judged = fault.act(lab, run)
        done = time.monotonic()
        ending = lab.judge(judged, lab.end(judged))
    except (AssertionError, TimeoutError) as e:
        done = time.monotonic()
        ending = Ending("?", False, 0, {}, [f"{type(e).__name__}: {e}"])
        lab.give_up()
    if ending.chunks > fault.free:
        ending.wrong.append(f"{ending.chunks} attempts of tasks were used")
    wrong = f"; WRONG: {'; '.join(ending.wrong)}" if ending.wrong else ""
    now = time.monotonic()
    say(
        f"{fault.name:20} {fault.moment:66} run {now - began:4.0f} s, {now - done:4.0f} s after it;"
        f" attempts +{ending.chunks}, tries {ending.tries or 'none'};"
        f" {'same bytes' if ending.same else 'DIFFERS'}{wrong}"
    )
    return ending


def backfills(lab: Lab, job: Path, home: Path) -> list[str]:
    """Two that overlap; what is wrong."""
    began = time.monotonic()
    try:
        wrong = two_at_once(lab, job, home)
    except (AssertionError, TimeoutError) as e:
        wrong = [f"{type(e).__name__}: {e}"]
    moment = "two backfills of 3 and 2 of the same days at once"
    took = f"run {time.monotonic() - began:4.0f} s"
    say(f"{'backfills':20} {moment:66} {took}; {'; '.join(wrong) or 'same bytes'}")
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="+", default=[""], help="faults whose name holds one of these")
    parser.add_argument("--keep", action="store_true", help="leave the folder behind")
    parser.add_argument("--rows", type=int, default=160, help="rows in each of 36 files")
    chosen = parser.parse_args()
    base = Path(tempfile.mkdtemp(prefix="dataflow-faults-"))
    base.chmod(0o755)
    job = build_job(base / "in", base / "jobs", rows=chosen.rows)
    days = build_days(base / "days", base / "jobs")
    wrong = 0
    try:
        began = time.monotonic()
        wanted = reference(job, base / "reference")
        say(f"reference: {len(wanted)} files, {time.monotonic() - began:.0f} s; all in {base}")
        # This checkout's code, also where another one is installed.
        own = {"PYTHONPATH": os.pathsep.join((LOCAL_SETTINGS, str(ROOT)))}
        with live_stack(
            base / "home", jobs=base / "jobs", environment=own, airflow={"dag_refresh_s": 5}
        ) as stack:
            lab = Lab(stack, wanted)
            for fault in FAULTS:
                if any(word in fault.name for word in chosen.only):
                    stack.wait_healthy(180)
                    wrong += bool(once(lab, fault).wrong)
            if any(word in "backfills" for word in chosen.only):
                wrong += bool(backfills(lab, days, base / "reference-days"))
    finally:
        if not chosen.keep:
            shutil.rmtree(base, ignore_errors=True)
    print(f"{wrong} wrong")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
