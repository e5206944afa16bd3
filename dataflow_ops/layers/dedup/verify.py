"""Step ``verify``: candidates become edges only by the edit similarity of their key texts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np
import pyarrow as pa

from dataflow_ops.errors import ConservationError
from dataflow_ops.kernels.arrow import I64, U32
from dataflow_ops.layers.dedup import base, columns, identity, order
from dataflow_ops.layers.dedup.compare import Candidates, estimate_bound, leader_walk
from dataflow_ops.protocols import Input, OutputSpec, Partitioning, Side
from dataflow_ops.settings import JobSettings
from dataflow_ops.values import StepResult


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
            "step": 2,
            **identity.similarity_fingerprint(self._settings),
            "max_leaders": verify.max_leaders,
        }

    def run(self, side: Side, start: int) -> Iterator[StepResult]:
        """Walk the buckets of one block; memory holds the key texts of this block.

        Raises:
            FingerprintMismatch: signatures of different making came together.
            ConservationError: a bucket names a text that was not gathered.
        """
        texts = side.table("gather", "texts")
        if base.has_base(self._settings):
            texts = pa.concat_tables([side.table("recall", "texts"), texts]).combine_chunks()
        buckets = side.table("match", "buckets")
        if buckets.num_rows == 0:
            yield StepResult()
            return
        identity.check_signatures(identity.signature_id(self._settings), texts, f"block {side.partition}")
        members, starts = _members(texts, buckets)
        walk = _Walk(self._settings, texts, side.checkpoint)
        edges = walk.over(members, starts)
        yield StepResult(
            outputs=_tables(texts, edges, int(side.partition)),
            metrics={
                "pairs_compared": walk.compared,
                "pairs_verified": len(edges),
                "pairs_spared": walk.joined,
                "leaders_capped": walk.beyond,
            },
        )


class _Walk:
    """The buckets of one block, each pair of texts compared once; ``ask`` is called before each."""

    def __init__(self, settings: JobSettings, texts: pa.Table, ask: Callable[[], None]) -> None:
        self._ask = ask
        key_texts = texts.column("key_text")
        self._max_leaders = settings.dedup.verify.max_leaders
        self._candidates = Candidates(
            signatures=columns.binary_rows(texts, "signature").view(np.uint32),
            shingles=columns.numbers(texts, "shingle").astype(np.int64),
            text=lambda i: str(key_texts[i].as_py()),
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
        self.compared = 0
        self.beyond = 0
        self.joined = 0

    def over(self, members: I64, starts: I64) -> list[tuple[int, int, float]]:
        """Edges of all buckets, each once, ascending.

        Buckets of the best documents come first: what they join needs no further edges in others.
        """
        edges: set[tuple[int, int, float]] = set()
        best_first = np.argsort(self._rank[members[starts[:-1]]], kind="stable")
        heads = np.repeat(members[starts[:-1]], np.diff(starts))
        with_first = self._candidates.pairs_agreeing(heads, members)
        for bucket in best_first.tolist():
            first, last = int(starts[bucket]), int(starts[bucket + 1])
            of_bucket, equal = members[first:last], with_first[first:last]
            if self._of_base[of_bucket[0]]:
                # The same list from two band prefixes may stand twice in a row.
                once = np.sort(np.unique(of_bucket, return_index=True)[1])
                of_bucket, equal = of_bucket[once], equal[once]
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
        return sorted(edges)

    def _similar(self, leader: int, member: int, equal: int) -> float:
        """As :func:`leader_walk` asks; a document alike to both says that they belong together.

        Should that one not stay in the end, ``confirm`` compares what is then still to be compared.
        """
        pair = (leader, member)
        known = self._known.get(pair)
        if known is not None:
            return known
        mine = self._better.get(member)
        if mine and not mine.isdisjoint(self._better.get(leader, ())):
            self.joined += 1
            return -1.0
        self._ask()
        known = self._known[pair] = self._candidates.similarity(leader, member, equal)
        self.compared += 1
        if known > 0.0:
            self._better.setdefault(member, set()).add(leader)
        return known


def _members(texts: pa.Table, buckets: pa.Table) -> tuple[I64, I64]:
    """Members of each distinct bucket as indices into ``texts``, and the bounds of the buckets."""
    chunk, row = columns.numbers(texts, "chunk"), columns.numbers(texts, "row")
    bucket = columns.numbers(buckets, "bucket")
    have, want = columns.address_ids(
        (chunk, row), (columns.numbers(buckets, "chunk"), columns.numbers(buckets, "row"))
    )
    by_address = np.argsort(have)
    at = np.searchsorted(have[by_address], want)
    if np.any(at >= len(have)) or np.any(have[by_address[np.minimum(at, len(have) - 1)]] != want):
        raise ConservationError("a bucket names a document whose text was not gathered")
    members = by_address[at]
    ends = np.flatnonzero(bucket[1:] != bucket[:-1]) + 1
    starts = np.concatenate([[0], ends, [len(bucket)]]).astype(np.int64)
    # The same list may have been found in several band prefixes.
    _, distinct = np.unique(bucket[starts[:-1]], return_index=True)
    distinct = np.sort(distinct)
    sizes = np.diff(starts)[distinct]
    keep = np.concatenate([np.arange(starts[i], starts[i + 1]) for i in distinct])
    return members[keep], np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


def _tables(texts: pa.Table, edges: list[tuple[int, int, float]], block: int) -> dict[str, pa.Table]:
    if not edges:
        return {}
    a = np.array([e[0] for e in edges], np.int64)
    b = np.array([e[1] for e in edges], np.int64)
    chunk, row = columns.numbers(texts, "chunk"), columns.numbers(texts, "row")
    ends: I64 = np.unique(np.concatenate([a, b]))
    blocks: U32 = np.full(len(ends), block, np.uint32)
    edge_arrays = [chunk[a], row[a], chunk[b], row[b], np.array([e[2] for e in edges])]
    names = ("chunk", "row", "doc_id", "sha1", "order_hi", "order_lo")
    nodes = texts.select(names).take(pa.array(ends)).append_column("block", pa.array(blocks))
    return {
        "edges": pa.Table.from_arrays([pa.array(v) for v in edge_arrays], schema=columns.EDGES),
        "nodes": nodes.cast(columns.NODES),
    }
