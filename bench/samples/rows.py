"""How fast turns come into PostgreSQL and pages come out: ``python -m bench.samples.rows --turns 1000000``.

Starts a PostgreSQL server of its own with its usual durability (fsync on), and a worker process whose CPU
time and peak memory are measured.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from bench.samples.make import write
from bench.samples.server import durable_database
from dataflow_ops.samples.importing import ImportStep, plan_import
from dataflow_ops.samples.running import run_task
from dataflow_ops.state.sample_tables import sample
from dataflow_ops.state.samples.store import SampleStore


def work(url: str, path: str) -> None:
    """Import one file (in a process of its own) and print what it took."""
    began, cpu = time.monotonic(), time.process_time()
    with SampleStore(url) as store:
        wanted = plan_import(store, "bench", [path], "bench")
        planned = time.monotonic()
        task = run_task(store, str(wanted.task_id), ImportStep(store))
    took = time.monotonic() - began
    print(
        json.dumps(
            {
                **task.counts,
                "state": task.state,
                "seconds": round(took, 1),
                "planning_s": round(planned - began, 1),
                "rows_per_s": round(task.counts["rows"] / took),
                "worker_cpu_s": round(time.process_time() - cpu, 1),
                "worker_peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
            }
        )
    )


def measure_pages(url: str, tries: int) -> dict[str, Any]:
    """Pages of 50 from the middle of the table, in milliseconds."""
    from dataflow_ops.state.samples.query import Filter

    with SampleStore(url) as store:
        files = [f.id for f in store.sample_files("bench")]
        with store.read() as connection:
            middle = connection.execute(sa.select(sa.func.max(sample.c.id))).scalar_one() // 2
        found: dict[str, Any] = {}
        for name, only in (
            ("page", Filter(files=tuple(files))),
            ("page_of_a_role", Filter(files=tuple(files), roles=("assistant",))),
            ("page_of_a_length", Filter(files=tuple(files), shortest=100, longest=200)),
        ):
            took = []
            for n in range(tries):
                began = time.perf_counter()
                page = store.page(only, after=middle + 17 * n, limit=50)
                took.append(1000 * (time.perf_counter() - began))
                assert len(page) == 50
            found[f"{name}_ms"] = {"median": round(statistics.median(took), 1), "most": round(max(took), 1)}
        began = time.perf_counter()
        assert store.page(Filter(files=tuple(files), contains="nobody says this"), limit=50) == []
        found["a_word_that_is_nowhere_s"] = round(time.perf_counter() - began, 2)
        began = time.perf_counter()
        store.aggregates(Filter(files=tuple(files)))
        found["aggregates_s"] = round(time.perf_counter() - began, 2)
    return found


def main() -> None:
    """Make the file, import it, ask for pages."""
    if sys.argv[1:2] == ["work"]:
        work(*sys.argv[2:])
        return
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--tries", type=int, default=20)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-samples-") as folder:
        path = Path(folder) / "dialogues.jsonl"
        turns, bad = write(path, given.turns, given.seed)
        print(f"{turns:,} turns, {bad:,} bad lines, {path.stat().st_size / 1e6:.0f} MB", flush=True)
        with durable_database() as url:
            command = [sys.executable, "-m", "bench.samples.rows", "work", url, str(path)]
            print(subprocess.run(command, check=True, capture_output=True, text=True).stdout, end="")
            print(json.dumps(measure_pages(url, given.tries)))


if __name__ == "__main__":
    main()
