"""The local caller: a whole run in one process and its pool."""

from __future__ import annotations

import getpass
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow.compute as pc

from dataflow_ops.control.flags import PauseFlags
from dataflow_ops.engine.context import Hooks, RunContext
from dataflow_ops.engine.faults import told_plainly
from dataflow_ops.errors import DataFlowError, SourceChanged
from dataflow_ops.layers.ingest.discover import DiscoverStep
from dataflow_ops.layers.ingest.listing import check_sources, list_sources
from dataflow_ops.layers.ingest.sources.sql import ROW_BYTES
from dataflow_ops.pipeline.build import build_steps
from dataflow_ops.pipeline.days import in_interval, listing_of
from dataflow_ops.pipeline.driver import Reporter, RunPaused
from dataflow_ops.pipeline.ending import opening
from dataflow_ops.pipeline.finish import Finished, finish
from dataflow_ops.pipeline.flow import steps_until
from dataflow_ops.pipeline.home import Home, open_home
from dataflow_ops.pipeline.ordered import FIRST_ORDERED, Turn
from dataflow_ops.pipeline.outside import OUTSIDE
from dataflow_ops.pipeline.session import Session, create_run, data_date_of, latest_run
from dataflow_ops.pipeline.status import at_work
from dataflow_ops.pipeline.worth import workers_for
from dataflow_ops.settings import JobSettings
from dataflow_ops.state.records import COMPACT
from dataflow_ops.state.store import StateStore
from dataflow_ops.storage.chunk_store import ChunkStore
from dataflow_ops.storage.opening import open_store

INTERRUPTED = "interrupted; the same command goes on from there"
IDLE_FROM = 32 * 2**20
"""Bytes of input below which idle workers are not worth a word."""
CHANGES_FOLLOWED = 3
"""How often one run lists its sources again because a file changed while it was read."""


@told_plainly()
def run_job(
    settings: JobSettings,
    home_path: Path,
    *,
    mode: str = "full",
    until: str | None = None,
    workers: int | None = 1,
    reporter: Reporter,
    run_id: str = "",
    data_date: str = "",
    job_name: str = "",
    promote: bool = True,
    urgent: bool = False,
    hooks: Hooks | None = None,
    tuning: dict[str, object] | None = None,
) -> Finished:
    """Run a job from its sources to a published version, skipping what is done.

    Args:
        settings: the job, overrides merged.
        home_path: home folder; made if need be.
        mode: ``full``, or ``incremental`` for the files of a day.
        until: last layer to run; None for all, with publishing.
        workers: worker processes; 0 for this one, None for what the input is worth.
        reporter: hears of progress.
        run_id: take this name (orchestrators); empty: the live run of the same job, or a new one.
        data_date: ISO date of the data; default today in the data set's time zone.
        job_name: for people.
        promote: let the new version become current.
        urgent: whether it goes ahead of runs that are not.
        hooks: crash points, for tests.
        tuning: fields of the run context to replace; never shapes output.

    Raises:
        ConfigError: the job has no sources, or a source's path does not exist.
        DataFlowError: a systemic fault; run again to go on.
    """
    steps_until(until)
    date = data_date or data_date_of(settings)
    check_sources(in_interval(settings, mode, date), OUTSIDE)  # a wrong path is told before a run exists
    home = open_home(home_path)
    run_id = create_run(
        home,
        settings,
        mode,
        run_id=run_id,
        data_date=date,
        job_name=job_name,
        promote=promote,
        until=until,
        urgent=urgent,
    )
    return _drive(home, run_id, until, workers, reporter, promote, hooks, tuning)


@told_plainly()
def resume_run(
    home_path: Path, run_id: str | None, workers: int | None, reporter: Reporter, until: str | None = None
) -> Finished:
    """Clear a run's pause flag and drive it to its end; it ends and promotes as it was started to."""
    home = open_home(home_path, create=False)
    state = StateStore(home.state_url)
    try:
        run_id = run_id or latest_run(state)
        row = state.get_run(run_id)
        until = until or (row.until_layer if row else None)
        PauseFlags(state, home.redis_url).resume("run", run_id, getpass.getuser())
    finally:
        state.close()
    if row is not None and row.mode == COMPACT:
        from dataflow_ops.pipeline.compact import drive_compaction

        done = drive_compaction(home, run_id, _cores() if workers is None else workers, reporter)
        return Finished(
            done.run_id, done.state, done.version_id, "", done.message, done.current, dict(done.facts)
        )
    return _drive(home, run_id, until, workers, reporter, False, None, None)


def dry_run_of(
    settings: JobSettings,
    until: str | None = None,
    workers: int | None = 1,
    *,
    mode: str = "full",
    data_date: str = "",
    home_path: Path | None = None,
) -> dict[str, Any]:
    """What a run would find in the sources and into how many chunks it would be cut; starts nothing.

    Args:
        settings: the job.
        until: last layer to run.
        workers: worker processes; None: as many as the run would start.
        mode: ``full`` or ``incremental``.
        data_date: ISO date of the data; default today in the data set's time zone.
        home_path: home folder, where the versions are that an incremental run builds on.

    Raises:
        ConfigError: whatever the run itself would refuse about the settings, sources and layer.
    """
    steps_until(until)
    notes: list[str] = []
    date = data_date or data_date_of(settings)
    if home_path is not None and home_path.is_dir():
        home = open_home(home_path, create=False)
        with StateStore(home.state_url) as state:
            settings = in_interval(settings, mode, date, state)
            listing = listing_of(settings, state, ChunkStore(open_store(home.root)), notes.append)
    else:
        settings = in_interval(settings, mode, date)
        listing = list_sources(settings, OUTSIDE)
    # Steps check their own settings when they are built: names of rules, the tokenizer's file.
    dict(build_steps(RunContext("dry-run", settings, Path(os.devnull), "sqlite://")))
    found = DiscoverStep(settings, listing).chunks()
    rows: list[dict[str, Any]] = []
    for source in settings.sources:
        mine = listing.filter(pc.equal(listing.column("source_id"), source.source_id))
        sized = mine.filter(pc.greater_equal(mine.column("size"), 0))
        rows.append(
            {
                "source": source.source_id,
                "kind": source.kind,
                "domain": source.domain,
                "files": mine.num_rows,
                "bytes": pc.sum(sized.column("size")).as_py() or 0,
                "chunks": sum(1 for c in found if c.source_id == source.source_id),
            }
        )
        if sized.num_rows < mine.num_rows:
            unknown = mine.num_rows - sized.num_rows
            notes.append(
                f"source {source.source_id}: the size of {unknown} files is not known before fetching"
            )
        elif source.version and sized.num_rows:
            notes.append(f"source {source.source_id}: bytes are estimated, {ROW_BYTES:,} for each row")
        elif not rows[-1]["bytes"]:
            notes.append(f"source {source.source_id}: {mine.num_rows} files, nothing in them")
    size = sum(r["bytes"] for r in rows)
    used = workers_for(size, _cores()) if workers is None else workers
    if told := few_chunks(len(found), used, size):
        notes.append(told)
    return {"sources": rows, "notes": notes}


def few_chunks(chunks: int, workers: int, size: int) -> str:
    """Says that most steps take a chunk at a time, where that leaves workers idle for long; else ``""``."""
    if not 0 < chunks < workers or size < IDLE_FROM:
        return ""
    smaller = max(1, int(size / 2**20 / (2 * workers)))
    return (
        f"{chunks} chunk(s) for {workers} workers: parsing and filtering keep at most {chunks} of them busy."
        f" With 'ingest: {{chunk_mb: {smaller}}}' in the job file there are more, smaller ones."
    )


def _cores() -> int:
    return os.cpu_count() or 1


def _run_steps(session: Session, names: Sequence[str], workers: int | None, turn: Turn) -> None:
    """All steps in order; again from the listing when a source changed under the run's eyes."""
    for again in range(CHANGES_FOLLOWED + 1):
        session.discover(relist=again > 0)
        chunks = session.chunks.read(session.driver.index.output("discover", "chunks", "all"), "", ("bytes",))
        size = pc.sum(chunks["bytes"]).as_py() or 0
        used = workers_for(size, _cores()) if workers is None else workers
        session.pool.resize(used)
        told = few_chunks(chunks.num_rows, used, size)
        if told and not again:
            session.driver.reporter.note(told)
        try:
            for name in names:
                if name == FIRST_ORDERED:
                    turn.take()
                    session.settle_parent()
                session.driver.run_step(name)
        except SourceChanged as e:
            if again == CHANGES_FOLLOWED:
                raise
            session.driver.reporter.note(f"{e}; the sources are listed again")
        else:
            return


def _drive(
    home: Home,
    run_id: str,
    until: str | None,
    workers: int | None,
    reporter: Reporter,
    promote: bool,
    hooks: Hooks | None,
    tuning: dict[str, object] | None,
) -> Finished:
    with opening(home, run_id, reporter.note):
        opened = Session(home, run_id, workers or 0, reporter, discover=True, hooks=hooks, tuning=tuning)
    with opened as session:
        flag = session.state.paused(run_id, session.settings.dataset.id)
        if flag is not None:
            session.state.settle_pause(run_id)
            return Finished.paused(run_id, flag)
        if session.row.state == "RUNNING" and at_work(session.state, run_id):
            reporter.note("Another process is at work on this run; this one takes what is still open.")
        try:
            session.begin()
            with Turn(session.state, session.row, reporter.note) as turn:
                _run_steps(session, steps_until(until)[1:], workers, turn)
                turn.keep()
                return finish(session, until=until, promote=promote or session.row.promote)
        except RunPaused:
            return Finished.paused(run_id, session.state.settle_pause(run_id))
        except KeyboardInterrupt:
            with suppress(DataFlowError):  # the same command goes on whatever the run's row says
                session.end("FAILED", INTERRUPTED)
            raise
        except Exception as met:
            session.end_failed(met)
            raise
