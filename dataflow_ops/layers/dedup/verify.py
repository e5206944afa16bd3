"""Step ``verify``: candidates become edges only by the edit similarity of their key texts."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain

import numpy as np
import pyarrow as pa

from dataflow_ops.errors import ConservationError
from dataflow_ops.kernels.arrow import I64
from dataflow_ops.layers.dedup import base, columns, identity, order, spill
from dataflow_ops.layers.dedup.blocks import PLACE, Found, Parts, list_numbers
from dataflow_ops.layers.dedup.compare import Candidates, estimate_bound, leader_walk
from dataflow_ops.protocols import Input, OutputSpec, Partitioning, Side
from dataflow_ops.settings import JobSettings
from dataflow_ops.values import StepResult

_PEAK = 3.0
"""Bytes at the peak for each byte of texts and signatures; measured by ``bench.scaling.ranges``."""


class VerifyStep:
    """Reduce over a bucket block. Outputs ``edges``, and ``nodes``: the documents at their ends."""

    name = "verify"
    layer = "dedup"
    partitioned_by: Partitioning = "block"
    outputs = (OutputSpec("edges", columns.EDGES), OutputSpec("nodes", columns.NODES))

    def __init__(self, settings: JobSettings) -> None:
        self._settings = settings
        self.inputs: tuple[Input, ...] = (
            Input("match", "buckets", "slice"),
            Input("gather", "texts", "slice"),
        )
        if base.has_base(settings):
            self.inputs += (Input("recall", "texts", "slice"),)

    def fingerprint(self) -> Mapping[str, object]:
        """Threshold, cap of leaders and what a similarity is."""
        verify = self._settings.dedup.verify
        return {
            "step": 5,
            **identity.similarity_fingerprint(self._settings),
            "max_leaders": verify.max_leaders,
        }

    def run(self, side: Side, start: int) -> Iterator[StepResult]:
        """Walk the buckets of one block; memory holds the key texts of this block, or of a part of it.

        Raises:
            FingerprintMismatch: signatures of different making came together.
            ConservationError: a bucket names a text that was not gathered.
        """
        share = spill.share_of(side, _PEAK)
        with Found(side, share // 4) as found:
            texts = self._texts(side)
            held: deque[pa.Table] = deque()
            size = 0
            for table in texts:
                held.append(table)
                size += table.nbytes
                if size > share:
                    walks = self._in_parts(side, chain(_drained(held), texts), share, found)
                    break
            else:
                walks = iter([self._whole(side, held, found)])
            metrics: dict[str, float] = {"ranges_split": 1.0} if size > share else {}
            for counted in walks:
                for name, value in counted.items():
                    metrics[name] = metrics.get(name, 0.0) + value
            yield from found.results()
            yield StepResult(metrics={**metrics, "pairs_verified": found.edges})

    def _texts(self, side: Side) -> Iterator[pa.Table]:
        sources = ("recall", "gather") if base.has_base(self._settings) else ("gather",)
        for step in sources:
            for partition, table in side.tables(step, "texts"):
                made_by = identity.signature_id(self._settings)
                identity.check_signatures(made_by, table, f"block {side.partition}, {step} of {partition}")
                yield table

    def _whole(self, side: Side, held: deque[pa.Table], found: Found) -> dict[str, int]:
        """Walk everything at once."""
        schema = columns.texts_schema(self._settings.dedup.minhash.signature_size)
        texts = pa.concat_tables([schema.empty_table(), *_drained(held)]).combine_chunks()
        key_texts = texts.column("key_text")
        walk = _Walk(self._settings, texts, lambda i: str(key_texts[i].as_py()), side.checkpoint)
        tables = [table for _, table in side.tables("match", "buckets")]
        found.add(texts, np.arange(texts.num_rows), walk.over(*_members(texts, tables)))
        return walk.counted()

    def _in_parts(
        self, side: Side, texts: Iterable[pa.Table], share: int, found: Found
    ) -> Iterator[dict[str, int]]:
        """Walk buckets that share members together, as many at a time as fit."""
        with Parts(side, share) as parts:
            parts.sort_out(lambda: (table for _, table in side.tables("match", "buckets")), texts)
            for part in parts.ranges():
                side.checkpoint()
                yield self._part(side, parts, part, found)
            parts.check_all_given()

    def _part(self, side: Side, parts: Parts, part: spill.Range, found: Found) -> dict[str, int]:
        with parts.opened(part) as (rows, buckets, text):
            walk = _Walk(self._settings, rows, text, side.checkpoint)
            found.add(rows, columns.numbers(rows, PLACE), walk.over(*_members(rows, buckets)))
            return walk.counted()


class _Walk:
    """The buckets of one block, each pair of texts compared once; ``ask`` is called before each."""

    def __init__(
        self, settings: JobSettings, texts: pa.Table, text: Callable[[int], str], ask: Callable[[], None]
    ) -> None:
        self._ask = ask
        self._max_leaders = settings.dedup.verify.max_leaders
        self._candidates = Candidates(
            signatures=columns.binary_rows(texts, "signature").view(np.uint32),
            shingles=columns.numbers(texts, "shingle").astype(np.int64),
            text=text,
            least=settings.dedup.verify.min_similarity,
            bound=estimate_bound(settings),
        )
        high, low = columns.numbers(texts, "order_hi"), columns.numbers(texts, "order_lo")
        self._of_base = high == order.BASE
        chunk, row = columns.numbers(texts, "chunk"), columns.numbers(texts, "row")
        self._rank: I64 = np.empty(texts.num_rows, np.int64)
        self._rank[order.sort(high, low, chunk, row)] = np.arange(texts.num_rows)
        self._known: dict[tuple[int, int], float] = {}
        self._better: dict[int, set[int]] = {}
        self._spared: set[tuple[int, int, float]] = set()
        self.compared = 0
        self.beyond = 0

    def over(self, members: I64, starts: I64) -> list[tuple[int, int, float]]:
        """Edges of all buckets and pairs that were spared (similarity 0), each once, ascending.

        Buckets of the best documents come first: what they join needs no further edges in others.
        """
        edges: set[tuple[int, int, float]] = set()
        best_first = np.argsort(self._rank[members[starts[:-1]]], kind="stable")
        heads = np.repeat(members[starts[:-1]], np.diff(starts))
        with_first = self._candidates.pairs_agreeing(heads, members)
        for bucket in best_first.tolist():
            first, last = int(starts[bucket]), int(starts[bucket + 1])
            of_bucket, equal = members[first:last], with_first[first:last]
            found, beyond = leader_walk(
                of_bucket.tolist(),
                equal.tolist(),
                self._candidates.agreements,
                self._similar,
                self._max_leaders,
                int(self._of_base[of_bucket].sum()),
            )
            edges.update(found)
            self.beyond += beyond
        return sorted(edges | self._spared)

    def counted(self) -> dict[str, int]:
        """For the step's metrics."""
        return {
            "pairs_compared": self.compared,
            "pairs_spared": len(self._spared),
            "leaders_capped": self.beyond,
        }

    def _similar(self, leader: int, member: int, equal: int, may_spare: bool) -> float:
        """As :func:`leader_walk` asks; a document alike to both says that they belong together.

        Should that one not stay in the end, ``confirm`` compares what is then still to be compared. An edge
        of similarity 0 tells it of the pair, as it walks large components along their edges alone.
        """
        pair = (leader, member)
        known = self._known.get(pair)
        if known is not None:
            return known
        mine = self._better.get(member)
        if may_spare and mine and not mine.isdisjoint(self._better.get(leader, ())):
            self._spared.add((leader, member, 0.0))
            return -1.0
        self._ask()
        known = self._known[pair] = self._candidates.similarity(leader, member, equal)
        self.compared += 1
        if known > 0.0:
            self._better.setdefault(member, set()).add(leader)
        return known


def _drained(held: deque[pa.Table]) -> Iterator[pa.Table]:
    """Tables one after the other, none of them held any longer."""
    while held:
        yield held.popleft()


def _members(texts: pa.Table, tables: list[pa.Table]) -> tuple[I64, I64]:
    """Members of each distinct bucket as indices into ``texts``, and the bounds of the buckets.

    Raises:
        ConservationError: one is not there.
    """
    lists = list_numbers(tables)
    same = [table.select(columns.BUCKETS.names) for table in tables]
    buckets = pa.concat_tables([columns.BUCKETS.empty_table(), *same])
    chunk, row = columns.numbers(texts, "chunk"), columns.numbers(texts, "row")
    have, want = columns.address_ids(
        (chunk, row), (columns.numbers(buckets, "chunk"), columns.numbers(buckets, "row"))
    )
    by_address = np.argsort(have)
    at = np.searchsorted(have[by_address], want)
    if np.any(at >= len(have)) or np.any(have[by_address[np.minimum(at, len(have) - 1)]] != want):
        raise ConservationError("a bucket names a document whose text was not gathered")
    members = by_address[at]
    starts = np.flatnonzero(np.diff(lists, prepend=-1))
    # The same list may have been found in several band prefixes.
    hashes = columns.numbers(buckets, "bucket")[starts]
    distinct = np.sort(np.unique(hashes, return_index=True)[1])
    starts = np.append(starts, len(lists))
    sizes = np.diff(starts)[distinct]
    keep = np.concatenate([np.empty(0, np.int64), *(np.arange(starts[i], starts[i + 1]) for i in distinct)])
    return members[keep], np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
