"""Days that were published while a full version was made: it lists its files once, at its beginning."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from dataflow_ops.errors import VersionError
from dataflow_ops.layers.ingest.listing import SAME_FILE
from dataflow_ops.layers.ingest.sources.sql import GONE
from dataflow_ops.pipeline.file_lists import NAME, files_of_run
from dataflow_ops.pipeline.session import parse_job_text
from dataflow_ops.pipeline.version_states import BECAME_CURRENT, PUBLISHED
from dataflow_ops.pipeline.version_trail import trail
from dataflow_ops.state import version_events as events
from dataflow_ops.state.records import COMPACT, INCREMENTAL, RunRecord, VersionRecord
from dataflow_ops.state.store import StateStore
from dataflow_ops.storage.chunk_store import ChunkStore


@dataclass(frozen=True, slots=True)
class LeftBehind:
    """What a day brought and a full version lacks.

    Attributes:
        day: ISO date of the data.
        version: of that day.
        files: with the columns of :data:`NAME`; None: the day's list of files is gone.
    """

    day: str
    version: str
    files: pa.Table | None

    @property
    def told(self) -> str:
        """For people."""
        if self.files is None:
            return f"perhaps files of {self.day} (which they were is no longer kept)"
        return f"{self.files.num_rows:,} file(s) of {self.day}"


def left_behind(
    state: StateStore, chunks: ChunkStore, full: RunRecord, until: float | None = None
) -> list[LeftBehind]:
    """Versions published while a full one was made whose files it did not see, the oldest first.

    A file that the full run did not list because it was deleted after the other had read it is no longer
    wanted; that can't be told from one that came late where the other ended after the full run began, and
    counts as one that came late. Versions that somebody went back from are not missed.

    Args:
        state: open state store.
        chunks: where lists of files are.
        full: run that made, or makes, a full version.
        until: when that became current; None: not yet.

    Raises:
        VersionError: the full run's own list of files is gone.
    """
    versions = state.versions(full.dataset)
    left = set(trail(versions, state.version_events(full.dataset)).left)
    # Who goes back from a compacted version goes back from the one whose documents it holds.
    left |= {one.base or "" for one in versions if one.is_compact and one.version_id in left}
    others = [
        one
        for one in sorted(versions, key=lambda v: v.created_at)
        if one.state == PUBLISHED
        and not one.is_increment
        and not one.is_compact  # brought nothing; what it holds was brought by others
        and one.run_id != full.run_id
        and one.version_id not in left
        and (until is None or one.created_at < until)
        and _ended_after(state, one, full.created_at)
    ]
    if not others:
        return []
    have = files_of_run(full.run_id, state, chunks)
    sources = pa.array(sorted({s.source_id for s in parse_job_text(full.settings, full.run_id).sources}))
    seen = have.select(NAME).slice(0, 0)
    found = []
    for record in others[::-1]:
        try:
            own = files_of_run(record.run_id, state, chunks)
        except VersionError:
            found.append(LeftBehind(record.data_date or "", record.version_id, None))
            continue
        own = own.filter(pc.is_in(own["source_id"], sources))
        own = own.join(seen, list(NAME), join_type="left anti").select(SAME_FILE)
        seen = pa.concat_tables([seen, own.select(NAME)])
        late = files_not_in(own, have)
        if late.num_rows:
            found.append(LeftBehind(record.data_date or "", record.version_id, late))
    return found[::-1]


def left_behind_by(state: StateStore, chunks: ChunkStore, version: VersionRecord) -> list[LeftBehind]:
    """The same of a full version that is current or was: up to when it first became so.

    Raises:
        VersionError: the full run's own list of files is gone.
    """
    run = state.get_run(version.run_id)
    if run is None or version.mode in (INCREMENTAL, COMPACT):
        return []
    moves = (events.PROMOTED, events.APPROVED, events.ROLLED_BACK)
    moments = [
        e.created_at
        for e in state.version_events(version.dataset)
        if e.version_id == version.version_id and (e.action in moves or e.note == BECAME_CURRENT)
    ]
    return left_behind(state, chunks, run, min(moments, default=None))


def _ended_after(state: StateStore, record: VersionRecord, moment: float) -> bool:
    run = state.get_run(record.run_id)
    return run is not None and (run.ended_at is None or run.ended_at > moment)


def files_not_in(own: pa.Table, have: pa.Table) -> pa.Table:
    """Names of files that ``have`` lacks, or has as they were before."""
    other = have.rename_columns([*NAME, "had_size", "had_mtime_ns", "had_etag"])
    both = own.join(other, list(NAME), join_type="left outer")
    same_age = pc.equal(both["mtime_ns"], both["had_mtime_ns"])
    differs = pc.or_(
        pc.not_equal(both["size"], both["had_size"]), pc.not_equal(both["etag"], both["had_etag"])
    )
    newer = pc.or_(pc.greater(both["mtime_ns"], both["had_mtime_ns"]), pc.and_(same_age, differs))
    # What a table no longer had for one of them, the other needs not have.
    lacks = pc.and_(pc.is_null(both["had_size"]), pc.not_equal(both["etag"], GONE))
    return both.filter(pc.or_(lacks, pc.fill_null(newer, False))).select(NAME)
