"""Two backfills of the same days at once, through Airflow, against one in a process of its own."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

from tests.live.lab import Lab
from tests.pipeline import by_day
from tests.stack.live import ROOT


def build_days(folder: Path, jobs: Path) -> Path:
    """Sources in folders by day, and their job in the stack's folder of job files; return its path."""
    job = by_day.build(folder)
    text = job.read_text(encoding="utf-8") + "schedule: {full: null, incremental: null}\n"
    there = jobs / "daily.yaml"
    there.write_text(text, encoding="utf-8")
    return there


def days_of(home: Path) -> dict[str, str]:
    """File of every version -> SHA-256, without reports."""
    versions = home / "versions"
    return {
        str(path.relative_to(versions)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(versions.rglob("*"))
        if path.is_file() and not path.name.startswith("report.")
    }


def _command(job: Path, first: str, *more: str) -> list[str]:
    command = [sys.executable, "-m", "dataflow_ops.cli.main", "backfill", str(job)]
    return [*command, "--from", first, "--to", by_day.DAYS[-1], *more]


def two_at_once(lab: Lab, job: Path, reference: Path) -> list[str]:
    """Run both, the second one day shorter; return what is not as it must be."""
    alone = _command(job, by_day.DAYS[0], "--local", "--home", str(reference))
    done = subprocess.run(alone, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    lab.fresh()
    lab.stack.wait("the DAG", lambda: lab.knows("daily__incremental"))
    both = [
        subprocess.Popen(
            _command(job, first),
            cwd=ROOT,
            env=lab.stack.environment(),
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        for first in by_day.DAYS[:2]
    ]
    said = [process.communicate(timeout=900)[0] for process in both]
    wrong = [
        f"backfill {n} ended with {process.returncode}: {said[n][-2000:]}"
        for n, process in enumerate(both)
        if process.returncode
    ]
    runs = lab.state("SELECT data_date, state FROM run ORDER BY data_date")
    if runs != [(day, "SUCCEEDED") for day in by_day.DAYS]:
        wrong.append(f"runs are {runs}")
    versions = lab.state("SELECT count(*), count(DISTINCT version_id) FROM dataset_version")[0]
    if versions != (len(by_day.DAYS), len(by_day.DAYS)):
        wrong.append(f"rows of versions: {versions}")
    used = lab.state("SELECT coalesce(sum(attempt-1), 0) FROM task WHERE attempt>1")[0][0]
    if used:
        wrong.append(f"{used} attempts of tasks were used")
    if days_of(lab.stack.home) != days_of(reference):
        wrong.append("other bytes than a backfill in one process")
    return wrong
