"""What an incremental run takes: its day's files, or those that the version below it did not have."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from dataflow_ops.dates import parse_day
from dataflow_ops.errors import ConfigError
from dataflow_ops.layers.ingest.listing import LISTED, list_sources, without
from dataflow_ops.layers.ingest.sources.sql import GONE
from dataflow_ops.media import ROWS
from dataflow_ops.pipeline.chain import records_behind
from dataflow_ops.pipeline.file_lists import NAME, Below, PutBack, files_below
from dataflow_ops.pipeline.left_behind import left_behind_by
from dataflow_ops.pipeline.outside import OUTSIDE
from dataflow_ops.pipeline.parent import ranges_of
from dataflow_ops.pipeline.version_states import INCREMENT, PUBLISHED
from dataflow_ops.settings import JobSettings
from dataflow_ops.state.records import VersionRecord
from dataflow_ops.state.store import StateStore
from dataflow_ops.storage.blob import BlobStore
from dataflow_ops.storage.chunk_store import ChunkStore
from dataflow_ops.timing import IntervalSettings

FULL = "full"
MODES = (FULL, INCREMENT)


def last_full(state: StateStore, dataset: str) -> VersionRecord | None:
    """The full version that new ones are compared with: the current one, or the one at the bottom of what the
    current one builds on; else the newest published one.
    """
    current = state.current(dataset)
    if current is not None:
        return records_behind(state.versions(dataset), current.version_id)[0]
    known = (v for v in state.versions(dataset) if v.mode == FULL and v.state == PUBLISHED)
    return next(known, None)


def in_interval(
    settings: JobSettings,
    mode: str,
    data_date: str,
    state: StateStore | None = None,
    blobs: BlobStore | None = None,
) -> JobSettings:
    """The settings as the run keeps them: an incremental one knows its day, and its base once and for all.

    Args:
        settings: the job.
        mode: ``full`` or ``incremental``.
        data_date: ISO date.
        state: where versions are; None where there are none yet.
        blobs: where their manifests are.

    Raises:
        ConfigError: no such mode, or not a date.
        VersionError: the current version's manifest is damaged.
    """
    if mode not in MODES:
        raise ConfigError(f"--mode {mode}: there is no such mode; use --mode full or --mode {INCREMENT}")
    day = parse_day(data_date, "--date")
    if mode != INCREMENT:
        return settings
    base = (
        None if state is None else state.current(settings.dataset.id) or last_full(state, settings.dataset.id)
    )
    ranges = {} if state is None or blobs is None else ranges_of(state, blobs, settings)
    interval = IntervalSettings(day=day, base="" if base is None else base.version_id, ranges=ranges)
    return settings.model_copy(update={"interval": interval})


def listing_of(
    settings: JobSettings, state: StateStore, chunks: ChunkStore, note: Callable[[str], Any]
) -> pa.Table:
    """List the sources of a run; without the base version's files, where a source has no ``{date}``.

    Of sources with ``{date}`` files of other days are taken, too, where they are owed: their dead letters
    were put back, or they were published while the full version below was made, which lacks them.

    Args:
        settings: of the run, from :func:`in_interval`.
        state: where the base's run is.
        chunks: where its list of files is.
        note: told how many files were left out.

    Raises:
        ConfigError: the job has no sources, or one of them is not there.
        VersionError: the base version's list of files can't be had.
    """
    listing = list_sources(settings, OUTSIDE)
    if settings.interval is None or not settings.interval.base:
        return listing
    base = settings.interval.base
    below = files_below(base, settings.dataset.id, state, chunks)
    facts = listing.schema.metadata
    listing = _with_owed(settings, listing, below, _late(settings, state, chunks), note)
    listing = _with_emptied(settings, listing, below.known, note)
    undated = [s.source_id for s in settings.sources if not s.dated]
    new = without(listing, below.known, undated) if undated else listing
    if undated:
        left = listing.num_rows - new.num_rows
        note(f"{left} file(s) of version {base} are left out, {new.num_rows} are taken")
    return new.replace_schema_metadata(facts)


def _with_emptied(
    settings: JobSettings, listing: pa.Table, known: pa.Table, note: Callable[[str], Any]
) -> pa.Table:
    """The listing with ranges of keys that tables no longer have, as ranges without rows.

    Where a range begins follows from the rows themselves: its first row may go, and its others be counted to
    the range before. What it gave must be replaced along with them, or a changed row would stand twice. A
    table without any rows is more likely being filled anew: what it gave stays until the next full run.
    """
    for source_id in [s.source_id for s in settings.sources if s.kind == "sql"]:
        before = known.filter(pc.equal(known["source_id"], source_id)).select(NAME)
        now = listing.filter(pc.equal(listing["source_id"], source_id)).select(NAME)
        if not before.num_rows:
            continue
        if not now.num_rows:
            note(f"source '{source_id}' has no rows: what it gave before stays until the next full run")
            continue
        rows = [
            {**name, "size": 0, "mtime_ns": 0, "etag": GONE, "media_type": ROWS, "cuts": [], "problem": ""}
            for name in before.join(now, list(NAME), join_type="left anti").to_pylist()
        ]
        if rows:
            emptied = pa.Table.from_pylist(rows, schema=LISTED)
            listing = pa.concat_tables([listing.replace_schema_metadata(), emptied])
            listing = listing.sort_by([("source_id", "ascending"), ("path", "ascending")]).combine_chunks()
    return listing


def _late(settings: JobSettings, state: StateStore, chunks: ChunkStore) -> list[PutBack]:
    """Files of days that were published while the full version at the bottom of the base was made."""
    assert settings.interval is not None
    bottom = records_behind(state.versions(settings.dataset.id), settings.interval.base)[0]
    late = left_behind_by(state, chunks, bottom)
    return [PutBack(one.day, one.files) for one in late if one.files is not None]


def _with_owed(
    settings: JobSettings,
    listing: pa.Table,
    below: Below,
    late: Sequence[PutBack],
    note: Callable[[str], Any],
) -> pa.Table:
    """The listing with files of other days that the version below should have, of sources with ``{date}``."""
    dated = [s for s in settings.sources if s.dated]
    for owed in (*below.put_back, *late) if dated else ():
        mine = owed.files.filter(pc.is_in(owed.files["source_id"], pa.array([s.source_id for s in dated])))
        if not mine.num_rows:
            continue
        assert settings.interval is not None
        names = set(mine["source_id"].to_pylist())
        then = settings.model_copy(
            # Of every day: who read a file last may have been of another day than the file.
            update={"interval": None, "sources": [s for s in dated if s.source_id in names]}
        )
        found = list_sources(then, OUTSIDE)
        rows = found.select(NAME).append_column("row", pa.array(range(found.num_rows), pa.int64()))
        rows = rows.join(mine, list(NAME), join_type="left semi")
        rows = rows.join(listing.select(NAME), list(NAME), join_type="left anti")
        found = without(found.take(rows["row"].combine_chunks()), below.known, sorted(names))
        if found.num_rows:
            note(
                f"{found.num_rows} file(s) of {owed.day or 'earlier days'} are taken, too: version"
                f" {settings.interval.base} lacks them"
            )
            listing = pa.concat_tables([listing.replace_schema_metadata(), found.replace_schema_metadata()])
            listing = listing.sort_by([("source_id", "ascending"), ("path", "ascending")]).combine_chunks()
    return listing
