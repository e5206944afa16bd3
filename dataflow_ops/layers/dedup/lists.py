"""What ``match`` writes of the buckets found in the sub-ranges of a prefix, each list of members once."""

from __future__ import annotations

from collections.abc import Iterator
from types import TracebackType
from typing import Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dataflow_ops.kernels import bands
from dataflow_ops.kernels.arrow import I64, U64
from dataflow_ops.kernels.digest import prefix_of
from dataflow_ops.layers.dedup import columns, spill
from dataflow_ops.protocols import Side
from dataflow_ops.values import StepResult

_ROWS = pa.schema([*columns.BUCKETS, ("block", pa.uint32()), ("list", pa.uint64())])
_WANTED = pa.schema([("chunk", pa.uint64()), ("row", pa.uint32()), ("block", pa.uint32())])
_FOUND = pa.schema([("hash", pa.uint64()), ("list", pa.uint64()), ("size", pa.int64())])


class Lists:
    """Buckets as they are found; a context, which removes what it put on disk.

    Args:
        side: of the task.
        share: bytes of each kind of rows held in memory.
        with_base: some members may be documents of the version below.
    """

    def __init__(self, side: Side, share: int, with_base: bool) -> None:
        self._side, self._share, self._with_base = side, share, with_base
        self._rows = spill.Spill(side, share)
        self._wanted = spill.Spill(side, share)
        self._recalled = spill.Spill(side, share)
        self._hashes = spill.Spill(side, share)
        self._times = 0
        self.found = 0
        """Distinct lists, once :meth:`results` are through."""
        self.members = 0
        """Their members."""

    def add(
        self,
        chunk: U64,
        row: npt.NDArray[np.uint32],
        key: U64,
        new: npt.NDArray[np.bool_],
        members: I64,
        starts: I64,
    ) -> None:
        """Take the buckets of a sub-range, which lie behind those of the sub-ranges before.

        Args:
            chunk: of each document; with ``row`` its address.
            row: see there.
            key: head of the SHA-1 of each document.
            new: which documents are the run's own.
            members: the documents of each bucket, one bucket after another.
            starts: bounds of the buckets in ``members``.
        """
        if len(starts) == 1:
            return
        addresses = bands.mix_rows(chunk) ^ row.astype(np.uint64)
        bucket = bands.hash_runs(addresses[members], starts)
        keep = np.sort(np.unique(bucket, return_index=True)[1])  # equal lists once
        blocks = prefix_of(bands.mix_rows(key[members[starts[:-1]]]), self._side.numbers.blocks)
        sizes = np.diff(starts)[keep]
        at = np.repeat(starts[:-1][keep] - np.concatenate([[0], np.cumsum(sizes)[:-1]]), sizes) + np.arange(
            sizes.sum()
        )
        members = members[at]
        block = np.repeat(blocks[keep], sizes).astype(np.uint32)
        number = (np.arange(len(keep)) + self.found).astype(np.uint64)
        self._hashes.add(pa.table([bucket[keep], number, sizes], schema=_FOUND), bucket[keep])
        numbers: U64 = np.repeat(number, sizes)
        rows = [np.repeat(bucket[keep], sizes), chunk[members], row[members], block, numbers]
        self._rows.add(pa.table(rows, schema=_ROWS), numbers)
        mine, theirs = members[new[members]], members[~new[members]]
        wanted = [chunk[mine], row[mine], block[new[members]]]
        self._wanted.add(pa.table(wanted, schema=_WANTED), chunk[mine])
        recalled = [chunk[theirs], row[theirs], key[theirs], block[~new[members]]]
        self._recalled.add(pa.table(recalled, schema=columns.RECALLED), chunk[theirs])
        self.found += len(keep)
        self.members += len(members)
        self._times += 1

    def results(self) -> Iterator[StepResult]:
        """Give ``buckets`` in the order in which they came, ``wanted`` and ``recalled`` by address."""
        again = self._again() if self._times > 1 else np.empty(0, np.uint64)
        blocks = self._side.numbers.blocks
        for part in self._rows.ranges():
            rows = part.table()
            if len(again):
                rows = rows.filter(pa.array(~np.isin(columns.numbers(rows, "list"), again)))
            slices = columns.prefix_slices(columns.numbers(rows, "block").astype(np.int64), blocks)
            yield StepResult(
                outputs={"buckets": rows.select(columns.BUCKETS.names).append_column("slice", slices)}
            )
        by_row = [spill.number("row")]
        for _, part in spill.finer(self._side, self._wanted, by_row, self._share):
            yield StepResult(outputs={"wanted": _wanted(part)})
        if self._with_base:
            for _, part in spill.finer(self._side, self._recalled, by_row, self._share):
                yield StepResult(outputs={"recalled": _recalled(part, blocks)})

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, e: BaseException | None, at: TracebackType | None
    ) -> None:
        for held in (self._rows, self._wanted, self._recalled, self._hashes):
            held.__exit__(kind, e, at)

    def _again(self) -> U64:
        """Numbers of the lists that an earlier sub-range gave too."""
        found = [np.empty(0, np.uint64)]
        for part in self._hashes.ranges():
            rows = part.table()
            values, number = columns.numbers(rows, "hash"), columns.numbers(rows, "list")
            by_hash = np.lexsort((number, values))
            same = values[by_hash][1:] == values[by_hash][:-1]
            later = by_hash[1:][same]
            found.append(number[later])
            self.found -= len(later)
            self.members -= int(columns.numbers(rows, "size")[later].sum())
        return np.concatenate(found)


def _wanted(rows: pa.Table) -> pa.Table:
    chunk, row, block = (columns.numbers(rows, name) for name in _WANTED.names)
    at = columns.first_of_each(chunk, row, block)
    table = pa.table([row[at], block[at]], schema=columns.WANTED)
    return table.append_column("slice", columns.chunk_slices(chunk[at]))


def _recalled(rows: pa.Table, ranges: int) -> pa.Table:
    chunk, row, block = (columns.numbers(rows, name) for name in ("chunk", "row", "block"))
    table = rows.take(pa.array(columns.first_of_each(chunk, row, block)))
    slices = columns.prefix_slices(prefix_of(columns.numbers(table, "chunk"), ranges), ranges)
    return table.append_column("slice", slices)
