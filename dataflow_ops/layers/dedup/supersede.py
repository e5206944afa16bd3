"""Step ``supersede``, of incremental runs: which documents of the versions below the run's files replace.

A file that is read again, with whatever content, stands for itself alone: all that an earlier version made
of it is replaced. A chunk that was given up replaces nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from dataflow_ops.layers.dedup import base, columns
from dataflow_ops.protocols import Input, OutputSpec, Partitioning, Side
from dataflow_ops.settings import JobSettings
from dataflow_ops.values import StepResult

_FILE = ("source_id", "path")


class SupersedeStep:
    """Reduce over everything. Outputs ``tombstones`` (this run's) and ``gone`` (of all runs so far)."""

    name = "supersede"
    layer = "dedup"
    partitioned_by: Partitioning = "all"
    inputs = (
        Input("fetch", "files", "all", _FILE),
        Input("sign", "signatures", "all", ("row",)),  # only of chunks that came so far
        Input(base.STEP, "files", "all", _FILE),
        Input(base.STEP, "gone", "all"),
        Input(base.STEP, "fates", "pointer", ("doc_id", *_FILE, "fate", "step", "shard")),
    )
    outputs = (OutputSpec("tombstones", columns.TOMBSTONES), OutputSpec("gone", columns.GONE))

    def __init__(self, settings: JobSettings) -> None:
        self._settings = settings

    def fingerprint(self) -> Mapping[str, object]:
        """Which version is below."""
        return {"step": 1, **base.fingerprint(self._settings)}

    def run(self, side: Side, start: int) -> Iterator[StepResult]:
        """Look for the run's files in the lists of the versions below, and for what became of them there."""
        done = {chunk for chunk, _ in side.tables("sign", "signatures")}
        names = [_names(table) for chunk, table in side.tables("fetch", "files") if chunk in done]
        own = pa.concat_arrays([n.combine_chunks() for n in names]).unique() if names else None
        gone = [table for _, table in side.tables(base.STEP, "gone")]
        before = pa.concat_tables(gone) if gone else columns.GONE.empty_table()
        if own is None or not len(own):
            yield StepResult(outputs={"gone": before})
            return
        stones, more = [], []
        for partition, files in side.tables(base.STEP, "files"):
            side.checkpoint()
            listed = _names(files)
            hit = listed.filter(pc.is_in(listed, value_set=own))
            if len(hit):
                stone, place, row = self._replaced(side, partition, hit.combine_chunks().unique(), before)
                stones.append(stone)
                more.append(_gone(int(partition, 16), place, row))
        made = pa.concat_tables(stones) if stones else columns.TOMBSTONES.empty_table()
        whole = pa.concat_tables([before, *more])
        whole = whole.sort_by([("chunk", "ascending"), ("place", "ascending")])
        yield StepResult(
            outputs={"tombstones": made, "gone": whole},
            metrics={"documents_replaced": made.num_rows},
        )

    @staticmethod
    def _replaced(
        side: Side, partition: str, files: pa.Array, before: pa.Table
    ) -> tuple[pa.Table, npt.NDArray[np.uint32], npt.NDArray[np.int64]]:
        """Documents of a chunk that came from some files and were not replaced before."""
        chunk = np.uint64(int(partition, 16))
        fates = side.lookup(base.STEP, "fates", partition).combine_chunks()
        # Lineage holds the records without text first.
        without = int(pc.sum(pc.equal(fates["step"], "parse")).as_py() or 0)
        known = columns.numbers(before, "place")[columns.numbers(before, "chunk") == chunk]
        hit = pc.is_in(_names(fates), value_set=files).to_numpy().astype(np.bool_)
        hit[known] = False
        place = np.flatnonzero(hit)
        table = fates.take(pa.array(place))
        stone = pa.table(
            {
                "chunk": pa.array(np.full(len(place), chunk, np.uint64)),
                "place": pa.array(place.astype(np.uint32)),
                **{name: table[name] for name in ("doc_id", "fate", "shard")},
            }
        )
        row = np.where(place >= without, place - without, -1).astype(np.int64)
        return stone.select(columns.TOMBSTONES.names).cast(columns.TOMBSTONES), place.astype(np.uint32), row


def _names(table: pa.Table) -> pa.ChunkedArray:
    """``source NUL path`` of each row."""
    return pc.binary_join_element_wise(table["source_id"], table["path"], "\x00")


def _gone(chunk: int, place: npt.NDArray[np.uint32], row: npt.NDArray[np.int64]) -> pa.Table:
    return pa.table(
        [pa.array(np.full(len(place), chunk, np.uint64)), pa.array(place), pa.array(row)],
        schema=columns.GONE,
    )
