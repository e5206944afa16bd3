"""Step ``match``: LSH buckets, documents that agree on a whole band of their signatures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dataflow_ops.kernels import bands
from dataflow_ops.kernels.arrow import I64, U64
from dataflow_ops.kernels.digest import prefix_of
from dataflow_ops.layers.dedup import base, columns, identity, order
from dataflow_ops.layers.dedup.exact import runs_with
from dataflow_ops.layers.dedup.filters import filter_of
from dataflow_ops.protocols import Input, OutputSpec, Partitioning, Side
from dataflow_ops.settings import JobSettings
from dataflow_ops.values import StepResult

MAX_BUCKET = 10_000
"""Members of a bucket; a fuller one is cut in survivor order, that is by length of the key text, so that
texts of like length stay together."""


class MatchStep:
    """Reduce over a band prefix.

    Outputs ``buckets``, sliced by block, and ``wanted``, sliced by chunk: which texts which block needs; and
    the ``filter`` of the band hashes. A bucket's block follows from its first member, so that buckets which
    overlap there are verified together and share texts and comparisons; from that member's text, not its
    address, so that a file added to its chunk moves no bucket to another block.
    """

    name = "match"
    layer = "dedup"
    partitioned_by: Partitioning = "band_prefix"

    def __init__(self, settings: JobSettings, max_bucket: int = MAX_BUCKET) -> None:
        self._settings = settings
        self._max_bucket = max_bucket
        self.inputs: tuple[Input, ...] = (Input("sign", "bands", "slice"),)
        self.outputs: tuple[OutputSpec, ...] = (
            OutputSpec("buckets", columns.BUCKETS, "block"),
            OutputSpec("wanted", columns.WANTED, "chunk"),
            OutputSpec("filter", columns.FILTERS),
        )
        if base.has_base(settings):
            of_base = Input(base.STEP, "bands", "slice", ("band", "row", "key", "order_hi"))
            self.inputs += (of_base, *base.ALIVE, Input(base.STEP, "band_filter", "pointer"))
            self.outputs += (OutputSpec("recalled", columns.RECALLED, "block"),)

    def fingerprint(self) -> Mapping[str, object]:
        """What bands are, and how buckets are cut."""
        return {
            "step": 2,
            **identity.band_fingerprint(self._settings),
            "exact": self._settings.dedup.exact,
            "max_bucket": self._max_bucket,
            **base.fingerprint(self._settings),
        }

    def run(self, side: Side, start: int) -> Iterator[StepResult]:
        """Find the buckets of one prefix."""
        tables = [table for _, table in side.tables("sign", "bands")]
        hashes = np.concatenate([np.empty(0, np.uint64), *(columns.numbers(t, "band") for t in tables)])
        bands_each = self._settings.dedup.minhash.band
        bloom, told = filter_of(hashes, side.numbers.band_prefixes, bands_each, self._settings)
        yield StepResult(outputs={"filter": bloom}, metrics=told)
        rows, own = _shared(side, tables, hashes, base.has_base(self._settings))
        if rows.num_rows == 0:
            yield StepResult()
            return
        band, chunk, row, key, high, low = (columns.numbers(rows, name) for name in columns.BANDS.names)
        new = np.arange(rows.num_rows) < own
        sorted_rows = order.sort(high, low, chunk, row, band)
        if self._settings.dedup.exact:
            sorted_rows = _collapse(sorted_rows, band, key, new)
        members, starts = _runs(sorted_rows, band)
        starts, split = _cut(starts, self._max_bucket)
        if own < rows.num_rows:
            members, starts = runs_with(new, *_base_first(members, starts, new))
        if len(starts) == 1:
            yield StepResult()
            return
        addresses = bands.mix_rows(chunk) ^ row.astype(np.uint64)
        bucket = bands.hash_runs(addresses[members], starts)
        keep = np.sort(np.unique(bucket, return_index=True)[1])  # equal lists once
        blocks = prefix_of(bands.mix_rows(key[members[starts[:-1]]]), side.numbers.blocks)
        sizes = np.diff(starts)[keep]
        at = np.repeat(starts[:-1][keep] - np.concatenate([[0], np.cumsum(sizes)[:-1]]), sizes) + np.arange(
            sizes.sum()
        )
        members = members[at]
        block = np.repeat(blocks[keep], sizes)
        mine, theirs = members[new[members]], members[~new[members]]
        of_base = {}
        if base.has_base(self._settings):
            of_base["recalled"] = _recalled(
                chunk[theirs], row[theirs], key[theirs], block[~new[members]], side.numbers.blocks
            )
        yield StepResult(
            outputs={
                "buckets": pa.Table.from_arrays(
                    [
                        pa.array(np.repeat(bucket[keep], sizes)),
                        pa.array(chunk[members]),
                        pa.array(row[members]),
                    ],
                    schema=columns.BUCKETS,
                ).append_column("slice", columns.prefix_slices(block, side.numbers.blocks)),
                "wanted": _wanted(chunk[mine], row[mine], block[new[members]]),
                **of_base,
            },
            metrics={
                "buckets": len(keep),
                "bucket_members": len(members),
                "buckets_split": split,
            },
        )


def _shared(side: Side, tables: list[pa.Table], band: U64, with_base: bool) -> tuple[pa.Table, int]:
    """Rows whose band hash occurs more than once, and how many of them are the run's own: the first ones.

    The others are the bulk, and dropped before any sorting.
    """
    if not tables:
        return pa.Table.from_batches([], schema=columns.BANDS), 0
    by_band = np.argsort(band)
    same = band[by_band][1:] == band[by_band][:-1]
    shared = np.zeros(len(band), np.bool_)
    shared[by_band[1:][same]] = True
    shared[by_band[:-1][same]] = True
    theirs = _of_base(side, np.unique(band)) if with_base else []
    if theirs:
        shared |= np.isin(band, np.concatenate([columns.numbers(t, "band") for t in theirs]))
    parts, at = [], 0
    for t in tables:
        parts.append(t.select(columns.BANDS.names).filter(pa.array(shared[at : at + t.num_rows])))
        at += t.num_rows
    return pa.concat_tables([*parts, *theirs]), int(shared.sum())


def _of_base(side: Side, wanted: U64) -> list[pa.Table]:
    """Rows of the version below that share a band with the run's own documents.

    They keep their place in the survivor order here, so that a bucket which is cut is cut by length.
    """
    tables = []
    for chunk, found in base.hits(side, "bands", "band", wanted):
        number = pa.array(np.full(found.num_rows, chunk, np.uint64))
        low = pa.array(np.zeros(found.num_rows, np.uint64))
        table = found.append_column("chunk", number).append_column("order_lo", low)
        tables.append(table.select(columns.BANDS.names).cast(columns.BANDS))
    return tables


def _base_first(members: I64, starts: I64, new: npt.NDArray[np.bool_]) -> tuple[I64, I64]:
    """Members of each run with those of the version below first."""
    run = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    return members[np.lexsort((np.arange(len(members)), new[members], run))], starts


def _collapse(rows: I64, band: U64, key: U64, new: npt.NDArray[np.bool_]) -> I64:
    """Of identical texts in a bucket keep one of the version below, else the first in survivor order: exact
    copies are one node anyway.
    """
    by_key = np.lexsort((np.arange(len(rows)), new[rows], key[rows], band[rows]))
    b, k = band[rows][by_key], key[rows][by_key]
    first = np.ones(len(rows), np.bool_)
    first[1:] = (b[1:] != b[:-1]) | (k[1:] != k[:-1])
    kept: I64 = rows[np.sort(by_key[first])]
    return kept


def _runs(rows: I64, band: U64) -> tuple[I64, I64]:
    """Members and bounds of the runs of two or more equal bands."""
    values = band[rows]
    bounds = np.concatenate([[0], np.flatnonzero(values[1:] != values[:-1]) + 1, [len(rows)]]).astype(
        np.int64
    )
    sizes = np.diff(bounds)
    keep = sizes > 1
    members = rows[np.repeat(keep, sizes)]
    return members, np.concatenate([[0], np.cumsum(sizes[keep])]).astype(np.int64)


def _cut(starts: I64, limit: int) -> tuple[I64, int]:
    """Cut runs longer than ``limit`` into equal parts; return the bounds and how many runs were cut."""
    sizes = np.diff(starts)
    long = np.flatnonzero(sizes > limit)
    if not len(long):
        return starts, 0
    bounds = [starts]
    for i in long:
        parts = -(-int(sizes[i]) // limit)
        bounds.append(starts[i] + (np.arange(1, parts) * int(sizes[i])) // parts)
    return np.sort(np.concatenate(bounds)), len(long)


def _recalled(chunk: U64, row: npt.NDArray[np.uint32], key: U64, block: I64, ranges: int) -> pa.Table:
    by_address = np.lexsort((block, row, chunk))
    c, r, k, b = chunk[by_address], row[by_address], key[by_address], block[by_address]
    new = np.ones(len(c), np.bool_)
    new[1:] = (c[1:] != c[:-1]) | (r[1:] != r[:-1]) | (b[1:] != b[:-1])
    arrays = [pa.array(c[new]), pa.array(r[new]), pa.array(k[new]), pa.array(b[new].astype(np.uint32))]
    return pa.Table.from_arrays(arrays, schema=columns.RECALLED).append_column(
        "slice", columns.prefix_slices(prefix_of(c[new], ranges), ranges)
    )


def _wanted(chunk: U64, row: npt.NDArray[np.uint32], block: I64) -> pa.Table:
    by_address = np.lexsort((block, row, chunk))
    c, r, b = chunk[by_address], row[by_address], block[by_address]
    new = np.ones(len(c), np.bool_)
    new[1:] = (c[1:] != c[:-1]) | (r[1:] != r[:-1]) | (b[1:] != b[:-1])
    arrays = [pa.array(r[new]), pa.array(b[new].astype(np.uint32))]
    return pa.Table.from_arrays(arrays, schema=columns.WANTED).append_column(
        "slice", columns.chunk_slices(c[new])
    )
