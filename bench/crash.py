"""Kills runs and cuts their power, runs again, and compares every byte of the version.

    python -m bench.crash kills --count 100     random SIGKILLs at workers, guard children and parents
    python -m bench.crash points                killed once at each durable point, each time in a fresh home
    python -m bench.crash cuts --every 40       power cut at every 40th durable step, names lost or bytes lost

Prints a line while it works and a table at the end; the exit code is 1 where a single byte differed.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import psutil

from tests.pipeline import child, corpus, inside, trouble
from tests.pipeline.inside import published
from tests.storage.power_cut import PowerCut, PowerCutDisk

STAGED = {"stage_every_s": 0.0, "batch_rows": 4}


def say(text: str) -> None:
    print(f"\r\x1b[2K{text}" if sys.stderr.isatty() else text, end="", file=sys.stderr, flush=True)
    if not sys.stderr.isatty():
        print(file=sys.stderr)


def role_of(process: psutil.Process, parent: int) -> str:
    if process.pid == parent:
        return "parent"
    command = " ".join(process.cmdline())
    if "parse_guard" in command:
        return "guard"
    return "tracker" if "resource_tracker" in command else "worker"


def with_pages(job: Path) -> Path:
    """Some pages too, so that there are guarded parsers to be killed."""
    pages = job.parent / "pages"
    pages.mkdir()
    for path in sorted((corpus.CASES / "html").iterdir())[:6]:
        shutil.copyfile(path, pages / path.name)
    source = f"  - {{source_id: pages, kind: files, path: {pages}, domain: web}}\n"
    job.write_text(job.read_text().replace("ingest:", f"{source}ingest:", 1))
    return job


def kills(base: Path, count: int, seed: int) -> int:
    """SIGKILL one process of a run with 2 workers, ``count`` times; go on with what is left each time."""
    job = with_pages(inside.sources(base / "in", files=6, run="max_attempts: 50, max_dead_share: 0.5"))
    began = time.monotonic()
    child.end(child.start(job, base / "reference", workers=2))
    usual = time.monotonic() - began
    wanted = published(base / "reference")
    chance = random.Random(seed)
    table: Counter[tuple[str, str]] = Counter()
    home, finished, wrong, slowest = base / "home", 0, 0, 0.0
    while sum(table.values()) < count:
        process = child.start(job, home, workers=2, tuning=STAGED)
        time.sleep(chance.uniform(0.15, 1.0) * usual)
        try:
            family = [psutil.Process(process.pid), *psutil.Process(process.pid).children(recursive=True)]
            roles = {p: role_of(p, process.pid) for p in family}
            victim = chance.choice([p for p in family if roles[p] != "tracker"])
            victim.kill()
        except psutil.Error:
            roles, victim = {}, None  # it ended just now
        if victim is not None and roles[victim] == "parent":
            at = time.monotonic()
            _, alive = psutil.wait_procs(family, timeout=20)
            slowest = max(slowest, time.monotonic() - at)
            wrong += bool(alive)
        ended = child.end(process, expect=None)
        if victim is not None:
            table[roles[victim], ended or "killed"] += 1
        if ended.startswith("SUCCEEDED"):
            finished += 1
            wrong += published(home) != wanted
            shutil.rmtree(home)
        say(f"{sum(table.values())} of {count} kills, {finished} runs ended, {wrong} wrong")
    child.end(child.start(job, home, workers=2))
    wrong += published(home) != wanted
    print(f"\n{'killed':10} {'the run':24} {'times':>5}")
    for (role, ended), n in sorted(table.items()):
        print(f"{role:10} {ended:24} {n:5}")
    print(f"{finished + 1} runs ended, {wrong} with other bytes or orphans")
    print(f"an orphan lived at most {slowest:.2f} s")
    return wrong


def points(base: Path) -> int:
    """Killed at each point of a run, once, each time in a fresh home."""
    job = inside.sources(base / "in", files=6, run="max_attempts: 9")
    log = base / "points"
    inside.run(job, base / "reference", tuning=STAGED, hooks=trouble.Log(log))
    wanted = published(base / "reference")
    found = list(dict.fromkeys(line.partition(" ")[2] for line in log.read_text().splitlines()))
    table: Counter[tuple[str, str]] = Counter()
    wrong = 0
    for i, point in enumerate(found):
        home = base / f"home-{i}"
        killed = child.start(job, home, tuning=STAGED, hooks=trouble.Signal(point, base / f"mark-{i}"))
        child.end(killed, expect=-9)
        inside.run(job, home, tuning=STAGED)
        same = published(home) == wanted
        wrong += not same
        table[point.rpartition(" ")[0], "same" if same else f"DIFFERS at {point}"] += 1
        shutil.rmtree(home)
        say(f"{i + 1} of {len(found)} points, {wrong} wrong")
    print(f"\n{'point':16} {'version':24} {'steps':>5}")
    for (kind, what), n in sorted(table.items()):
        print(f"{kind:16} {what:24} {n:5}")
    return wrong


def cuts(base: Path, every: int) -> int:
    """The power goes before and after a durable step; each time a fresh home."""
    job = inside.sources(base / "in", files=4, run="max_attempts: 9")
    tuning = {**STAGED, "lease_s": 0.4}
    root = base / "root"
    os.environ["DATAFLOW_ROOT"] = str(root)

    def fresh() -> Path:
        shutil.rmtree(root, ignore_errors=True)
        shutil.rmtree(base / "home", ignore_errors=True)
        root.mkdir()
        return base / "home"

    disk = PowerCutDisk(root if root.exists() else fresh().parent / "root")
    inside.run(job, base / "home", tuning={**tuning, "disk": disk})
    wanted, steps = published(root), disk.steps
    table: Counter[tuple[str, str]] = Counter()
    wrong = 0
    for at in range(0, len(steps), every):
        for keep in (False, True):
            home = fresh()
            disk = PowerCutDisk(root, stop_at=at, after=bool(at // every % 2))
            try:
                inside.run(job, home, tuning={**tuning, "disk": disk})
            except PowerCut:
                disk.power_cut(keep)
            inside.run(job, home, tuning=tuning)
            same = published(root) == wanted
            wrong += not same
            table["bytes lost" if keep else "names lost", "same" if same else f"DIFFERS at step {at}"] += 1
        say(f"step {at} of {len(steps)}, {wrong} wrong")
    print(f"\n{'power cut':12} {'version':24} {'times':>5}")
    for (kind, what), n in sorted(table.items()):
        print(f"{kind:12} {what:24} {n:5}")
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["kills", "points", "cuts"])
    parser.add_argument("--count", type=int, default=100, help="kills: how many")
    parser.add_argument("--seed", type=int, default=1, help="kills: of the random choices")
    parser.add_argument("--every", type=int, default=40, help="cuts: stride over the durable steps")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="dataflow-crash-") as folder:
        base = Path(folder)
        if chosen.what == "kills":
            wrong = kills(base, chosen.count, chosen.seed)
        elif chosen.what == "points":
            wrong = points(base)
        else:
            wrong = cuts(base, chosen.every)
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
