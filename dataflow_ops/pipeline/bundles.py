"""What an orchestrator calls: start a run, run one bundle of one step, finish. Plain values in and out."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dataflow_ops.engine.faults import told_plainly
from dataflow_ops.engine.runner import TaskOutcome
from dataflow_ops.errors import ConfigError, SourceChanged
from dataflow_ops.job_file import load_job
from dataflow_ops.pipeline.ahead import nothing_to_do
from dataflow_ops.pipeline.driver import RunFailed, RunPaused, StepReport
from dataflow_ops.pipeline.ending import end_failed, opening
from dataflow_ops.pipeline.flow import STEPS, partitions, steps_until
from dataflow_ops.pipeline.home import Home, open_home
from dataflow_ops.pipeline.ordered import is_ordered
from dataflow_ops.pipeline.parent_anew import find_parent_anew
from dataflow_ops.pipeline.session import Session, create_run, data_date_of
from dataflow_ops.state.database import PATIENCE_S
from dataflow_ops.state.store import StateStore

WORTH_A_TASK = 64 << 20
"""Bytes of a run's input for each bundle of a step over ranges: a task costs a second whatever is in it."""
WORTH_A_PROCESS = 16 << 20
"""The same for a bundle that starts worker processes, which import everything anew."""

Log = Callable[[str], Any]


@dataclass(frozen=True, slots=True)
class Started:
    """A started run, small enough to travel between an orchestrator's tasks.

    Attributes:
        run_id: the run.
        until: its last layer; None for all.
        promote: whether its version may become current by itself.
        bundles: partitioning -> number of bundles that its steps are mapped over.
        idle: steps without anything to do, which have no bundle: after the last layer, or done already.
        dry_run: whether nothing was started: there is no run, and no bundle.
        found: of a dry run, what the sources hold (:func:`~dataflow_ops.pipeline.run.dry_run_of`).
    """

    run_id: str
    until: str | None
    promote: bool
    bundles: dict[str, int]
    dry_run: bool = False
    found: dict[str, Any] = field(default_factory=dict)
    idle: list[str] = field(default_factory=list)


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
    promote: bool = False,
    moment: dt.datetime | None = None,
    log: Log = print,
    origin: Mapping[str, Any] | None = None,
    urgent: bool = False,
    data_date: str | None = None,
    dry_run: bool = False,
    dataset: str | None = None,
) -> Started:
    """List the sources, create or take up the run, fix the number of bundles of each partitioning.

    Args:
        job: job file.
        home_path: home folder; made if need be.
        mode: ``full``, or ``incremental`` for the files of a day.
        run_id: the orchestrator's name for the run; the same name again is the same run.
        overrides: ``section.key=value`` pairs, merged before anything is hashed.
        until: last layer to run.
        promote: let a version that was made with overrides become current.
        moment: start of the data's interval, with a time zone; default now.
        log: told of progress.
        origin: what started the run, and where it can be watched; kept in its row.
        urgent: whether it goes ahead of runs that are not.
        data_date: ISO date of the data; default the local date of ``moment``.
        dry_run: only look: no run, and zero bundles of every partitioning.
        dataset: what the job must be about.

    Raises:
        ConfigError: the job file or an override is wrong, or it is about another data set by now.
    """
    steps_until(until)
    settings = load_job(job, overrides)
    if dataset is not None and settings.dataset.id != dataset:
        raise ConfigError(
            f"{job.name} is about '{settings.dataset.id}' now, not about '{dataset}'; start its own DAG"
        )
    date = data_date or data_date_of(settings, moment)
    if dry_run:
        from dataflow_ops.pipeline.run import dry_run_of

        found = dry_run_of(settings, until, mode=mode, data_date=date, home_path=home_path)
        return _looked(run_id, until, promote or not overrides, found, log)
    home = open_home(home_path, patience_s=PATIENCE_S)
    with _once_more(home.state_url, run_id, log):
        run_id = create_run(
            home,
            settings,
            mode,
            run_id=run_id,
            data_date=date,
            job_name=job.stem,
            promote=promote or not overrides,
            until=until,
            origin=origin,
            urgent=urgent,
        )
        with opening(home, run_id, log):
            find_parent_anew(home, run_id, log)
            opened = Session(home, run_id, 0, LogReporter(log), discover=True)
    with opened as session, _end_recorded(session):
        session.begin()
        session.discover()
        idle = nothing_to_do(session, until)
        numbers, chunks = session.driver.numbers(), session.driver.chunk_ids()
        size_of_input = session.driver.input_bytes()
    bundles: dict[str, int] = {}
    for step, _, by in STEPS:
        count = len(partitions(step, numbers, chunks))
        few = -(-WORTH_A_TASK * count // max(1, size_of_input))
        size = settings.run.chunks_per_bundle if by == "chunk" else max(1, count // 16, few)
        # A step over nothing still has one bundle: an empty day is a successful run of zero documents.
        bundles[by] = max(1, min(settings.run.max_bundles, -(-count // size)))
    return Started(run_id, until, promote or not overrides, bundles, idle=idle)


@contextmanager
def _once_more(state_url: str, run_id: str, log: Log) -> Iterator[None]:
    """A run that succeeded and was cleared runs until it has ended anew. What goes wrong now, also while
    settings and sources are looked at, must not hide behind how it ended before.
    """
    with StateStore(state_url, PATIENCE_S) as state:
        row = state.get_run(run_id)
        if row is None or row.state != "SUCCEEDED":
            yield
            return
        state.set_run_state(run_id, "again", "")
        try:
            yield
        except Exception as e:
            end_failed(state, run_id, e, log)
            raise


def _looked(run_id: str, until: str | None, promote: bool, found: dict[str, Any], log: Log) -> Started:
    for row in found["sources"]:
        log(f"{row['source']}: {row['files']} files, {row['bytes']} bytes, {row['chunks']} chunks")
    for note in found["notes"]:
        log(note)
    log("Dry run: nothing was written, nothing is run.")
    return Started(run_id, until, promote, {by: 0 for _, _, by in STEPS}, True, found)


@told_plainly()
def run_bundle(
    home_path: Path, step: str, bundle: dict[str, Any], cores: int, log: Log = print
) -> dict[str, Any]:
    """Run what is open of one step in one bundle of partitions.

    Raises:
        RunPaused: a pause flag was met; the run is PAUSED.
        DataFlowError: a systemic fault; the run is FAILED until somebody tries again.
    """
    home = open_home(home_path, create=False, patience_s=PATIENCE_S)
    with _opened(home, bundle["run_id"], log) as session:
        if step not in steps_until(bundle["until"]):
            log(f"{step}: left out, the run stops after layer '{bundle['until']}'")
            return {"step": step, "tasks": 0, "skipped": 0}
        with _end_recorded(session):
            _refuse_cancelled(session)
            session.driver.take_up()
            if is_ordered(step):
                session.settle_parent()
            everything = partitions(step, session.driver.numbers(), session.driver.chunk_ids())
            mine = everything[bundle["index"] :: bundle["of"]]
            share = session.driver.input_bytes() * len(mine) // max(1, len(everything))
            # One partition has a process too: it stands back for urgent runs, which this one does not.
            session.pool.resize(min(cores, len(mine)) if share > WORTH_A_PROCESS else 0)
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
def finish_run(
    home_path: Path, run_id: str, until: str | None = None, promote: bool = True, log: Log = print
) -> dict[str, Any]:
    """Publish the version and end the run.

    Returns:
        ``version``, ``manifest``, ``state`` (of the run), ``current``, ``waits`` (why a person must look),
        ``documents``, ``tokens``, ``dataset``, ``mode``, ``data_date``, ``dead_letters``, ``base`` (what it
        builds on, or empty). Without a version (the run stops before export) ``version`` is empty and the
        numbers are 0.

    Raises:
        DataFlowError: no version could be made; the run is FAILED.
    """
    from dataflow_ops.pipeline.finish import finish

    home = open_home(home_path, create=False, patience_s=PATIENCE_S)
    with _opened(home, run_id, log) as session, _end_recorded(session):
        _refuse_cancelled(session)
        result = finish(session, until=until, promote=promote)
        row = session.row
    log(result.message)
    return {
        "version": result.version_id,
        "manifest": result.manifest_uri,
        "state": result.state,
        "current": result.current,
        "waits": list(result.facts.get("waits", ())),
        "documents": result.facts.get("documents", 0),
        "tokens": result.facts.get("tokens", 0),
        "dataset": row.dataset,
        "mode": row.mode,
        "data_date": row.data_date,
        "dead_letters": result.facts.get("dead_letters", 0),
        "base": result.facts.get("base", ""),
    }


def _opened(home: Home, run_id: str, log: Log) -> Session:
    with opening(home, run_id, log):
        return Session(home, run_id, 0, LogReporter(log))


def _refuse_cancelled(session: Session) -> None:
    row = session.row
    if row.state == "CANCELLED":
        raise RunFailed(
            f"run {row.run_id} is cancelled ({row.detail}); to take it up after all, clear task 'start' with"
            " everything downstream"
        )


@contextmanager
def _end_recorded(session: Session) -> Iterator[None]:
    """Write into the run's row how a task of an orchestrator ended it; the error goes on its way."""
    try:
        with told_plainly():
            yield
    except RunPaused:
        session.state.settle_pause(session.row.run_id)
        raise
    except SourceChanged as e:
        session.end_failed(e)
        raise RunFailed(
            f"{e}; clear task 'start' of this run with everything downstream: the sources are listed"
            " again, and what is done is skipped"
        ) from e
    except Exception as e:
        session.end_failed(e)
        raise
