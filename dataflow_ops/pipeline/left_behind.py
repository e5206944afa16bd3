"""Days that were published while a full version was made: it lists its files once, at its beginning."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from dataflow_ops.errors import VersionError
from dataflow_ops.layers.ingest.listing import SAME_FILE
from dataflow_ops.pipeline.chain import records_below
from dataflow_ops.pipeline.file_lists import NAME, files_of_run
from dataflow_ops.pipeline.session import parse_job_text
from dataflow_ops.pipeline.version_trail import trail
from dataflow_ops.state.records import INCREMENTAL, RunRecord, VersionRecord
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
    state: StateStore, chunks: ChunkStore, full: RunRecord, current: VersionRecord | None
) -> list[LeftBehind]:
    """Days of the current version whose files a full run did not see, the oldest first.

    A file that the full run did not list because it was deleted after the day had read it is no longer
    wanted; that can't be told from one that came late where the day ended after the full run began, and
    counts as one that came late.

    Args:
        state: open state store.
        chunks: where lists of files are.
        full: run that made, or makes, a full version.
        current: the version that is, or was, current when the full one takes its place.

    Raises:
        VersionError: the full run's own list of files is gone.
    """
    if current is None:
        return []
    records = records_below(state.versions(full.dataset), current.version_id)
    days = [one for one in records if one.mode == INCREMENTAL and _ended_after(state, one, full.created_at)]
    if not days:
        return []
    have = files_of_run(full.run_id, state, chunks)
    sources = pa.array(sorted({s.source_id for s in parse_job_text(full.settings, full.run_id).sources}))
    seen = have.select(NAME).slice(0, 0)
    found = []
    for record in days[::-1]:
        try:
            own = files_of_run(record.run_id, state, chunks)
        except VersionError:
            found.append(LeftBehind(record.data_date or "", record.version_id, None))
            continue
        own = own.filter(pc.is_in(own["source_id"], sources))
        own = own.join(seen, list(NAME), join_type="left anti").select(SAME_FILE)
        seen = pa.concat_tables([seen, own.select(NAME)])
        late = _not_in(own, have)
        if late.num_rows:
            found.append(LeftBehind(record.data_date or "", record.version_id, late))
    return found[::-1]


def left_behind_by(state: StateStore, chunks: ChunkStore, version: VersionRecord) -> list[LeftBehind]:
    """The same of a full version that is current or was: against the one whose place it took.

    Raises:
        VersionError: the full run's own list of files is gone.
    """
    run = state.get_run(version.run_id)
    if run is None or version.mode == INCREMENTAL:
        return []
    versions = state.versions(version.dataset)
    name = trail(versions, state.version_events(version.dataset)).before.get(version.version_id)
    before = next((one for one in versions if one.version_id == name), None)
    return left_behind(state, chunks, run, before)


def _ended_after(state: StateStore, record: VersionRecord, moment: float) -> bool:
    run = state.get_run(record.run_id)
    return run is not None and (run.ended_at is None or run.ended_at > moment)


def _not_in(own: pa.Table, have: pa.Table) -> pa.Table:
    """Names of files that ``have`` lacks, or has as they were before."""
    other = have.rename_columns([*NAME, "had_size", "had_mtime_ns", "had_etag"])
    both = own.join(other, list(NAME), join_type="left outer")
    same_age = pc.equal(both["mtime_ns"], both["had_mtime_ns"])
    differs = pc.or_(
        pc.not_equal(both["size"], both["had_size"]), pc.not_equal(both["etag"], both["had_etag"])
    )
    newer = pc.or_(pc.greater(both["mtime_ns"], both["had_mtime_ns"]), pc.and_(same_age, differs))
    wanted = pc.or_kleene(pc.is_null(both["had_size"]), newer)
    return both.filter(pc.fill_null(wanted, True)).select(NAME)
