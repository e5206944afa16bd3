"""A block of buckets whose texts do not fit, cut into parts; and what is found there.

Buckets that share a member stay together, directly or through others: what one of them finds spares the
others comparisons. So each text is in one part, and the parts together find what the whole block would.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from types import TracebackType
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dataflow_ops.errors import ConservationError
from dataflow_ops.kernels.arrow import I64, U32, U64
from dataflow_ops.kernels.unionfind import Parents, join, settle
from dataflow_ops.layers.dedup import columns, spill
from dataflow_ops.layers.dedup.addresses import Known, numbered
from dataflow_ops.layers.dedup.textfile import TextFile
from dataflow_ops.protocols import Side
from dataflow_ops.values import StepResult

PLACE = "place"
"""Where a text stands among all of its block."""
_LIST = "list"
_NODE = ("chunk", "row", "doc_id", "sha1", "order_hi", "order_lo")

Part = tuple[pa.Table, list[pa.Table], Callable[[int], str]]


def list_numbers(tables: list[pa.Table]) -> I64:
    """A number for each row of some tables of buckets: equal where rows are of one list, ascending by it.

    Tables of several band prefixes may hold one list each: the last of one and the first of the next.
    """
    found, n = [np.empty(0, np.int64)], 0
    for table in tables:
        if _LIST in table.column_names:
            numbers = columns.numbers(table, _LIST).astype(np.int64)
        else:
            bucket = columns.numbers(table, "bucket")
            numbers = np.cumsum(np.append(0, bucket[1:] != bucket[:-1])) + n
            n = int(numbers[-1]) + 1
        found.append(numbers)
    return np.concatenate(found)


def _lists(table: pa.Table) -> tuple[I64, I64]:
    """Where the lists of one producer's buckets start, and their sizes."""
    bucket = columns.numbers(table, "bucket")
    starts = np.flatnonzero(np.append(True, bucket[1:] != bucket[:-1]))
    return starts, np.diff(np.append(starts, len(bucket)))


class Parts:
    """The buckets and texts of a block by part; a context, which removes what it put on disk.

    In memory are 12 bytes for each of the block's texts, and the texts of one part.

    Args:
        side: of the task.
        share: bytes of texts and signatures of a part, unless buckets that hang together need more.
    """

    def __init__(self, side: Side, share: int) -> None:
        self._side, self._share = side, share
        self._texts = spill.Spill(side, share)
        self._buckets = spill.Spill(side, share)
        self._given = 0

    def sort_out(self, buckets: Callable[[], Iterable[pa.Table]], texts: Iterable[pa.Table]) -> None:
        """Take the buckets, which are read three times, then the texts; both by producer."""
        known = self._known_of(buckets())
        kind: Any = np.int32 if len(known.ids) < 1 << 31 else np.int64
        whole: Parents = np.arange(len(known.ids)).astype(kind)
        for table in buckets():
            starts, sizes = _lists(table)
            at, _ = known.find(*_address(table))
            join(whole, np.repeat(at[starts], sizes).astype(kind), at.astype(kind))
        settle(whole)
        lists = 0
        for table in buckets():
            number = list_numbers([table]) + lists
            lists = int(number[-1]) + 1
            at, _ = known.find(*_address(table))
            self._buckets.add(table.append_column(_LIST, pa.array(number)), whole[at].astype(np.uint64))
        place = 0
        for table in texts:
            at, there = known.find(*_address(table))
            places = pa.array(np.arange(place, place + table.num_rows, dtype=np.uint64))
            mine = table.append_column(PLACE, places).filter(pa.array(there))
            self._texts.add(mine, whole[at[there]].astype(np.uint64))
            place += table.num_rows

    def ranges(self) -> Iterator[spill.Range]:
        """The parts, to be opened one after the other."""
        yield from self._texts.ranges()

    @contextmanager
    def opened(self, part: spill.Range) -> Iterator[Part]:
        """Give ``(texts in some order, tables of buckets, key text by row of texts)`` of a part."""
        buckets = list(self._buckets.between(part.low, part.high))
        self._given += sum(table.num_rows for table in buckets)
        if part.nbytes <= self._share:
            rows = self._together(part.tables())  # not copied together: they are many, and large
            text = rows.column("key_text")
            yield rows, buckets, lambda i: str(text[i].as_py())
            return
        with TextFile(self._side.scratch / f"texts-{part.low}", self._share) as file:

            def heads() -> Iterator[pa.Table]:
                for table in part.tables():
                    file.append(table.column("key_text"))
                    yield table

            yield self._together(table.drop_columns(["key_text"]) for table in heads()), buckets, file.text

    def check_all_given(self) -> None:
        """After all parts.

        Raises:
            ConservationError: some buckets are in none, as none of their texts came.
        """
        if self._given < self._buckets.rows:
            raise ConservationError("a bucket names a document whose text was not gathered")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, e: BaseException | None, at: TracebackType | None
    ) -> None:
        for held in (self._texts, self._buckets):
            held.__exit__(kind, e, at)

    def _together(self, tables: Iterator[pa.Table]) -> pa.Table:
        found = list(tables)
        if not found:  # a range of numbers without a text
            assert self._texts.schema is not None
            found = [self._texts.schema.empty_table()]
        return pa.concat_tables(found)

    def _known_of(self, buckets: Iterable[pa.Table]) -> Known:
        chunks: U64 = np.empty(0, np.uint64)
        with spill.Spill(self._side, self._share) as addresses:
            for table in buckets:
                chunk = columns.numbers(table, "chunk")
                chunks = columns.distinct(chunks, chunk)
                addresses.add(table.select(("chunk", "row")), chunk)
            found = [np.empty(0, np.int64)]
            for _, part in spill.finer(self._side, addresses, [spill.number("row")], self._share):
                found.append(np.unique(numbered(chunks, *_address(part))))
        return Known(chunks, np.concatenate(found))


def _address(table: pa.Table) -> tuple[U64, npt.NDArray[np.uint32]]:
    return columns.numbers(table, "chunk"), columns.numbers(table, "row")


class Found:
    """Verified edges and the documents at their ends; a context, which removes what it put on disk.

    Args:
        side: of the task.
        share: bytes of each kind of rows held in memory.
    """

    def __init__(self, side: Side, share: int) -> None:
        self._side, self._share = side, share
        self._stack = ExitStack()
        self._edges = self._stack.enter_context(spill.Spill(side, share))
        self._nodes = self._stack.enter_context(spill.Spill(side, share))
        self.edges = 0
        """Distinct verified edges, once :meth:`results` are through."""

    def add(
        self, texts: pa.Table, places: npt.NDArray[np.integer], edges: list[tuple[int, int, float]]
    ) -> None:
        """Take edges between rows of ``texts``, which stand at some places of their block."""
        if not edges:
            return
        a = np.array([e[0] for e in edges], np.int64)
        b = np.array([e[1] for e in edges], np.int64)
        chunk, row = columns.numbers(texts, "chunk"), columns.numbers(texts, "row")
        arrays = [chunk[a], row[a], chunk[b], row[b], np.array([e[2] for e in edges])]
        at: U64 = places.astype(np.uint64)
        table = pa.table([pa.array(v) for v in arrays], schema=columns.EDGES)
        table = table.append_column("a", pa.array(at[a])).append_column("b", pa.array(at[b]))
        self._edges.add(table, at[a])
        ends = np.unique(np.concatenate([a, b]))
        nodes = texts.select(_NODE).take(pa.array(ends)).append_column(PLACE, pa.array(at[ends]))
        self._nodes.add(nodes, at[ends])

    def results(self) -> Iterator[StepResult]:
        """Edges by the places of their ends, and documents by place, each once."""
        block = int(self._side.partition)
        for _, part in spill.finer(self._side, self._edges, [spill.number("b")], self._share):
            once = columns.first_of_each(columns.numbers(part, "a"), columns.numbers(part, "b"))
            self.edges += int((columns.numbers(part, "similarity")[once] > 0).sum())
            yield StepResult(outputs={"edges": part.select(columns.EDGES.names).take(pa.array(once))})
        for part in self._nodes.ranges():
            rows = part.table()
            _, once = np.unique(columns.numbers(rows, PLACE), return_index=True)
            rows = rows.take(pa.array(once)).combine_chunks()
            blocks: U32 = np.full(rows.num_rows, block, np.uint32)
            nodes = rows.select(_NODE).append_column("block", pa.array(blocks)).cast(columns.NODES)
            yield StepResult(outputs={"nodes": nodes})

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, e: BaseException | None, at: TracebackType | None
    ) -> None:
        self._stack.close()
