"""The version that an incremental run builds on, as the steps of dedup see it.

Its outputs are those of the runs that made it and the versions below it. They stand under the step name
``base``, with chunks under numbers of their own: the same files may be the same chunk in several runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dataflow_ops.kernels.arrow import U64
from dataflow_ops.kernels.digest import leading_u64
from dataflow_ops.layers.dedup import columns
from dataflow_ops.layers.dedup.filters import let_through
from dataflow_ops.protocols import Input, OutputSpec, Partitioning, Side
from dataflow_ops.schema import DOCUMENTS, FATES, FETCHED, chunk_name
from dataflow_ops.settings import JobSettings

STEP = "base"
"""Name under which the outputs are read; no step of the flow."""

FILTER_OF = {"keys": "key_filter", "bands": "band_filter"}
"""Table of the index -> the filters that are asked before it."""

ALIVE = (Input(STEP, "removed", "pointer"), Input("supersede", "gone", "all", ("chunk", "row")))
"""What tells which documents of the base are still there."""


def has_base(settings: JobSettings) -> bool:
    """Whether a run looks for duplicates in a version below it."""
    return settings.interval is not None and settings.interval.parent is not None


def fingerprint(settings: JobSettings) -> Mapping[str, object]:
    """Which version that is; nothing for other runs, whose tasks stay what they are."""
    interval = settings.interval
    if interval is None or interval.parent is None:
        return {}
    return {"base": interval.parent.manifest_sha256}


class BaseOutputs:
    """What the steps of the runs below wrote, in the shape of a step: never run, it tells columns only."""

    name = STEP
    layer = "dedup"
    partitioned_by: Partitioning = "all"
    inputs: tuple[Input, ...] = ()
    outputs = (
        OutputSpec("keys", columns.KEYS),
        OutputSpec("bands", columns.BANDS),
        OutputSpec("removed", columns.REMOVED),
        OutputSpec("gone", columns.GONE),
        OutputSpec("key_filter", columns.FILTERS),
        OutputSpec("band_filter", columns.FILTERS),
        OutputSpec("text", DOCUMENTS),
        OutputSpec("files", FETCHED),
        OutputSpec("fates", FATES),
    )

    def fingerprint(self) -> Mapping[str, object]:
        """Nothing: it makes nothing."""
        return {}


class Alive:
    """Tells which rows of the base's chunks are in its index: neither duplicates nor replaced.

    Args:
        side: of a step that declares :data:`ALIVE`.
    """

    def __init__(self, side: Side) -> None:
        self._side = side
        gone = side.table("supersede", "gone")
        chunk, row = columns.numbers(gone, "chunk"), columns.numbers(gone, "row")
        by_chunk = np.argsort(chunk, kind="stable")
        self._chunks, self._rows = chunk[by_chunk], row[by_chunk]

    def among(self, chunk: int, rows: npt.NDArray[np.uint32]) -> npt.NDArray[np.bool_]:
        """Which of these rows of one chunk are alive."""
        first, last = np.searchsorted(self._chunks, np.array([chunk, chunk], np.uint64), "left")
        last = int(np.searchsorted(self._chunks, np.uint64(chunk), "right"))
        lost = [self._rows[int(first) : last].astype(np.int64)]
        for table in self._side.slices(STEP, "removed", chunk_name(chunk)):
            lost.append(columns.numbers(table, "row").astype(np.int64))
        alive: npt.NDArray[np.bool_] = ~np.isin(rows.astype(np.int64), np.concatenate(lost))
        return alive


def hits(side: Side, kind: str, column: str, wanted: U64) -> Iterator[tuple[int, pa.Table]]:
    """Living rows of the base that share a value with the run's own documents.

    Args:
        side: of a step that reads this kind by slice, and declares :data:`ALIVE`.
        kind: of the base's outputs.
        column: uint64, or bytes of which the first eight count.
        wanted: the values, ascending and each once.

    Yields:
        ``(the chunk's number, its rows)``, in ascending order of number; none without rows.
    """
    wanted = let_through(side, STEP, FILTER_OF[kind], wanted)
    if not len(wanted):
        return
    alive = Alive(side)
    for partition, table in side.tables(STEP, kind):
        values = _values(table, column)
        at = np.minimum(np.searchsorted(wanted, values), len(wanted) - 1)
        met = np.flatnonzero(wanted[at] == values)
        if not len(met):
            continue
        chunk, found = int(partition, 16), table.take(pa.array(met))
        found = found.filter(pa.array(alive.among(chunk, columns.numbers(found, "row"))))
        if found.num_rows:
            yield chunk, found


def _values(table: pa.Table, column: str) -> U64:
    if pa.types.is_fixed_size_binary(table.schema.field(column).type):
        return leading_u64(columns.binary_rows(table, column))
    values: U64 = columns.numbers(table, column)
    return values
