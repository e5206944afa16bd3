"""What an orchestrator calls: start a run, run one bundle of one step, finish. Plain values in and out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dataflow_ops.engine.faults import told_plainly
from dataflow_ops.engine.runner import TaskOutcome
from dataflow_ops.pipeline.driver import StepReport
from dataflow_ops.pipeline.finish import finish
from dataflow_ops.pipeline.flow import STEPS, partitions, steps_until
from dataflow_ops.pipeline.home import open_home
from dataflow_ops.pipeline.session import Session, create_run
from dataflow_ops.settings import load_job

MAX_BUNDLES = 256
"""Most mapped tasks of a step: an orchestrator's task costs about a second whatever is in it."""
CHUNKS_PER_BUNDLE = 16
"""About 15 minutes of the slowest step at 256 MB a chunk on two cores."""

Log = Callable[[str], Any]


@dataclass(frozen=True, slots=True)
class Started:
    """A started run: its id, and for each partitioning the references that its steps are mapped over."""

    run_id: str
    until: str | None
    bundles: dict[str, list[dict[str, Any]]]


class LogReporter:
    """Progress as log lines, for callers without a terminal."""

    def __init__(self, log: Log) -> None:
        self._log = log

    def step_planned(self, step: str, tasks: int, skipped: int) -> None:
        """One line at a step's start."""
        self._log(f"{step}: {tasks} tasks, {skipped} done already")

    def task_ended(self, step: str, outcome: TaskOutcome) -> None:
        """One line for what a person should see."""
        if outcome.ending not in ("done", "skipped"):
            self._log(f"{step}/{outcome.spec.partition}: {outcome.ending} {outcome.message}")

    def step_ended(self, report: StepReport) -> None:
        """One line at a step's end."""
        c = report.counts
        self._log(
            f"{report.step}: {c.documents_in} in, {c.kept} kept, {c.rejected} rejected, {c.dead} dead;"
            f" {report.ran} tasks ran, {report.skipped} skipped, {report.seconds:.1f} s"
        )

    def note(self, message: str) -> None:
        """As it is."""
        self._log(message)


@told_plainly()
def start_run(
    job: Path,
    home_path: Path,
    *,
    mode: str,
    run_id: str,
    overrides: Sequence[str] = (),
    until: str | None = None,
    log: Log = print,
) -> Started:
    """List the sources, create or take up the run, fix the bundles of each partitioning."""
    steps_until(until)
    settings = load_job(job, overrides)
    home = open_home(home_path)
    run_id = create_run(home, settings, mode, run_id=run_id, job_name=job.stem)
    with Session(home, run_id, 0, LogReporter(log), discover=True) as session:
        session.begin()
        session.discover()
        numbers, chunks = session.driver.numbers(), session.driver.chunk_ids()
    lists: dict[str, list[dict[str, Any]]] = {}
    for step, _, by in STEPS:
        if by not in lists:
            count = len(partitions(step, numbers, chunks))
            size = CHUNKS_PER_BUNDLE if by == "chunk" else max(1, count // 16)
            # A step over nothing still has one bundle: an empty day is a successful run of zero documents.
            of = max(1, min(MAX_BUNDLES, -(-count // size)))
            lists[by] = [{"run_id": run_id, "until": until, "index": i, "of": of} for i in range(of)]
    return Started(run_id, until, lists)


@told_plainly()
def run_bundle(
    home_path: Path, step: str, bundle: dict[str, Any], cores: int, log: Log = print
) -> dict[str, Any]:
    """Run what is open of one step in one bundle of partitions."""
    home = open_home(home_path, create=False)
    with Session(home, bundle["run_id"], 0, LogReporter(log)) as session:
        if step not in steps_until(bundle["until"]):
            log(f"{step}: left out, the run stops after layer '{bundle['until']}'")
            return {"step": step, "tasks": 0, "skipped": 0}
        everything = partitions(step, session.driver.numbers(), session.driver.chunk_ids())
        mine = everything[bundle["index"] :: bundle["of"]]
        session.pool.resize(cores if len(mine) > 1 else 0)
        report = session.driver.run_step(step, mine)
    counts = report.counts
    return {
        "step": step,
        "tasks": report.tasks,
        "skipped": report.skipped,
        "documents_in": counts.documents_in,
        "kept": counts.kept,
        "rejected": counts.rejected,
        "dead": counts.dead,
    }


@told_plainly()
def finish_run(home_path: Path, run_id: str, until: str | None = None, log: Log = print) -> dict[str, Any]:
    """Publish the version and end the run."""
    home = open_home(home_path, create=False)
    with Session(home, run_id, 0, LogReporter(log)) as session:
        result = finish(session, until=until)
    log(result.message)
    return {"version": result.version_id, "manifest": result.manifest_uri, "state": result.state}
