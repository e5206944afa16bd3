"""How soon 10,000 urgent documents are published beside a full run that occupies every worker.

    python -m bench.urgent [--beside FOLDER] [--rows 10000] [--workers 2] [--concurrency 2] [--no-comparison]

A full run of FOLDER (Parquet with columns text and id; prose is made up to 400 MB where none is named) is
started first. When its tasks fill all slots, a second data set is triggered over the REST API with priority
urgent, and the time until its version is published is measured: <= 300 s. Then the same documents as a third
data set, without urgency, for comparison. The urgent version must have the bytes of ``dataflow run``.

The exit code is 1 where the bar is missed, or the bytes differ.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from bench.on_stack import Bars, Runs, published_files, reference, say, stack_of, workplace
from bench.prose_rows import write_rows

BAR_S = 300.0
GIVE_UP_S = 900.0
JOB = """dataset: {{id: {dataset}}}
schedule: {{full: null, incremental: null}}
sources:
  - {{source_id: {dataset}, kind: {kind}, path: {path}, domain: docs}}
ingest: {{chunk_mb: {chunk_mb}}}
run: {{chunks_per_bundle: {each}}}
output: {{partition_by: [domain], version: b}}
"""


def build(base: Path, beside: Path | None, rows: int) -> Path:
    """Three jobs; return the urgent one's."""
    jobs = base / "jobs"
    jobs.mkdir()
    files = 10
    write_rows(base / "hot", files=files, rows=rows // files)
    if beside is None:
        beside = base / "long"
        write_rows(beside, files=100, rows=1800, seed=9)
    kind = "parquet" if any(beside.glob("*.parquet")) else "jsonl"
    rest = {"kind": "jsonl", "path": base / "hot", "chunk_mb": 4, "each": 16}
    # Many short bundles: whoever comes second gets a slot soon, urgent or not.
    long = {"kind": kind, "path": beside, "chunk_mb": 8, "each": 1}
    for dataset, of in (("long", long), ("hot", rest), ("cold", rest)):
        (jobs / f"{dataset}.yaml").write_text(JOB.format(dataset=dataset, **of), encoding="utf-8")
    return jobs / "hot.yaml"


def busy(runs: Runs, run: str, slots: int) -> bool:
    """Whether the run's tasks fill the workers."""
    query = "SELECT count(*) FROM task_instance WHERE dag_id='long__full' AND run_id=%s AND state='running'"
    return int(runs.airflow(query, run)[0][0]) >= slots


def until_published(runs: Runs, dataset: str, priority: str) -> float:
    """Seconds from the trigger to the published version; infinity where it was given up."""
    began = time.monotonic()
    run = runs.trigger(f"{dataset}__full", priority=priority)
    query = "SELECT state FROM dataset_version WHERE dataset=%s"
    while time.monotonic() - began < GIVE_UP_S:
        if ("PUBLISHED",) in runs.state(query, dataset):
            took = time.monotonic() - began
            for span in runs.spans(f"{dataset}__full", run):
                if span.tasks:
                    say(f"    {span.task:20} {span.tasks:4} tasks {span.seconds:6.1f} s")
            return took
        time.sleep(0.5)
    return float("inf")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--beside", type=Path, help="folder of the run that occupies the workers")
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--concurrency", type=int, default=2)
    parser.add_argument("--no-comparison", action="store_true", help="leave out the run without urgency")
    parser.add_argument("--keep", action="store_true", help="leave the folder behind")
    chosen = parser.parse_args()
    bars = Bars()
    with workplace(chosen.keep) as base:
        job = build(base, chosen.beside, chosen.rows)
        began = time.monotonic()
        wanted = reference(job, base / "reference")
        say(f"`dataflow run` of the urgent documents alone: {time.monotonic() - began:.0f} s")
        with stack_of(base, workers=chosen.workers, concurrency=chosen.concurrency) as runs:
            long = runs.trigger("long__full")
            slots = chosen.workers * chosen.concurrency
            runs.stack.wait("busy workers", lambda: busy(runs, long, slots), 600)
            say(f"{slots} slots are taken by the full run")
            took = until_published(runs, "hot", "urgent")
            bars.check(
                f"{chosen.rows} urgent documents to a published version",
                took,
                BAR_S,
                at_least=False,
                unit="s",
            )
            same = published_files(runs, "hot") == wanted
            say(f"bytes: {'the same' if same else 'DIFFER'}")
            bars.missed += not same
            [(state,)] = runs.airflow("SELECT state FROM dag_run WHERE run_id=%s", long)
            say(f"the full run meanwhile: {state}")
            bars.missed += state != "running"  # else nothing was measured
            if not chosen.no_comparison:
                say(f"the same documents, not urgent: {until_published(runs, 'cold', 'normal'):.0f} s")
                [(state,)] = runs.airflow("SELECT state FROM dag_run WHERE run_id=%s", long)
                say(f"the full run meanwhile: {state}")
    say(f"{bars.missed} missed")
    return int(bars.missed > 0)


if __name__ == "__main__":
    sys.exit(main())
