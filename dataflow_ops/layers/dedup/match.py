"""Step ``match``: LSH buckets, documents that agree on a whole band of their signatures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dataflow_ops.kernels.arrow import I64, U64
from dataflow_ops.layers.dedup import base, columns, identity, order, spill
from dataflow_ops.layers.dedup.exact import runs_with
from dataflow_ops.layers.dedup.filters import Filling
from dataflow_ops.layers.dedup.lists import Lists
from dataflow_ops.protocols import Input, OutputSpec, Partitioning, Side
from dataflow_ops.settings import JobSettings
from dataflow_ops.values import StepResult

MAX_BUCKET = 10_000
"""Members of a bucket; a fuller one is cut in survivor order, that is by length of the key text, so that
texts of like length stay together."""


_PEAK = 6.0
"""Bytes at the peak for each byte of bands; measured by ``bench.scaling.ranges``."""


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
        """Find the buckets of one prefix, a sub-range of its bands in memory at a time."""
        share = spill.share_of(side, _PEAK)
        exact = self._settings.dedup.exact
        with (
            spill.Spill(side, share, _collapsed if exact else None) as rows,
            Lists(side, share // 4, base.has_base(self._settings)) as lists,
        ):
            for _, table in side.tables("sign", "bands"):
                rows.add(table.select(columns.BANDS.names), columns.numbers(table, "band"))
            bands_each = self._settings.dedup.minhash.band
            bloom = Filling(rows.rows, side.numbers.band_prefixes, bands_each, self._settings)
            split = 0
            for part in rows.ranges():
                side.checkpoint()
                if part.low == part.high and part.nbytes > share:
                    bloom.add(np.array([part.low], np.uint64))
                    split += self._crowd(side, part, share, lists)
                else:
                    split += self._some(side, list(part.tables()), bloom, lists)
            table, told = bloom.done()
            if rows.spilled:
                told["ranges_split"] = 1.0
            yield StepResult(outputs={"filter": table}, metrics=told)
            yield from lists.results()
            yield StepResult(
                metrics={"buckets": lists.found, "bucket_members": lists.members, "buckets_split": split}
            )

    def _some(self, side: Side, tables: list[pa.Table], bloom: Filling, lists: Lists) -> int:
        """Buckets of some bands; returns how many were cut."""
        hashes = np.concatenate([np.empty(0, np.uint64), *(columns.numbers(t, "band") for t in tables)])
        bloom.add(hashes)
        with_base = base.has_base(self._settings)
        rows, own = _shared(side, tables, hashes, with_base)
        if rows.num_rows == 0:
            return 0
        band, chunk, row, key, high, low = (columns.numbers(rows, name) for name in columns.BANDS.names)
        new = np.arange(rows.num_rows) < own
        sorted_rows = order.sort(high, low, chunk, row, band)
        if self._settings.dedup.exact:
            sorted_rows = _collapse(sorted_rows, band, key, new)
        members, starts = _runs(sorted_rows, band)
        starts, split = _cut(starts, self._max_bucket)
        if own < rows.num_rows:
            members, starts = runs_with(new, *_base_first(members, starts, new))
        lists.add(chunk, row, key, new, members, starts)
        return split

    def _crowd(self, side: Side, part: spill.Range, share: int, lists: Lists) -> int:
        """Buckets of one band that more documents have than fit; returns whether it was cut."""
        theirs = _of_base(side, np.array([part.low], np.uint64)) if base.has_base(self._settings) else []
        tables = chain(
            (_marked(t, True) for t in part.tables()),
            (_marked(t, False) for t in theirs),
        )
        exact = self._settings.dedup.exact
        with (
            spill.Spill(side, share, _collapsed if exact else None) as by_key,
            spill.Spill(side, share) as by_order,
        ):
            for table in tables:
                by_key.add(table, columns.numbers(table, "key"))
            for some in by_key.ranges():
                # Of one text a row is left for each of its runs.
                found = iter([_collapsed(some.table())]) if exact else some.tables()
                for table in found:
                    by_order.add(table, columns.numbers(table, "order_hi"))
            total, limit = by_order.rows, self._max_bucket
            if total < 2:
                return 0
            count = -(-total // limit)
            ends = [total * (k + 1) // count for k in range(count)]
            further = [spill.number(name) for name in ("order_lo", "chunk", "row")]
            held, at = [], 0
            for _, table in spill.finer(side, by_order, further, share):
                side.checkpoint()
                values = [columns.numbers(table, n) for n in ("order_hi", "order_lo", "chunk", "row")]
                held.append(table.take(pa.array(order.sort(*values))))
                at += table.num_rows
                while ends and at >= ends[0]:
                    whole = pa.concat_tables(held)
                    size = whole.num_rows - (at - ends.pop(0))
                    self._bucket(whole.slice(0, size).combine_chunks(), lists)
                    held = [whole.slice(size)]
            return int(total > limit)

    @staticmethod
    def _bucket(rows: pa.Table, lists: Lists) -> None:
        """One bucket, from rows in survivor order."""
        new = columns.numbers(rows, "new").astype(np.bool_)
        members, starts = np.arange(rows.num_rows), np.array([0, rows.num_rows], np.int64)
        if not new.all():
            members, starts = runs_with(new, *_base_first(members, starts, new))
        chunk, row, key = (columns.numbers(rows, n) for n in ("chunk", "row", "key"))
        lists.add(chunk, row, key, new, members, starts)


def _marked(table: pa.Table, new: bool) -> pa.Table:
    return table.append_column("new", pa.array(np.full(table.num_rows, new, np.uint8)))


def _collapsed(rows: pa.Table) -> pa.Table:
    """Of identical texts with one band the row that stays in a bucket; in no order."""
    band = columns.numbers(rows, "band")
    by_band = np.argsort(band)
    same = band[by_band][1:] == band[by_band][:-1]
    met = np.zeros(len(band), np.bool_)
    met[1:] |= same
    met[:-1] |= same
    alone, some = by_band[~met], by_band[met]
    key, high, low, chunk, row = (
        columns.numbers(rows, n)[some] for n in ("key", "order_hi", "order_lo", "chunk", "row")
    )
    new = columns.numbers(rows, "new")[some] if "new" in rows.column_names else np.ones(len(some), np.uint8)
    by_order = order.sort(high, low, chunk, row, band[some])
    kept = some[_collapse(by_order, band[some], key, new.astype(np.bool_))]
    return rows.take(pa.array(np.concatenate([kept, alone])))


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
        parts.append(t.filter(pa.array(shared[at : at + t.num_rows])))
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
