"""Rows of a range that may be larger than memory: held while they fit, else cut into sub-ranges of a key.

What does not fit is sorted by the key in runs on local disk and read back one sub-range after the other, in
ascending order. Nothing is estimated: the rows themselves say how many sub-ranges there are, so neither a
skewed key nor rows that compress well can make one too big. A single key whose rows are too many stays in one
sub-range, which its reader may cut by a further key (:func:`pieces`), or take table by table.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np
import pyarrow as pa

from dataflow_ops.kernels.arrow import I64, U64
from dataflow_ops.protocols import Side

KEY = "_key"
LAST = (1 << 64) - 1
_BATCH_BYTES = 256 << 10
"""A sub-range reads whole batches of each run, so up to two of them at its ends for nothing."""

KeyOf = Callable[[pa.Table], U64]


@dataclass(frozen=True, slots=True)
class Range:
    """Rows whose keys are ``low … high``, both included.

    Attributes:
        low: smallest key.
        high: largest key.
        nbytes: of the rows, those of batches that are read for their ends included.
        of: where they lie.
    """

    low: int
    high: int
    nbytes: int
    of: Spill

    def tables(self) -> Iterator[pa.Table]:
        """The rows, in tables that are small where the range is read from disk."""
        return self.of.between(self.low, self.high)

    def table(self) -> pa.Table:
        """The rows in one table."""
        assert self.of.schema is not None
        return pa.concat_tables([self.of.schema.empty_table(), *self.tables()]).combine_chunks()


@dataclass(frozen=True, slots=True)
class _Run:
    """Sorted rows on disk, in batches.

    Attributes:
        path: an Arrow file; None: the rows are in ``held``.
        first: smallest key of each batch.
        last: largest key of each batch.
        nbytes: of each batch.
        held: rows that never left memory, as one batch.
    """

    path: Path | None
    first: U64
    last: U64
    nbytes: I64
    held: pa.Table | None = None

    def between(self, low: int, high: int) -> Iterator[pa.Table]:
        start = int(np.searchsorted(self.last, np.uint64(low), "left"))
        end = int(np.searchsorted(self.first, np.uint64(high), "right"))
        if start >= end:
            return
        if self.path is None:
            assert self.held is not None
            yield from _trimmed(self.held, low, high)
            return
        with pa.OSFile(str(self.path), "rb") as source:
            reader = pa.ipc.open_file(source)
            for i in range(start, end):
                yield from _trimmed(pa.Table.from_batches([reader.get_batch(i)]), low, high)


class Spill:
    """Collects rows with a key; a context, which removes its files at the end.

    Args:
        side: of the task; its scratch folder is not touched before rows are more than fit.
        share: bytes of rows held, and of a sub-range, unless a single key has more. Sorting what is held
            takes as much again for a moment.
        shrink: applied to what is held before it goes to disk, if rows can be told to be superfluous early.
    """

    def __init__(self, side: Side, share: int, shrink: Callable[[pa.Table], pa.Table] | None = None) -> None:
        self._side, self._share, self._shrink = side, share, shrink
        self._held: list[pa.Table] = []
        self._held_bytes = 0
        self._runs: list[_Run] = []
        self._folder: Path | None = None
        self.rows = 0
        """Rows that were added."""
        self.schema: pa.Schema | None = None
        """Of the rows, once some were added."""

    @property
    def spilled(self) -> bool:
        """Whether rows did not fit."""
        return self._folder is not None

    def add(self, table: pa.Table, key: U64) -> None:
        """Take rows in, with their keys; all of one schema."""
        if not table.num_rows:
            return
        self.rows += table.num_rows
        self.schema = table.schema
        self._held.append(table.append_column(KEY, pa.array(key, pa.uint64())))
        self._held_bytes += table.nbytes
        if self._held_bytes > self._share:
            self._put_aside()

    def ranges(self) -> Iterator[Range]:
        """Sub-ranges in ascending order of key; all rows are in one if they fit.

        One may turn out to hold no row: batches tell only their smallest and largest key.
        """
        if self._folder is None:
            if self._held or self._runs:
                yield Range(0, LAST, self._held_bytes, self)
            return
        self._put_aside()
        first = np.concatenate([run.first for run in self._runs])
        last = np.concatenate([run.last for run in self._runs])
        sizes = np.concatenate([run.nbytes for run in self._runs])
        by_first, by_last = np.argsort(first), np.argsort(last)
        begun = np.concatenate([[0], np.cumsum(sizes[by_first])])
        ended = np.concatenate([[0], np.cumsum(sizes[by_last])])
        first, last = first[by_first], last[by_last]
        # A batch begins or ends at each bound and nowhere else.
        bounds = np.unique(np.concatenate([first, last[last < np.uint64(LAST)] + np.uint64(1)]))
        ends = np.concatenate([bounds[1:] - np.uint64(1), np.array([LAST], np.uint64)])
        begun_by = begun[np.searchsorted(first, ends, "right")]
        ended_before = ended[np.searchsorted(last, bounds, "left")]
        at = 0
        while at < len(bounds):
            # As many stretches as fit, at least one.
            upto = int(np.searchsorted(begun_by, ended_before[at] + self._share, "right"))
            upto = max(at + 1, upto)
            size = int(begun_by[upto - 1] - ended_before[at])
            if size:
                yield Range(int(bounds[at]), int(ends[upto - 1]), size, self)
            at = upto

    def between(self, low: int, high: int) -> Iterator[pa.Table]:
        """Rows whose keys are in a range; in order of arrival among equal keys."""
        if (low, high) == (0, LAST) and not self._runs:
            yield from (table.drop_columns([KEY]) for table in self._held)
            return
        self._put_aside()
        for run in self._runs:
            for table in run.between(low, high):
                yield table.drop_columns([KEY])

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, e: BaseException | None, at: TracebackType | None
    ) -> None:
        self._held, self._runs = [], []
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    def _put_aside(self) -> None:
        """Sort what is held: to disk, if it is too much, or if some is there."""
        if not self._held:
            return
        table = pa.concat_tables(self._held)
        self._held = []
        if self._shrink is not None:
            table = self._shrink(table)
        table = table.combine_chunks()
        key = table.column(KEY).to_numpy()
        by_key = np.argsort(key, kind="stable")
        if self._folder is None and self._held_bytes <= self._share:  # read from now on, by sub-ranges
            size, ends = np.array([table.nbytes]), key[by_key[[0, -1]]]
            self._runs.append(_Run(None, ends[:1], ends[1:], size, table.take(pa.array(by_key))))
            return
        self._held_bytes = 0
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="spill-", dir=self._side.scratch))
        self._runs.append(self._written(table, by_key))
        del table
        pa.default_memory_pool().release_unused()

    def _written(self, table: pa.Table, by_key: I64) -> _Run:
        """A run of the table's rows in another order; they are put in it a batch at a time."""
        assert self._folder is not None
        path = self._folder / f"{len(self._runs)}.arrow"
        first, last, sizes = [], [], []
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
            for part in _batches(table, by_key):
                writer.write_table(part)
                key = part.column(KEY)
                first.append(key[0].as_py())
                last.append(key[-1].as_py())
                sizes.append(part.nbytes)
        return _Run(path, np.array(first, np.uint64), np.array(last, np.uint64), np.array(sizes, np.int64))


def pieces(
    side: Side, tables: Iterable[pa.Table], keys: Sequence[KeyOf], share: int, depth: int = 0
) -> Iterator[tuple[int, pa.Table]]:
    """Rows in ascending order of some keys, cut so that each piece fits, whatever the rows are.

    Rows of one piece come in no order. A piece ends where the first key changes, if its rows fit; rows of one
    first key that do not fit are cut by the second, and so on.

    Args:
        side: of the task.
        tables: rows of one schema.
        keys: give uint64 of shape ``(n,)`` for a table; the last one's equal rows are never cut.
        share: see :class:`Spill`.
        depth: of the keys before these.

    Yields:
        ``(keys on which the piece's rows agree because they were too many, rows)``.
    """
    with Spill(side, share) as spill:
        for table in tables:
            spill.add(table, keys[0](table))
        yield from finer(side, spill, keys[1:], share, depth)


def finer(
    side: Side, spill: Spill, keys: Sequence[KeyOf], share: int, depth: int = 0
) -> Iterator[tuple[int, pa.Table]]:
    """:func:`pieces` of rows that are spilled by the first key; ``keys`` are the further ones."""
    for part in spill.ranges():
        if keys and part.low == part.high and part.nbytes > share:
            yield from pieces(side, part.tables(), keys, share, depth + 1)
        elif (table := part.table()).num_rows:
            yield depth, table


def number(name: str) -> KeyOf:
    """A column of unsigned numbers as a key."""
    return lambda table: table.column(name).to_numpy().astype(np.uint64)


def share_of(side: Side, peak: float) -> int:
    """Bytes of rows to hold at once.

    Args:
        side: of the task.
        peak: measured: bytes that a step takes at its peak for each byte of rows. A third of the budget is
            left for what a process takes before it reads anything.
    """
    return max(1, int(side.memory_budget * 2 / 3 / peak))


def _trimmed(table: pa.Table, low: int, high: int) -> Iterator[pa.Table]:
    key = table.column(KEY).to_numpy()
    start = int(np.searchsorted(key, np.uint64(low), "left"))
    end = int(np.searchsorted(key, np.uint64(high), "right"))
    if end > start:
        yield table.slice(start, end - start)


def _batches(table: pa.Table, order: I64) -> Iterator[pa.Table]:
    """Rows in an order, in tables of about :data:`_BATCH_BYTES`, single rows where these are larger."""
    rows = max(1, _BATCH_BYTES * table.num_rows // max(1, table.nbytes))
    for start in range(0, len(order), rows):
        part = table.take(pa.array(order[start : start + rows]))
        if part.num_rows > 1 and part.nbytes > 2 * _BATCH_BYTES:
            yield from _batches(part, np.arange(part.num_rows))
        else:
            yield part
