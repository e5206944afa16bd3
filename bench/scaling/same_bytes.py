"""The same bytes at every size: with one worker, with two, and with two that are killed again and again.

    python -m bench.scaling.copies DOCS COPIES
    python -m bench.scaling.same_bytes DOCS COPIES [--sizes 1,2,4,8] [--kills 5] [--seed 1]

Each is `dataflow run` to a published version, in a home of its own. A kill is SIGKILL to one process of the
run, chosen by chance, at a moment chosen by chance; the command is then given again. What is compared: the
SHA-256 of each file of the version, and of each output that a task of the run recorded. Exit code 1 where
one differs.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil

from bench.scaling.sizes import rows_of, write_job
from tests.pipeline.inside import published

Bytes = dict[str, str]


def command(job: Path, home: Path, workers: int) -> list[str]:
    """The run, for one data date: the version's name holds it."""
    main = [sys.executable, "-m", "dataflow_ops.cli.main", "run", str(job), "--home", str(home)]
    return [*main, "--date", "2026-01-01", "--workers", str(workers)]


def undisturbed(job: Path, home: Path, workers: int) -> float:
    """Run to the end; return how many seconds it took."""
    began = time.monotonic()
    done = subprocess.run(command(job, home, workers), capture_output=True, text=True, check=False)
    if done.returncode not in (0, 4):
        raise SystemExit(f"the run ended with {done.returncode}: {done.stderr[-2000:]}")
    return time.monotonic() - began


def killed(job: Path, home: Path, workers: int, kills: int, usual_s: float, chance: random.Random) -> int:
    """Run to the end with so many kills on the way; return how many hit something."""
    hit = 0
    for _ in range(kills):
        with tempfile.TemporaryFile() as said:
            child = subprocess.Popen(command(job, home, workers), stdout=said, stderr=said)
            try:
                child.wait(timeout=chance.uniform(0.05, 0.8) * usual_s)
            except subprocess.TimeoutExpired:
                family = [
                    psutil.Process(child.pid),
                    *psutil.Process(child.pid).children(recursive=True),
                ]
                chance.choice(family).kill()
                hit += 1
            child.wait()
    undisturbed(job, home, workers)
    return hit


def outputs(home: Path) -> Bytes:
    """What is published, and the hash of each output of a task that the newest run wants."""
    with sqlite3.connect(home / "state.db") as db:
        rows = db.execute(
            "select o.task_key || '/' || o.kind, o.sha256 from task_output o"
            " where o.task_key in (select task_key from run_task)"
        )
        return {**published(home), **dict(rows.fetchall())}


def main() -> int:
    """Compare at every size."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("docs", type=Path)
    parser.add_argument("copies", type=Path)
    parser.add_argument("--sizes", default="1,2,4,8")
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    every = [args.docs.absolute(), *sorted(p.absolute() for p in args.copies.glob("copy-*"))]
    chance, wrong = random.Random(args.seed), 0
    work = Path(tempfile.mkdtemp(prefix="same-bytes-"))
    for size in [int(n) for n in args.sizes.split(",")]:
        job = work / f"{size}.yaml"
        write_job(job, every[:size])
        found: dict[str, Bytes] = {}
        usual_s = 0.0
        for name, workers, kills in (("one", 1, 0), ("two", 2, 0), ("killed", 2, args.kills)):
            home = work / "home"
            if kills:
                hit = killed(job, home, workers, kills, usual_s, chance)
                name = f"two, {hit} kills"
            else:
                usual_s = undisturbed(job, home, workers)
            found[name] = outputs(home)
            shutil.rmtree(home)
        [first, *others] = found.items()
        for name, bytes_of in others:
            differ = {k for k in first[1].keys() | bytes_of.keys() if first[1].get(k) != bytes_of.get(k)}
            wrong += bool(differ)
            print(
                f"{size}x  {rows_of(every[:size]):>9,} documents  {first[0]} against {name}:"
                f" {len(first[1]):,} files and outputs, {len(differ)} differ"
                f"{'  ' + ', '.join(sorted(differ)[:5]) if differ else ''}  load {os.getloadavg()[0]:.1f}",
                flush=True,
            )
    shutil.rmtree(work)
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
