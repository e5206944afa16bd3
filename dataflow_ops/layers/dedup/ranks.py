"""The documents of all groups in survivor order, by address and by rank, in little memory.

A document's rank is its place in the survivor order among all documents of any group. What is known of the
documents lies in scratch; in memory are the addresses that ranks are found by, 12 bytes a document (16 from
2**31 documents on).
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dataflow_ops.kernels.arrow import I64, U64
from dataflow_ops.layers.dedup import columns, order, spill
from dataflow_ops.layers.dedup.addresses import numbered
from dataflow_ops.protocols import Side

Ranks = npt.NDArray[np.int32] | npt.NDArray[np.int64]

DOCUMENT = ("chunk", "row", "doc_id", "sha1", "order_hi", "order_lo", "block")
_UNREAD = np.iinfo(np.int64).max
_BYTES_EACH = 24
"""Of all arrays of a task that have a value for each document."""


class Documents:
    """All documents of any group; a context, which removes what it put on disk.

    Args:
        side: of the task.
        share: bytes of rows held in memory.
    """

    def __init__(self, side: Side, share: int) -> None:
        self._side, self._share = side, share
        self._rows = spill.Spill(side, share)
        self._chunks: U64 = np.empty(0, np.uint64)
        self._ids: I64 = np.empty(0, np.int64)
        self._ranks: Ranks = np.empty(0, np.int32)
        self.n = 0
        """How many there are."""
        self.of_base = 0
        """How many of the first ones are of the version below."""

    def read(self, arrivals: Iterable[pa.Table]) -> None:
        """Take all documents, in any order and some more than once.

        Args:
            arrivals: columns as :data:`DOCUMENT`; ``block`` is -1 where the text is in none.
        """
        further = [spill.number(name) for name in ("order_lo", "chunk", "row")]
        with spill.Spill(self._side, self._share) as by_order, spill.Spill(self._side, self._share) as by_id:
            for table in arrivals:
                self._chunks = columns.distinct(self._chunks, columns.numbers(table, "chunk"))
                by_order.add(table, columns.numbers(table, "order_hi"))
            for _, part in spill.finer(self._side, by_order, further, self._share):
                self._side.checkpoint()
                rows = _once(part)
                ranks: U64 = np.arange(self.n, self.n + rows.num_rows, dtype=np.uint64)
                self._rows.add(rows, ranks)
                ids = self._id(columns.numbers(rows, "chunk"), columns.numbers(rows, "row"))
                by_id.add(pa.table({"id": ids, "rank": ranks}), ids.astype(np.uint64))
                self.n += rows.num_rows
                self.of_base += int((columns.numbers(rows, "order_hi") == order.BASE).sum())
            self._ids, self._ranks = self.array(np.int64), self.array(self.rank_type)
            at = 0
            for range_ in by_id.ranges():
                self._side.checkpoint()
                rows = range_.table()
                ids = columns.numbers(rows, "id")
                by_address = np.argsort(ids)
                self._ids[at : at + len(ids)] = ids[by_address]
                self._ranks[at : at + len(ids)] = columns.numbers(rows, "rank")[by_address]
                at += len(ids)

    @property
    def rank_type(self) -> Any:
        """The type of ranks."""
        return np.int32 if self.n < 1 << 31 else np.int64

    def array(self, type_: Any) -> Any:
        """An array of a value for each document: in a file where all of them may take half the budget."""
        if self.n * _BYTES_EACH <= self._side.memory_budget // 2 or not self.n:
            return np.zeros(self.n, type_)
        with tempfile.TemporaryFile(dir=self._side.scratch) as file:
            file.truncate(self.n * np.dtype(type_).itemsize)
            return np.memmap(file, type_, "r+", shape=(self.n,)).view(np.ndarray)

    def find(self, table: pa.Table, of: str = "") -> Ranks:
        """Ranks of the documents whose addresses are in columns ``<of>chunk`` and ``<of>row``."""
        ids = self._id(columns.numbers(table, f"{of}chunk"), columns.numbers(table, f"{of}row"))
        return self._ranks[np.searchsorted(self._ids, ids)]

    def forget_addresses(self) -> None:
        """No rank is looked for any more; from here on addresses are given by rank."""
        self._ranks = np.empty(0, np.int32)
        for at, rows in self.rows():
            ids = self._id(columns.numbers(rows, "chunk"), columns.numbers(rows, "row"))
            self._ids[at : at + len(ids)] = ids

    def addresses(self, ranks: npt.NDArray[np.integer[Any]]) -> tuple[U64, npt.NDArray[np.uint32]]:
        """Chunks and rows of documents, after :meth:`forget_addresses`."""
        ids = self._ids[ranks]
        return self._chunks[ids >> 32], (ids & 0xFFFFFFFF).astype(np.uint32)

    def rows(self) -> Iterator[tuple[int, pa.Table]]:
        """``(rank of the first one, documents)`` in order of rank, columns as :data:`DOCUMENT`."""
        at = 0
        for part in self._rows.ranges():
            for table in part.tables():
                self._side.checkpoint()
                yield at, table
                at += table.num_rows

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, e: BaseException | None, at: TracebackType | None
    ) -> None:
        self._rows.__exit__(kind, e, at)

    def _id(self, chunk: U64, row: npt.NDArray[np.uint32]) -> I64:
        return numbered(self._chunks, chunk, row)


def _once(rows: pa.Table) -> pa.Table:
    """Each document once, in survivor order, with the first block that has its text."""
    high, low, chunk, row = (columns.numbers(rows, c) for c in ("order_hi", "order_lo", "chunk", "row"))
    by_order = order.sort(high, low, chunk, row)
    chunk, row = chunk[by_order], row[by_order]
    first = np.flatnonzero(
        np.append(True, (chunk[1:] != chunk[:-1]) | (row[1:] != row[:-1]))  # equal ones are neighbours
    )
    block = columns.numbers(rows, "block")[by_order]
    least = np.minimum.reduceat(np.where(block < 0, _UNREAD, block), first)
    least[least == _UNREAD] = -1
    table = rows.take(pa.array(by_order[first])).select(DOCUMENT[:-1])
    return table.append_column("block", pa.array(least)).combine_chunks()
