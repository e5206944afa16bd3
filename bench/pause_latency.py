"""How soon a pause gives back every slot on a live stack, while rows and slow PDFs are worked on.

    python -m bench.pause_latency [--pauses 12] [--pdfs 40] [--workers 2] [--concurrency 2]

A run over PDFs that take seconds each and over rows of prose is paused at random moments over the page's own
API, with a token, and gone on with when nothing of it runs any more. Measured: from the request until no task
of it is RUNNING in our state and none runs in Airflow, 5 s at most; a second later still none. At the end the
version must have the bytes of ``dataflow run``, and no task of Airflow may have been tried twice.

The exit code is 1 where a pause took longer, or anything of that is not so.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from pathlib import Path

from bench.on_stack import ENDED, Bars, Runs, published_files, reference, say, stack_of, workplace
from bench.prose_rows import write_rows
from tests.pipeline.slow_pdf import slow_pdf

DAG = "pausing__full"
BAR_S = 5.0
GIVE_UP_S = 120.0
JOB = """dataset: {{id: pausing}}
schedule: {{full: null, incremental: null}}
sources:
  - {{source_id: papers, kind: files, path: {base}/papers, domain: docs}}
  - {{source_id: rows, kind: jsonl, path: {base}/rows, domain: docs}}
clean: {{boilerplate_filter: {{min_text_len: 20}}}}
ingest: {{chunk_mb: 1.5}}
run: {{chunks_per_bundle: 2}}
output: {{partition_by: [domain], version: b, shards: 4}}
"""


def build(base: Path, pdfs: int, pages: int) -> Path:
    """PDFs of some seconds each, rows, and a job of them; return the job's path."""
    (base / "papers").mkdir()
    (base / "jobs").mkdir()
    for number in range(pdfs):
        text = f"Page of paper {number} which has quite a few words to say about pauses and batches "
        (base / "papers" / f"paper-{number:02}.pdf").write_bytes(slow_pdf(pages + number, text))
    write_rows(base / "rows", files=12, rows=500)
    job = base / "jobs" / "pausing.yaml"
    job.write_text(JOB.format(base=base), encoding="utf-8")
    return job


def at_work(runs: Runs, ours: str) -> list[str]:
    """Steps of tasks that are RUNNING in our state."""
    query = """SELECT task.step FROM task JOIN run_task ON run_task.task_key = task.key
               WHERE run_task.run_id=%s AND task.state='RUNNING' ORDER BY 1"""
    return [step for (step,) in runs.state(query, ours)]


def in_airflow(runs: Runs, run: str) -> dict[str, int]:
    """State -> number of Airflow's tasks that are under way or wait."""
    query = """SELECT state, count(*) FROM task_instance WHERE dag_id=%s AND run_id=%s
               AND state IN ('running', 'queued', 'deferred') GROUP BY state"""
    return {str(state): int(n) for state, n in runs.airflow(query, DAG, run)}


def is_still(runs: Runs, run: str, ours: str) -> bool:
    """Whether nothing of a run is under way."""
    return not at_work(runs, ours) and not in_airflow(runs, run).get("running")


def once(runs: Runs, run: str, ours: str, number: int) -> float:
    """One pause, and on again; seconds until all was given back."""
    steps, tasks = at_work(runs, ours), in_airflow(runs, run).get("running", 0)
    began = time.monotonic()
    runs.ask("POST", "/dataflow/api/run/pause", {"run": ours, "scope": "run", "why": f"pause {number}"})
    answered = time.monotonic() - began
    while not is_still(runs, run, ours) and time.monotonic() - began < GIVE_UP_S:
        time.sleep(0.05)
    took = time.monotonic() - began
    # A task that was just being started looks at the flag and comes back too.
    time.sleep(1)
    runs.stack.wait("stillness", lambda: is_still(runs, run, ours), GIVE_UP_S)
    waiting = in_airflow(runs, run)
    [(state,)] = runs.state("SELECT state FROM run WHERE run_id=%s", ours)
    working = ", ".join(f"{steps.count(s)} x {s}" for s in dict.fromkeys(steps)) or "between tasks"
    say(
        f"pause {number:2}: {working:24} {tasks} slots; back after {took:5.2f} s (answer {answered:.2f} s);"
        f" {waiting.get('deferred', 0)} deferred, run {state}"
    )
    runs.ask("POST", "/dataflow/api/run/resume", {"run": ours, "scope": "run"})
    return took


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pauses", type=int, default=12)
    parser.add_argument("--pdfs", type=int, default=40)
    parser.add_argument("--pages", type=int, default=200, help="of a PDF, some 10 ms of CPU time each")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--concurrency", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1, help="of the moments")
    parser.add_argument("--keep", action="store_true", help="leave the folder behind")
    chosen = parser.parse_args()
    bars, moments = Bars(), random.Random(chosen.seed)
    with workplace(chosen.keep) as base:
        job = build(base, chosen.pdfs, chosen.pages)
        began = time.monotonic()
        wanted = reference(job, base / "reference")
        say(f"`dataflow run` of the same: {time.monotonic() - began:.0f} s")
        with stack_of(base, workers=chosen.workers, concurrency=chosen.concurrency) as runs:
            run = runs.trigger(DAG)
            ours = f"airflow-{DAG}-{run}"
            times: list[float] = []
            query = "SELECT state FROM dag_run WHERE dag_id=%s AND run_id=%s"
            while len(times) < chosen.pauses:
                time.sleep(moments.uniform(1, 8))
                while not (ended := runs.airflow(query, DAG, run)[0][0] in ENDED) and not at_work(runs, ours):
                    time.sleep(0.1)
                if ended:
                    break
                times.append(once(runs, run, ours, len(times) + 1))
            state = runs.wait(DAG, run)
            say(f"{len(times)} pauses, then {state}")
            bars.missed += state != "success" or len(times) < min(10, chosen.pauses)
            bars.check("longest", max(times), BAR_S, at_least=False, unit="s")
            same = published_files(runs, "pausing") == wanted
            again = "SELECT count(*) FROM task_instance WHERE dag_id=%s AND try_number > 1"
            tries = int(runs.airflow(again, DAG)[0][0])
            attempts = int(runs.state("SELECT count(*) FROM task WHERE attempt > 1")[0][0])
            say(
                f"bytes {'the same' if same else 'DIFFER'};"
                f" {tries} tries and {attempts} attempts beyond the first"
            )
            bars.missed += (not same) + (tries > 0) + (attempts > 0)
    say(f"{bars.missed} missed")
    return int(bars.missed > 0)


if __name__ == "__main__":
    sys.exit(main())
