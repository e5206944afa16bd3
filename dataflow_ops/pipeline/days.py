"""What an incremental run takes: its day's files, or those that the version below it did not have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from dataflow_ops.dates import parse_day
from dataflow_ops.engine.inputs import OutputIndex
from dataflow_ops.errors import ConfigError, CorruptOutput, StateError, VersionError
from dataflow_ops.layers.ingest.listing import SAME_FILE, list_sources, without
from dataflow_ops.pipeline.chain import UNFINISHED, records_below
from dataflow_ops.pipeline.parent import ranges_of
from dataflow_ops.pipeline.version_states import INCREMENT, PUBLISHED
from dataflow_ops.schema import FILES
from dataflow_ops.settings import JobSettings
from dataflow_ops.state.records import VersionRecord
from dataflow_ops.state.store import StateStore
from dataflow_ops.storage.blob import BlobStore
from dataflow_ops.storage.chunk_store import ChunkStore
from dataflow_ops.timing import IntervalSettings

MODES = ("full", INCREMENT)


def last_full(state: StateStore, dataset: str) -> VersionRecord | None:
    """The full version that new ones are compared with: the current one, or the one at the bottom of what the
    current one builds on; else the newest published one.
    """
    current = state.current(dataset)
    if current is not None:
        return records_below(state.versions(dataset), current.version_id)[0]
    known = (v for v in state.versions(dataset) if v.mode != INCREMENT and v.state == PUBLISHED)
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

    Args:
        settings: of the run, from :func:`in_interval`.
        state: where the base's run is.
        chunks: where its list of files is.
        note: told how many files were left out.

    Raises:
        ConfigError: the job has no sources, or one of them is not there.
        VersionError: the base version's list of files can't be had.
    """
    listing = list_sources(settings)
    undated = [s.source_id for s in settings.sources if not s.dated]
    if settings.interval is None or not settings.interval.base or not undated:
        return listing
    base = settings.interval.base
    new = without(listing, _files_of(base, settings.dataset.id, state, chunks), undated)
    note(
        f"{listing.num_rows - new.num_rows} file(s) of version {base} are left out, {new.num_rows} are taken"
    )
    return new.replace_schema_metadata(listing.schema.metadata)


def _files_of(version: str, dataset: str, state: StateStore, chunks: ChunkStore) -> pa.Table:
    """Files of a version and of those below it, each as the uppermost has it that read it."""
    known = FILES.empty_table().select(SAME_FILE)
    try:
        records = records_below(state.versions(dataset), version)
    except VersionError as e:
        raise VersionError(f"{e}; start a new run") from e
    for record in records[::-1]:
        older = _listed_by(record, state, chunks).combine_chunks()
        lower = older.join(known, ["source_id", "path"], join_type="left anti")
        known = pa.concat_tables([known, lower.select(SAME_FILE)])
    return known


def _listed_by(record: VersionRecord, state: StateStore, chunks: ChunkStore) -> pa.Table:
    version, run = record.version_id, state.get_run(record.run_id)
    assert run is not None, "a version's run is a foreign key"
    if run.state in UNFINISHED:
        raise VersionError(
            f"run {run.run_id}, which made version {version}, is {run.state} again; let it end, then go on"
        )
    try:
        output = OutputIndex(state, run.run_id).output("discover", "files", "all")
        files: pa.Table = chunks.read(output, "", SAME_FILE, verify=True, schema=FILES)
    except (StateError, CorruptOutput) as e:
        raise VersionError(
            f"the list of the files of version {version} is gone ({e}); run the job in full mode first"
        ) from e
    return files
