"""Cost per document, memory and index at several sizes of the corpus, and of a day with 1 % new documents.

    python -m bench.scaling.copies DOCS COPIES
    python -m bench.scaling.sizes DOCS COPIES [--sizes 1,2,4,8] [--workers 1] [--until dedup] [--day]
        [--json FILE]

Each size is one job with so many sources, run by `dataflow run` in a home of its own. CPU seconds are those
of all its processes; the ones by step are what each task recorded of itself. With `--day` the largest size is
published in full, documents of one more copy are added, and `--mode incremental` makes a version of them;
what that kept and a full run would not (or the reverse) is listed by `dataflow diff`. Ratios are to the
smallest size of the same call.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

STEPS = ("filter", "sign", "exact", "match", "gather", "recall", "verify", "unite", "collect", "confirm")
INDEX = ("keys", "bands", "filter")
DATASET = "scaling"


@dataclass(frozen=True)
class Measured:
    """One run.

    Attributes:
        name: of the size.
        documents: in the sources.
        seconds: of the clock.
        cpu: seconds of all processes.
        peak_mb: resident memory of the largest process.
        by_step: CPU seconds that the tasks of each step recorded.
        index_bytes: keys, bands and filters.
        load: of the machine when it began.
    """

    name: str
    documents: int
    seconds: float
    cpu: float
    peak_mb: float
    by_step: dict[str, float]
    index_bytes: int
    load: float

    def us(self, steps: tuple[str, ...] = STEPS) -> float:
        """Microseconds of CPU a document in some steps."""
        return 1e6 * sum(self.by_step.get(s, 0.0) for s in steps) / self.documents


def write_job(path: Path, folders: list[Path]) -> None:
    """A job with one source for each folder."""
    sources = "".join(
        f"  - {{source_id: part{i}, kind: parquet, path: '{f}', domain: web}}\n"
        for i, f in enumerate(folders)
    )
    path.write_text(
        f"dataset: {{id: {DATASET}}}\nsources:\n{sources}ingest: {{chunk_mb: 64}}\n"
        "drift: {max_domain_shift: 1, max_language_shift: 1}\n"
        "output: {partition_by: [domain], version: s}\n",
        encoding="utf-8",
    )


def parts_of(docs: Path, copies: Path, most: int) -> list[Path]:
    """The corpus and its copies, as many folders as the largest size takes.

    Args:
        docs: folder of the corpus.
        copies: folder of its copies.
        most: folders needed.

    Raises:
        ValueError: there are fewer, or one of them is not whole; it says what makes them.
    """
    files = sorted(path.name for path in docs.glob("*.parquet"))
    if not files:
        raise ValueError(f"{docs} has no *.parquet file")
    make = f"python -m bench.scaling.copies {docs} {copies} --copies {most - 1}"
    found = [docs.absolute()]
    for number in range(1, most):
        folder = copies / f"copy-{number}"
        lacks = [name for name in files if not (folder / name).is_file()]
        if lacks:
            raise ValueError(
                f"{folder} is missing {len(lacks)} of {len(files)} file(s); {most - 1} whole copies are"
                f" needed, made by: {make}"
            )
        found.append(folder.absolute())
    return found


def rows_of(folders: list[Path]) -> int:
    """Documents in some folders of Parquet files."""
    return sum(pq.ParquetFile(f).metadata.num_rows for folder in folders for f in folder.glob("*.parquet"))


def run(job: Path, home: Path, *options: str) -> tuple[dict[str, Any], float, resource.struct_rusage]:
    """``dataflow run``: what it said, seconds, and what its processes used."""
    began = time.monotonic()
    command = [sys.executable, "-m", "dataflow_ops.cli.main", "run", str(job), "--home", str(home), "--json"]
    with tempfile.TemporaryFile() as said:
        child = subprocess.Popen([*command, *options], stdout=said)
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        said.seek(0)
        told = said.read()
    if child.returncode not in (0, 4):
        raise SystemExit(f"dataflow run ended with {child.returncode}: {told.decode()[-2000:]}")
    return json.loads(told), time.monotonic() - began, used


def measured(name: str, documents: int, home: Path, told: tuple[dict[str, Any], float, Any]) -> Measured:
    """Put together what one run took."""
    said, seconds, used = told
    with sqlite3.connect(home / "state.db") as db:
        mine = "(select task_key from run_task where run_id = ?)"
        steps = dict(
            db.execute(
                "select t.step, sum(m.value) from metric m join task t on t.key = m.task_key where"
                f" m.name = 'cpu_seconds' and m.task_key in {mine} group by t.step",
                (said["run"],),
            )
        )
        marks = ", ".join("?" for _ in INDEX)
        [[index]] = db.execute(
            f"select sum(size) from task_output where kind in ({marks}) and task_key in {mine}",
            (*INDEX, said["run"]),
        )
    cpu = used.ru_utime + used.ru_stime
    return Measured(
        name, documents, seconds, cpu, used.ru_maxrss / 1024, steps, index or 0, os.getloadavg()[0]
    )


def told_of(one: Measured, first: Measured) -> str:
    """One line."""
    steps = "  ".join(f"{s} {one.us((s,)):.1f}" for s in STEPS if one.by_step.get(s))
    ratio = one.us() / first.us() if first.us() else 0.0
    return (
        f"{one.name:>5}  {one.documents:>9,} documents  {one.us():6.1f} µs/document (x {ratio:.3f})"
        f"  whole {1e6 * one.cpu / one.documents:6.1f}  peak {one.peak_mb:,.0f} MB"
        f"  index {one.index_bytes / one.documents:.0f} B/document  {one.seconds:.0f} s"
        f"  load {one.load:.1f}\n       {steps}"
    )


def add_day(folder: Path, out: Path, rows: int) -> int:
    """Copy about so many documents into a new source; return how many."""
    out.mkdir(parents=True)
    files = sorted(folder.glob("*.parquet"))
    left = rows
    for path in files:
        table = pq.read_table(path)
        every = max(1, len(files) * table.num_rows // rows)
        some = table.take(list(range(0, table.num_rows, every))[:left])
        pq.write_table(some, out / path.name)
        left -= some.num_rows
    return rows - left


def day(
    folders: list[Path], extra: Path, work: Path, workers: str
) -> tuple[Measured, Measured, dict[str, Any]]:
    """Publish all in full, add 1 %, make a day of it, and compare with a full run over both."""
    home, job = work / "day", work / "day.yaml"
    new = work / "new"
    documents = rows_of(folders)
    added = add_day(extra, new, documents // 100)
    write_job(job, folders)
    full = measured("full", documents, home, run(job, home, "--workers", workers))
    write_job(job, [*folders, new])
    said = run(job, home, "--workers", workers, "--mode", "incremental")
    small = measured("day", added, home, said)
    again = run(job, home, "--workers", workers)
    command = [sys.executable, "-m", "dataflow_ops.cli.main", "diff", said[0]["version"], again[0]["version"]]
    done = subprocess.run(
        [*command, "--home", str(home), "--json"], capture_output=True, check=True, text=True
    )
    return full, small, json.loads(done.stdout)


def main() -> int:
    """Run every size; exit code 1 where the cost per document grew by more than 15 %."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("docs", type=Path)
    parser.add_argument("copies", type=Path)
    parser.add_argument("--sizes", default="1,2,4,8")
    parser.add_argument("--workers", default="1")
    parser.add_argument("--until", default="dedup")
    parser.add_argument("--day", action="store_true")
    parser.add_argument("--work", type=Path, help="folder for homes; a temporary one when left out")
    parser.add_argument("--json", type=Path, help="append a line for each run")
    args = parser.parse_args()
    sizes = [int(n) for n in args.sizes.split(",")] if args.sizes else []
    last = sizes[-1] if sizes else 8
    try:
        every = parts_of(args.docs, args.copies, max([*sizes, *([last + 1] if args.day else [])]))
    except ValueError as e:
        parser.error(str(e))
    work = args.work or Path(tempfile.mkdtemp(prefix="scaling-"))
    work.mkdir(parents=True, exist_ok=True)
    found: list[Measured] = []
    for size in sizes:
        home, job = work / f"home-{size}", work / f"{size}.yaml"
        write_job(job, every[:size])
        told = run(job, home, "--until", args.until, "--workers", args.workers)
        found.append(measured(f"{size}x", rows_of(every[:size]), home, told))
        print(told_of(found[-1], found[0]), flush=True)
        shutil.rmtree(home)
        _keep(args.json, found[-1])
    if args.day:
        full, small, diff = day(every[:last], every[last], work, args.workers)
        for one in (full, small):
            print(told_of(one, full))
            _keep(args.json, one)
        share = small.cpu / full.cpu
        print(f"the day took {share:.1%} of the full run's CPU ({small.cpu:.1f} of {full.cpu:.1f} s)")
        print(json.dumps({k: diff[k] for k in ("documents",) if k in diff}))
        for cause in diff["causes"]:
            print(cause["cause"], [{k: v for k, v in by.items() if k != "examples"} for by in cause["by"]])
    if args.work is None:
        shutil.rmtree(work)
    return int(bool(found) and found[-1].us() > 1.15 * found[0].us())


def _keep(path: Path | None, one: Measured) -> None:
    if path is not None:
        with path.open("a", encoding="utf-8") as out:
            out.write(json.dumps(asdict(one)) + "\n")


if __name__ == "__main__":
    sys.exit(main())
