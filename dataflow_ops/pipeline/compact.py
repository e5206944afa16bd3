"""Compaction: a version and all that it builds on become one, with the same rows in the same order."""

from __future__ import annotations

import datetime as dt
import secrets
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dataflow_ops.engine.context import Hooks
from dataflow_ops.engine.faults import told_plainly
from dataflow_ops.engine.pool import Pool
from dataflow_ops.errors import ConfigError, DataFlowError, VersionError
from dataflow_ops.pipeline.chain import records_below, version_named, versions_of
from dataflow_ops.pipeline.compact_dead import end_overtaken
from dataflow_ops.pipeline.compact_driver import CompactDriver
from dataflow_ops.pipeline.compact_manifest import gather_compaction
from dataflow_ops.pipeline.compact_plan import Group
from dataflow_ops.pipeline.compact_settle import CURRENT, settle_compaction
from dataflow_ops.pipeline.compact_steps import Work, build_compaction
from dataflow_ops.pipeline.driver import Reporter
from dataflow_ops.pipeline.ending import opening
from dataflow_ops.pipeline.facts import Facts
from dataflow_ops.pipeline.flow import COMPACTION
from dataflow_ops.pipeline.home import Home, open_home
from dataflow_ops.pipeline.ordered import Turn
from dataflow_ops.pipeline.overtaken import overtaken
from dataflow_ops.pipeline.pausing import paused_line
from dataflow_ops.pipeline.publish import damaged_outputs, known_version, publish
from dataflow_ops.pipeline.session import Session, data_date_of, parse_job_text
from dataflow_ops.pipeline.tally import RunFailed, RunPaused
from dataflow_ops.pipeline.version_states import PUBLISHED, REJECTED, SHOWN_WAITING, shown
from dataflow_ops.state.records import COMPACT, PauseFlag, RunRecord, VersionRecord
from dataflow_ops.state.store import StateStore
from dataflow_ops.storage.opening import address
from dataflow_ops.timing import IntervalSettings, ParentSettings

INTERRUPTED = "interrupted; `dataflow versions compact {version}` goes on from there"
MADE = (("weigh", "content"), ("pack", ""), ("trace", "fates"))
"""``(step, kind)`` of what must be whole before anything is published."""


@dataclass(frozen=True, slots=True)
class Compacted:
    """How a compaction ended.

    Attributes:
        state: of its run; ``SUCCEEDED`` where there was nothing to do.
        run_id: its run, ``""`` where none was needed.
        version_id: the compacted version, or the one that stands alone already.
        current: whether it is the current one.
        message: for a person.
        facts: for programs.
    """

    state: str
    run_id: str = ""
    version_id: str = ""
    current: bool = False
    message: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """For ``--json``."""
        return {
            "run": self.run_id,
            "state": self.state,
            "version": self.version_id,
            "current": self.current,
            **self.facts,
            "message": self.message,
        }


@told_plainly()
def compact(
    home_path: Path,
    version: str | None,
    workers: int,
    reporter: Reporter,
    *,
    dataset: str | None = None,
    hooks: Hooks | None = None,
    tuning: dict[str, object] | None = None,
) -> Compacted:
    """Put a version and those below it together; a compaction that was interrupted goes on.

    Args:
        home_path: home folder.
        version: its id or the start of one; None: the current one.
        workers: worker processes; 0 for this one.
        reporter: hears of progress.
        dataset: of this data set.
        hooks: crash points, for tests.
        tuning: fields of the run context to replace; never shapes output.

    Raises:
        ConfigError: nothing has been published.
        VersionError: no such version, nobody has let it through, or it or one below it is damaged or gone.
        ContentMismatch: the new shards would not hold what the old ones hold; nothing was published.
    """
    home = open_home(home_path, create=False)
    with StateStore(home.state_url) as state:
        record = _asked(state, version, dataset)
        begun = _live(state, record)
        if begun is None:
            chain = records_below(state.versions(record.dataset), record.version_id)
            if len(chain) == 1:
                text = f"{record.version_id} stands alone already: there is nothing to put together."
                return Compacted("SUCCEEDED", "", record.version_id, record.is_current, text)
            end_overtaken(state, reporter.note, dataset=record.dataset)
            run_id = _create(state, record, _may_be_compacted(chain))
        else:
            run_id = begun.run_id
    return drive_compaction(home, run_id, workers, reporter, hooks, tuning)


def drive_compaction(
    home: Home,
    run_id: str,
    workers: int,
    reporter: Reporter,
    hooks: Hooks | None = None,
    tuning: dict[str, object] | None = None,
) -> Compacted:
    """Bring a compaction's run to its end.

    Raises:
        DataFlowError: see :func:`compact`; the run is FAILED, and the next call goes on.
    """
    with opening(home, run_id, reporter.note):
        opened = Session(home, run_id, 0, reporter, hooks=hooks, tuning=tuning)
    with opened as session:
        flag = session.state.paused(run_id, session.settings.dataset.id)
        if flag is not None:
            session.state.settle_pause(run_id)
            return _paused(run_id, flag)
        try:
            work = Work(session.context)
            session.pool = Pool(session.context, build_compaction, workers)
            session.driver = CompactDriver(
                session.context,
                build_compaction(session.context),
                session.state,
                session.chunks,
                session.pool,
                reporter,
                work=work,
            )
            session.begin()
            with Turn(session.state, session.row, reporter.note) as turn:
                # Days wait meanwhile: one that built on the old version would find another one current.
                turn.take()
                facts, groups = _make(session, session.driver, work)
                turn.keep()
                return _finish(session, work, facts, groups)
        except RunPaused:
            return _paused(run_id, session.state.settle_pause(run_id))
        except KeyboardInterrupt:
            with suppress(DataFlowError):
                session.end("FAILED", INTERRUPTED.format(version=_of(session)))
            raise
        except Exception as met:
            session.end_failed(met)
            raise


def _of(session: Session) -> str:
    """The version that a compaction's run puts together."""
    interval = session.settings.interval
    assert interval is not None, "a compaction is made for a version"
    return interval.base


def _asked(state: StateStore, version: str | None, dataset: str | None) -> VersionRecord:
    records = versions_of(state, dataset)
    if version is None:
        current = [r for r in records if r.is_current]
        if len(current) > 1:
            names = ", ".join(sorted(r.dataset for r in current))
            raise ConfigError(f"there are several data sets here ({names}): name one with --dataset")
        if not current:
            raise VersionError("no version is current here: there is nothing to compact")
        return current[0]
    return version_named(records, version)


def _live(state: StateStore, record: VersionRecord) -> RunRecord | None:
    """A compaction that was begun: of this version, or the one that just made it and was killed."""
    made_from = (record.version_id, record.base) if record.is_compact else (record.version_id,)
    for row in state.live_runs(record.dataset):
        if row.mode != COMPACT:
            continue
        interval = parse_job_text(row.settings, row.run_id).interval
        parent = None if interval is None else interval.parent
        if parent is not None and parent.version in made_from:
            return row
    return None


def _may_be_compacted(chain: list[VersionRecord]) -> list[VersionRecord]:
    top = chain[-1]
    if shown(top.state, top.is_current) == SHOWN_WAITING:
        raise VersionError(
            f"{top.version_id} waits for a person; once it is approved, it can be compacted:"
            f" dataflow versions approve {top.version_id}"
        )
    for record in chain:
        if shown(record.state, record.is_current) != PUBLISHED:
            raise VersionError(
                f"{top.version_id} can't be compacted: {record.version_id} is {record.state.lower()}"
            )
    return chain


def _create(state: StateStore, top: VersionRecord, chain: list[VersionRecord]) -> str:
    made_by = state.get_run(top.run_id)
    assert made_by is not None, "a version's run is a foreign key"
    settings = parse_job_text(made_by.settings, made_by.run_id)
    date = top.data_date or data_date_of(settings)
    interval = IntervalSettings(
        day=dt.date.fromisoformat(date),
        base=top.version_id,
        parent=ParentSettings(version=top.version_id, manifest_sha256=top.manifest_sha256),
        settled=True,
    )
    stamp = dt.datetime.now(dt.UTC).strftime("%Y%m%dT%H%M%S")
    run_id = f"{top.dataset}-{COMPACT}-{stamp}-{secrets.token_hex(2)}"
    text = settings.model_copy(update={"interval": interval}).model_dump_json()
    state.create_run(run_id, top.dataset, made_by.job_name, COMPACT, text, date)
    return run_id


def _make(session: Session, driver: CompactDriver, work: Work) -> tuple[Facts, list[Group]]:
    """Run the steps; stored outputs that have rotted since they were made are made again."""
    chain = work.chain
    driver.reporter.note(
        f"puts {len(chain.links)} versions together, up to {chain.top.record.version_id}:"
        f" {len(chain.shards):,} shards, {len(chain.lineage):,} lineage files"
    )
    for _ in range(session.settings.run.max_attempts + 1):
        for name in COMPACTION:
            driver.run_step(name)
        damaged = damaged_outputs(session, MADE)
        if not damaged:
            groups = driver.groups()
            return gather_compaction(session, chain, groups), groups
        driver.make_again(damaged, "publish")
    raise RunFailed("what the version is made of is damaged again and again; check the disk")


def _finish(session: Session, work: Work, facts: Facts, groups: list[Group]) -> Compacted:
    from dataflow_ops.pipeline.compact_report import write_compact_report

    before = len(work.chain.shards)
    again = known_version(session, facts) is not None
    made = publish(session, facts)
    names = [link.record.version_id for link in work.chain.links]
    outcome, why = settle_compaction(session, made, names)
    write_compact_report(session, made, work.chain.links, groups, [why] if why else [])
    waits = outcome == "waits"
    state = "AWAITING_APPROVAL" if waits else "SUCCEEDED"
    session.end(state, why if waits else "")
    totals, taken = facts.manifest["totals"], sum(group.taken_over for group in groups)
    lines = [
        f"Version {made.version_id}: {totals['documents']:,} documents, {totals['tokens']:,} tokens"
        f" in {len(groups):,} shards",
        f"  put together from {len(names)} versions with {before:,} shards, {taken:,} of them taken over as"
        " they are; the same rows in the same order, by hashes over all of them",
        f"  shards  {address(session.home.root, f'versions/{made.version_id}')}",
    ]
    if why:
        versions = session.state.versions(session.settings.dataset.id)
        late = overtaken(versions, version_named(versions, made.version_id))
        approve = f"dataflow versions approve {made.version_id}" if late is None else late.anyway
        lines.append(f"  not current: {why}")
        if waits:
            lines.append(f"  to make it current all the same: {approve}")
        elif made.before == REJECTED:
            lines.append(f"  if it is well after all: {approve}")
        else:
            lines.append(f"  to make it current all the same: dataflow versions rollback {made.version_id}")
    facts_ = {
        "from": names,
        "shards_before": before,
        "shards": len(groups),
        "taken_over": taken,
        "documents": totals["documents"],
        "tokens": totals["tokens"],
        "content": facts.manifest["compacted"]["content"],
        "made_before": again,
        "waits": [why] if waits else [],
    }
    return Compacted(
        state, session.context.run_id, made.version_id, outcome == CURRENT, "\n".join(lines), facts_
    )


def _paused(run_id: str, flag: PauseFlag | None) -> Compacted:
    return Compacted("PAUSED", run_id, message=paused_line(run_id, flag))
