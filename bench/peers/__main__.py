"""The product against other tools: the same documents, the same core, in turn.

    python -m bench.peers [--quick] [--docs FOLDER] [--documents N] [--rounds N] [--stage NAME ...]

Builds the corpus (``python -m bench.corpus``; or takes ``--docs``), makes an environment for each peer at
pinned versions, then measures: round by round, stage by stage, ours and theirs one after another on one
core. Each measurement is a row in ``bench/.cache/rows.jsonl``; what has a row already, of the same documents
and versions, is not measured again, so a broken run goes on where it stopped. Writes ``bench/RESULTS.md`` and
``bench/peers/results.svg`` from the rows; ``--report`` does that alone. ``--quick``: about 5,000 documents.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from bench.peers import ours
from bench.peers.environments import PEERS, python_of, versions_of
from bench.peers.places import CACHE, PLOT, RESULTS, ROOT, ROWS
from bench.peers.process import Usage, measured
from bench.peers.results import report
from bench.peers.stages import OURS, STAGES, Entry, Ours, Stage

RUNNERS = Path(__file__).parent / "runners"
QUICK, DEFAULT = 5_000, 20_000


class Bench:
    """Runs what has no row yet, and appends rows."""

    def __init__(self, part: Path, core: int, limit_s: float) -> None:
        self.part, self.core, self.limit_s = part, core, limit_s
        self.about = json.loads((part / "about.json").read_text())
        self.work = CACHE / "work"
        self.ours = our_version()
        self.done = {key(row) for row in read_rows() if not row.get("failed")}

    def round(self, number: int, stages: list[Stage], peers: dict[str, Path]) -> None:
        for stage in stages:
            for run in stage.ours:
                self._one(number, stage, Entry(OURS, run.work, run.title), None, run)
            for entry in stage.peers:
                if entry.peer in peers:
                    self._one(number, stage, entry, peers[entry.peer])

    def _one(
        self, number: int, stage: Stage, entry: Entry, python: Path | None, mine: Ours | None = None
    ) -> None:
        row: dict[str, Any] = {
            "documents_of": self.about["sha256"][:12],
            "stage": stage.name,
            "peer": entry.peer,
            "work": entry.work,
            "version": self.ours if python is None else versions_of(entry.peer)[0],
            "round": number,
        }
        if key(row) in self.done:
            return
        shutil.rmtree(self.work, ignore_errors=True)
        self.work.mkdir(parents=True)
        docs = self.part / stage.documents
        row |= {"documents": self.about[stage.documents], "load": os.getloadavg()[0], "at": int(time.time())}
        if python is not None:
            runner = RUNNERS / f"run_{entry.peer.replace('-', '_')}.py"
            used = self._measure([str(python), str(runner), entry.work, str(docs), str(self.work)])
        elif mine is not None and mine.layer:
            used = self._our_run(mine, docs, row)
        else:
            runner = RUNNERS / "run_normalise.py"
            used = self._measure([sys.executable, str(runner), stage.name, str(docs), str(self.work)])
        row |= {"cpu": used.cpu, "peak_mb": used.peak_mb, "wall": used.wall}
        marks = self.work / "marks.json"
        if used.code in (0, 4) and marks.exists():
            row |= {"marks": json.loads(marks.read_text())}
            if number == 0:
                row |= {"judged": self._judged(stage, docs)}
        else:
            row |= {"failed": f"exit code {used.code}: {tail(self.work / 'log')}"}
        append(row)
        self.done.add(key(row))
        rate = row.get("marks", {}).get("work", used.cpu) / row["documents"] * 1e6
        name = f"{stage.name:<13}{entry.title:<32}"
        print(f"{number + 1}  {name}{rate:>10,.1f} us/document  {row.get('failed', '')}", flush=True)

    def _measure(self, command: list[str]) -> Usage:
        own = {"HF_HOME": str(self.work / "hf"), "PYTHONPATH": str(ROOT)}
        return measured(command, self.core, self.work / "log", own, self.limit_s)

    def _our_run(self, run: Ours, docs: Path, row: dict[str, Any]) -> Usage:
        """Everything up to the layer before, then the layer by itself: the second run is what counts."""
        home = self.work / "home"
        job = ours.prepare(run, docs, home)
        before = self._measure(ours.command(job, home, run.before))
        row["before_cpu"] = before.cpu
        if before.code not in (0, 4):
            return before
        used = self._measure(ours.command(job, home, run.layer))
        read = [sys.executable, "-m", "bench.peers.ours", str(home), str(docs), str(self.work)]
        if used.code in (0, 4):
            subprocess.run([*read, run.layer], check=True, cwd=ROOT)
        return used

    def _judged(self, stage: Stage, docs: Path) -> dict[str, Any]:
        decisions = str(self.work / "decisions.json")
        command = [sys.executable, "-m", "bench.peers.judge", str(self.part), str(docs), decisions]
        command += ["dedup"] if stage.dedup else []
        done = subprocess.run(command, check=True, cwd=ROOT, capture_output=True, text=True)
        found: dict[str, Any] = json.loads(done.stdout)
        return found


def key(row: dict[str, Any]) -> tuple[object, ...]:
    """What makes a measurement the same as another."""
    return tuple(row[k] for k in ("documents_of", "stage", "peer", "work", "version", "round"))


def read_rows() -> list[dict[str, Any]]:
    """All rows so far, oldest first."""
    return [json.loads(line) for line in ROWS.read_text().splitlines()] if ROWS.exists() else []


def append(row: dict[str, Any]) -> None:
    ROWS.parent.mkdir(parents=True, exist_ok=True)
    with ROWS.open("a") as file:
        file.write(json.dumps(row) + "\n")


def tail(log: Path) -> str:
    lines = log.read_text(errors="replace").strip().splitlines() if log.exists() else []
    return lines[-1][-300:] if lines else ""


def our_version() -> str:
    """The commit, and a mark where the package has changes that are in none."""
    git = lambda *a: subprocess.run(["git", *a], cwd=ROOT, check=True, capture_output=True, text=True).stdout  # noqa: E731
    commit = git("log", "-1", "--format=%h", "--", "dataflow_ops").strip()
    return f"dataflow {commit}" + ("+changes" if git("status", "--short", "--", "dataflow_ops") else "")


def main() -> int:
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--quick", action="store_true", help=f"about {QUICK:,} documents")
    ap.add_argument("--docs", type=Path, help="a corpus that is there already: its folder of Parquet files")
    ap.add_argument("--documents", type=int, metavar="N", help=f"default {DEFAULT:,}; 0 takes all")
    ap.add_argument("--rounds", type=int, default=3)
    ap.add_argument("--stage", action="append", choices=[s.name for s in STAGES], help="may be repeated")
    ap.add_argument("--peer", action="append", choices=list(PEERS), help="may be repeated; default all")
    ap.add_argument("--core", type=int, default=(os.cpu_count() or 1) - 1)
    ap.add_argument("--limit", type=float, default=90, help="minutes after which one run is given up")
    ap.add_argument("--report", action="store_true", help="write the results from the rows alone")
    args = ap.parse_args()
    if not args.report:
        wanted = args.documents if args.documents is not None else QUICK if args.quick else DEFAULT
        stages = [s for s in STAGES if not args.stage or s.name in args.stage]
        run(args, wanted, stages)
    told = report(read_rows(), parts())
    RESULTS.write_text(told.text)
    PLOT.write_text(told.plot)
    print(f"written: {RESULTS.relative_to(ROOT)}, {PLOT.relative_to(ROOT)}")
    return 0


def run(args: argparse.Namespace, wanted: int, stages: list[Stage]) -> None:
    """Corpus, environments, rounds."""
    docs = args.docs or CACHE / "corpus" / "docs"
    if not docs.is_dir():
        subprocess.run([sys.executable, "-m", "bench.corpus", str(docs.parent)], check=True, cwd=ROOT)
    part = CACHE / "parts" / f"{docs.absolute().parent.name}-{wanted}"
    if not (part / "about.json").exists():
        make = [sys.executable, "-m", "bench.peers.documents", str(docs.absolute()), str(wanted), str(part)]
        subprocess.run(make, check=True, cwd=ROOT)
    peers: dict[str, Path] = {}
    for name in args.peer or PEERS:
        try:
            peers[name] = python_of(name)
        except RuntimeError as error:
            print(f"{name} is left out: {error}", file=sys.stderr)
    bench = Bench(part, args.core, args.limit * 60)
    print(f"{bench.about['all']:,} documents, core {args.core}, {bench.ours}")
    for number in range(args.rounds):
        bench.round(number, stages, peers)
    shutil.rmtree(bench.work, ignore_errors=True)


def parts() -> dict[str, dict[str, Any]]:
    """What is known of the documents of each part that was ever measured, by the id that rows name it by."""
    found = [json.loads(p.read_text()) for p in sorted((CACHE / "parts").glob("*/about.json"))]
    return {about["sha256"][:12]: about for about in found}


if __name__ == "__main__":
    sys.exit(main())
