"""How many Airflow tasks a second a live stack gets through, and how long a run with nothing to do takes.

    python -m bench.task_rate [--bundles 300] [--workers 2] [--concurrency 2] [--keep]

A job whose chunk steps have 300 bundles of one tiny chunk each, so that what is measured is overhead:

1. a run up to layer *filter*: three steps of 300 tasks, each from its first start to its last end, >= 1.5
   tasks/s;
2. the rest of it, in few bundles;
3. the same run again, with 300 bundles a step and nothing to do: <= 180 s; the same for a small job like the
   demo; and one of them cleared, which must end well too.

The exit code is 1 where a bar is missed.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from bench.on_stack import Bars, Runs, say, stack_of, workplace
from bench.prose_rows import write_rows

RATE = 1.5
IDLE_S = 180.0
JOB = """dataset: {{id: {dataset}}}
schedule: {{full: null, incremental: null}}
sources:
  - {{source_id: rows, kind: jsonl, path: {path}, domain: docs}}
ingest: {{chunk_mb: {chunk_mb}}}
run: {{max_bundles: {most}, chunks_per_bundle: {each}}}
output: {{partition_by: [domain], version: b, shards: 4}}
"""


def build(base: Path, bundles: int) -> None:
    """Two jobs: one of many tiny chunks, one like the demo."""
    jobs = base / "jobs"
    jobs.mkdir()
    write_rows(base / "many", files=bundles, rows=3, words=300)
    write_rows(base / "few", files=8, rows=60, seed=8)
    many = JOB.format(dataset="many", path=base / "many", chunk_mb=0.012, most=bundles, each=1)
    few = JOB.format(dataset="few", path=base / "few", chunk_mb=0.2, most=256, each=16)
    (jobs / "many.yaml").write_text(many, encoding="utf-8")
    (jobs / "few.yaml").write_text(few, encoding="utf-8")


def rates(runs: Runs, bundles: int, bars: Bars) -> None:
    """The run up to filter, with all its bundles."""
    before = runs.cpu_seconds()
    run = runs.trigger("many__full", until="filter")
    ended = runs.wait("many__full", run)
    spans = runs.spans("many__full", run)
    for span in spans:
        if span.tasks >= bundles:
            bars.check(f"{span.task}, {span.tasks} tasks", span.rate, RATE, at_least=True, unit="tasks/s")
    tasks = sum(span.tasks for span in spans)
    took = runs.seconds("many__full", run)
    say(f"the whole run: {ended}, {tasks} tasks in {took:.0f} s, {tasks / took:.2f} tasks/s")
    each, cores = (runs.cpu_seconds() - before) / tasks, os.cpu_count() or 1
    share = each * tasks / took / cores
    say(
        f"{each:.2f} CPU s a task in all processes of the stack, which had {share:.0%} of {cores} cores:"
        f" with all of them {cores / each:.2f} tasks/s"
    )


def idle(runs: Runs, dag: str, bars: Bars, prepare: dict[str, object]) -> None:
    """All work done first, then a run that finds nothing to do, then that run cleared."""
    first = runs.trigger(dag, **prepare)
    say(f"{dag}: all its work, {runs.wait(dag, first)} after {runs.seconds(dag, first):.0f} s")
    run = runs.trigger(dag)
    ended = runs.wait(dag, run)
    spans = runs.spans(dag, run)
    say(f"{dag}: {ended}, {sum(s.tasks for s in spans)} tasks ran, {sum(s.skipped for s in spans)} skipped")
    bars.missed += ended != "success"
    bars.check(f"{dag}: nothing to do", runs.seconds(dag, run), IDLE_S, at_least=False, unit="s")
    runs.ask("POST", f"/api/v2/dags/{dag}/dagRuns/{first}/clear", {"dry_run": False, "only_failed": False})
    ended = runs.wait(dag, first)
    states = runs.airflow(
        "SELECT state, count(*) FROM task_instance WHERE dag_id=%s AND run_id=%s GROUP BY state", dag, first
    )
    say(f"{dag}: the first run cleared, {ended}: {dict(states)}")
    bars.missed += ended != "success"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--bundles", type=int, default=300)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--concurrency", type=int, default=2)
    parser.add_argument("--keep", action="store_true", help="leave the folder behind")
    parser.add_argument("--only-idle", action="store_true", help="leave out the rate")
    chosen = parser.parse_args()
    bars = Bars()
    with workplace(chosen.keep) as base:
        build(base, chosen.bundles)
        with stack_of(base, workers=chosen.workers, concurrency=chosen.concurrency) as runs:
            if not chosen.only_idle:
                rates(runs, chosen.bundles, bars)
            idle(runs, "few__full", bars, {})
            few = ["run.chunks_per_bundle=16"]
            idle(runs, "many__full", bars, {"overrides": few, "promote": True})
    say(f"{bars.missed} missed")
    return int(bars.missed > 0)


if __name__ == "__main__":
    sys.exit(main())
