"""Days that were overtaken while they waited: what the current version lacks, and what becomes of them."""

from __future__ import annotations

import pyarrow as pa

from dataflow_ops.errors import VersionError
from dataflow_ops.pipeline.chain import records_behind
from dataflow_ops.pipeline.file_lists import NAME, files_of_run
from dataflow_ops.pipeline.left_behind import files_not_in
from dataflow_ops.pipeline.overtaken import Overtaken, overtaken
from dataflow_ops.pipeline.reporting import refresh_report
from dataflow_ops.pipeline.version_states import REJECTED, SHOWN_WAITING, shown
from dataflow_ops.state import version_events as events
from dataflow_ops.state.records import INCREMENTAL, VersionRecord
from dataflow_ops.state.store import StateStore
from dataflow_ops.storage.blob import BlobStore
from dataflow_ops.storage.chunk_store import ChunkStore


def missing_files(state: StateStore, chunks: ChunkStore, found: Overtaken) -> int | None:
    """How many files of an overtaken version the current one has not read; None: a list of them is gone.

    Days of sources without ``{date}`` take whatever the current version has not read, and a full run reads
    everything: what such a version waits for is then decided already.
    """
    versions = state.versions(found.by.dataset)
    try:
        own = files_of_run(found.version.run_id, state, chunks)
        known = own.slice(0, 0)
        for record in records_behind(versions, found.by.version_id)[::-1]:
            listed = files_of_run(record.run_id, state, chunks)
            newer = known.select(NAME)
            known = pa.concat_tables([known, listed.join(newer, list(NAME), join_type="left anti")])
    except VersionError:
        return None
    return int(files_not_in(own, known).num_rows)


def days_left_out(state: StateStore, chunks: ChunkStore, dataset: str) -> list[str]:
    """Sentences on the days that wait for a person, and whose documents the current version lacks."""
    versions = state.versions(dataset)
    told = []
    for one in versions[::-1]:
        if one.mode != INCREMENTAL or shown(one.state, one.is_current) != SHOWN_WAITING:
            continue
        found = overtaken(versions, one)
        missing = 0 if found is None else missing_files(state, chunks, found)
        if found is not None and missing != 0:
            files = "its documents" if missing is None else f"the documents of its {missing:,} file(s)"
            told.append(
                f"day {one.data_date} waits for a person ({one.version_id}), and {files} are not in this"
                f" version; they come with: {found.instead}"
            )
    return told


def supersede(state: StateStore, blobs: BlobStore, now: VersionRecord, who: str) -> list[str]:
    """Reject what still waits of a day that was run again; doing it again changes nothing.

    Args:
        state: open state store.
        blobs: where versions are.
        now: the version of the day that is current.
        who: run or person that made it so.

    Returns:
        Ids of the versions that were rejected.
    """
    if now.mode != INCREMENTAL:
        return []
    versions, done = state.versions(now.dataset), []
    for one in versions:
        if (one.mode, one.data_date) != (INCREMENTAL, now.data_date):
            continue
        if shown(one.state, one.is_current) != SHOWN_WAITING or overtaken(versions, one) is None:
            continue
        note = f"made again as {now.version_id}, which is current"
        state.set_version_state(now.dataset, one.version_id, REJECTED, events.REJECTED, who, note)
        run = state.get_run(one.run_id)
        if run is not None and run.state == "AWAITING_APPROVAL":
            run = state.set_run_state(one.run_id, "reject", note)
        refused = next(v for v in state.versions(now.dataset) if v.version_id == one.version_id)
        refresh_report(blobs, refused, "" if run is None else run.state)
        done.append(one.version_id)
    return done
