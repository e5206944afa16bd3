"""Listing the sources of a job into one table: the only look at them that a run takes."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from dataflow_ops.dates import days_until
from dataflow_ops.errors import ConfigError, UnreadableFile
from dataflow_ops.layers.ingest.outside import NOTHING, Outside
from dataflow_ops.layers.ingest.sources import OUTSIDE_KINDS, found_in, open_path
from dataflow_ops.layers.ingest.sources.days import of_days
from dataflow_ops.layers.ingest.sources.listed import LeftOut, SourceFile
from dataflow_ops.media import unpacked_bytes
from dataflow_ops.ranges import cuts, is_splittable
from dataflow_ops.settings import JobSettings
from dataflow_ops.source_settings import SourceSettings
from dataflow_ops.timing import IntervalSettings

LISTED = pa.schema(
    [
        ("source_id", pa.string()),
        ("path", pa.string()),
        ("size", pa.int64()),  # -1: not known before fetching
        ("mtime_ns", pa.int64()),
        ("etag", pa.string()),
        ("media_type", pa.string()),
        ("cuts", pa.list_(pa.int64())),  # starts of its parts; empty: whole
        ("problem", pa.string()),  # why it can't be read; "" for files
    ]
)
"""One row for each file, in ascending order of (source_id, path)."""

SAME_FILE = ("source_id", "path", "size", "mtime_ns", "etag")
"""Columns that tell whether a listed file is one that was listed before."""

LEFT_OUT = b"left_out"
"""Key of the table's metadata: JSON of source id -> reason -> entries left out on purpose."""

_BLOCK = 10_000
"""Files held as Python objects at a time."""

UNKNOWN_SIZE = 100_000
"""Bytes counted for a page that was not fetched yet: about the median size of HTML pages on the web."""


def check_sources(settings: JobSettings, outside: Outside = NOTHING) -> None:
    """Look whether every source is there, and no further than its first file.

    Raises:
        ConfigError: the job has no sources, or one of them is not there.
        DataFlowError: a server does not answer, or lets nobody in.
    """
    _some(settings)
    for source in settings.sources:
        next(found_in(_in_interval(source, settings.interval), Counter(), outside), None)


def list_sources(settings: JobSettings, outside: Outside = NOTHING) -> pa.Table:
    """List every file of every source; of an interval, the days' files of sources that have ``{date}``.

    Args:
        settings: the job.
        outside: ways to databases and object stores.

    Raises:
        ConfigError: the job has no sources, or one of them is not there.
        DataFlowError: a server does not answer, or lets nobody in.
    """
    _some(settings)
    limit = chunk_bytes(settings)
    left_out: dict[str, LeftOut] = {}
    blocks = [LISTED.empty_table()]
    for source in settings.sources:
        counter = left_out[source.source_id] = Counter()
        found = found_in(_in_interval(source, settings.interval), counter, outside)
        while rows := [_row(source, file, limit) for file in islice(found, _BLOCK)]:
            blocks.append(pa.Table.from_pylist(rows, schema=LISTED))
    facts = {name: dict(sorted(counter.items())) for name, counter in sorted(left_out.items())}
    listing = pa.concat_tables(blocks).sort_by([("source_id", "ascending"), ("path", "ascending")])
    return listing.combine_chunks().replace_schema_metadata({LEFT_OUT: json.dumps(facts)})


def _some(settings: JobSettings) -> None:
    if not settings.sources:
        raise ConfigError(
            "the job names no sources: add them with --source PATH, or to the job file as\n"
            "sources:\n  - {kind: files, path: ./docs}"
        )


def left_out_of(listing: pa.Table) -> dict[str, dict[str, int]]:
    """Source id -> reason -> how many entries were left out on purpose."""
    metadata = listing.schema.metadata or {}
    found: dict[str, dict[str, int]] = json.loads(metadata.get(LEFT_OUT, b"{}"))
    return found


def chunk_bytes(settings: JobSettings) -> int:
    """Most unpacked bytes of a chunk."""
    return max(1, int(settings.ingest.chunk_mb * (1 << 20)))


def weight(path: str, size: int) -> int:
    """Unpacked bytes that a listed file counts for."""
    return UNKNOWN_SIZE if size < 0 else unpacked_bytes(path, size)


def without(listing: pa.Table, known: pa.Table, source_ids: Sequence[str]) -> pa.Table:
    """The listing less those files of some sources that are known as they are.

    Args:
        listing: from :func:`list_sources`.
        known: with the columns of :data:`SAME_FILE`.
        source_ids: sources of which known files are left out.
    """
    numbered = listing.select(SAME_FILE).append_column("row", pa.array(range(listing.num_rows), pa.int64()))
    concerned = numbered.filter(pc.is_in(numbered["source_id"], pa.array(source_ids, pa.string())))
    new = concerned.join(known.select(SAME_FILE), list(SAME_FILE), join_type="left anti")["row"]
    others = numbered.filter(pc.invert(pc.is_in(numbered["source_id"], pa.array(source_ids, pa.string()))))
    rows = pa.concat_arrays([new.combine_chunks(), others["row"].combine_chunks()])
    return listing.take(rows.take(pc.sort_indices(rows)))


def _in_interval(source: SourceSettings, interval: IntervalSettings | None) -> SourceSettings:
    if interval is None or not source.dated:
        return source
    return of_days(source, days_until(interval.day, source.late_days))


def _row(source: SourceSettings, file: SourceFile, limit: int) -> dict[str, Any]:
    starts: list[int] = []
    is_local = source.kind not in OUTSIDE_KINDS  # what comes from outside is brought whole
    if is_local and not file.problem and file.size >= 0 and weight(file.path, file.size) > limit:
        starts, file = _starts(source, file, limit)
    return {
        "source_id": source.source_id,
        "path": file.path,
        "size": file.size,
        "mtime_ns": file.mtime_ns,
        "etag": file.etag,
        "media_type": file.media_type,
        "cuts": starts,
        "problem": file.problem,
    }


def _starts(source: SourceSettings, file: SourceFile, limit: int) -> tuple[list[int], SourceFile]:
    """Where a large file is cut; a file that can't be opened stays whole, and fetch says why."""
    if not is_splittable(file.path, file.media_type):
        return [], file
    try:
        with open_path(source, file.path) as opened:
            found = cuts(opened, file.path, file.media_type, file.size, limit)
    except UnreadableFile as e:
        return [], replace(file, problem=str(e))
    except OSError:
        return [], file
    return (found if len(found) > 1 else []), file
