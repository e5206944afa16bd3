"""Step ``unite``: verified edges and exact groups become components, the candidates for one survivor each.

It is one task, so it holds no documents but some 24 bytes for each one that is in a group; what it sorts lies
in scratch where it does not fit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dataflow_ops.kernels.bands import mix_rows
from dataflow_ops.kernels.digest import leading_u64, prefix_of
from dataflow_ops.kernels.unionfind import join, settle
from dataflow_ops.layers.dedup import columns, spill
from dataflow_ops.layers.dedup.ranks import DOCUMENT, Documents, Ranks
from dataflow_ops.protocols import Input, OutputSpec, Partitioning, Side
from dataflow_ops.settings import JobSettings
from dataflow_ops.values import StepResult

_PEAK = 12.0
"""Bytes at the peak for each byte of the rows of one kind; measured by ``bench.scaling.ranges``."""


class UniteStep:
    """Reduce over everything. Outputs ``members`` and ``links`` by root prefix, and ``asked`` by block."""

    name = "unite"
    layer = "dedup"
    partitioned_by: Partitioning = "all"
    inputs = (
        Input("verify", "edges", "all"),
        Input("verify", "nodes", "all"),
        Input("exact", "groups", "all"),
    )
    outputs = (
        OutputSpec("members", columns.MEMBERS, "root_prefix"),
        OutputSpec("links", columns.LINKS, "root_prefix"),
        OutputSpec("asked", columns.ASKED, "block"),
    )

    def __init__(self, settings: JobSettings) -> None:
        pass

    def fingerprint(self) -> Mapping[str, object]:
        """No setting acts here."""
        return {"step": 4}

    def run(self, side: Side, start: int) -> Iterator[StepResult]:
        """Find the components."""
        share = spill.share_of(side, _PEAK)
        with Documents(side, share) as documents, ExitStack() as stack:
            documents.read(_arrivals(side))
            if not documents.n:
                yield StepResult()
                return
            pairs, linked, members, asked = (stack.enter_context(spill.Spill(side, share)) for _ in range(4))
            node, root = _components(side, documents, pairs)
            _by_root(side, pairs, root, linked)
            found = _Roots(side, documents)
            for at, rows in documents.rows():
                found.add(at, rows, node, root, members)
            components = int(np.count_nonzero(root == np.arange(len(root), dtype=root.dtype)))
            del node, root
            documents.forget_addresses()
            yield from found.links(linked, share)
            yield from found.members(members, asked, share)
            yield from found.asked(asked)
            metrics: dict[str, float] = {"components": components, "component_members": documents.n}
            if any(rows.spilled for rows in (pairs, linked, members, asked)):
                metrics["ranges_split"] = 1.0
            yield StepResult(metrics=metrics)


def _arrivals(side: Side) -> Iterator[pa.Table]:
    """The documents at the ends of edges, and those of exact groups."""
    for nodes in side.stream("verify", "nodes"):
        block = columns.numbers(nodes, "block").astype(np.int64)
        yield nodes.select(DOCUMENT[:-1]).append_column("block", pa.array(block))
    for groups in side.stream("exact", "groups"):
        block = np.full(groups.num_rows, -1, np.int64)
        yield groups.select(DOCUMENT[:-1]).append_column("block", pa.array(block))


def _components(side: Side, documents: Documents, pairs: spill.Spill) -> tuple[Ranks, Ranks]:
    """Rank of each document's node (first of its exact group) and of its root; fills ``pairs``: verified
    pairs of nodes, smaller first.
    """
    node = documents.array(documents.rank_type)
    node[:] = np.arange(documents.n, dtype=documents.rank_type)
    # An exact group is one node: its members inherit each other's edges.
    for groups in side.stream("exact", "groups"):
        join(node, documents.find(groups, "survivor_"), documents.find(groups))
    settle(node)
    root = documents.array(documents.rank_type)
    root[:] = node
    for edges in side.stream("verify", "edges"):
        a, b = node[documents.find(edges, "a_")], node[documents.find(edges, "b_")]
        join(root, a, b)
        first, second = (f(a, b).astype(np.uint64) for f in (np.minimum, np.maximum))
        apart = first != second  # an edge inside an exact group says nothing
        table = pa.table({"first": first, "second": second, "similarity": edges.column("similarity")})
        pairs.add(table.filter(pa.array(apart)), first[apart])
    settle(root)
    return node, root


def _by_root(side: Side, pairs: spill.Spill, root: Ranks, linked: spill.Spill) -> None:
    """Each pair once with the best similarity, under its root."""
    for part in pairs.ranges():
        side.checkpoint()
        rows = part.table()
        first, second = columns.numbers(rows, "first"), columns.numbers(rows, "second")
        by_pair = np.lexsort((-columns.numbers(rows, "similarity"), second, first))
        first, second = first[by_pair], second[by_pair]
        new = np.append(True, (first[1:] != first[:-1]) | (second[1:] != second[:-1]))[: len(first)]
        of = root[first[new]].astype(np.uint64)
        rows = rows.take(pa.array(by_pair[new])).append_column("root", pa.array(of))
        linked.add(rows, of)


class _Roots:
    """What is written of the components, root by root."""

    def __init__(self, side: Side, documents: Documents) -> None:
        self._side, self._documents = side, documents
        # The range of each root: by its text, not by its address, since its row may move with every file
        # that is added to its chunk.
        self._home: npt.NDArray[np.uint16] = documents.array(np.uint16)
        # Other nodes of each root of which no edge to it is known, and its nodes of the version below: which
        # components leave ``confirm`` something to compare, as in :mod:`dataflow_ops.layers.dedup.stars`.
        self._unknown: npt.NDArray[np.int32] = documents.array(np.int32)
        self._settled: npt.NDArray[np.int32] = documents.array(np.int32)

    def add(self, at: int, rows: pa.Table, node: Ranks, root: Ranks, members: spill.Spill) -> None:
        """Take documents from rank ``at`` on; fills ``members``."""
        rank = np.arange(at, at + rows.num_rows)
        key = leading_u64(columns.binary_rows(rows, "sha1"))
        self._home[rank] = prefix_of(mix_rows(key), self._side.numbers.root_prefixes)
        mine, roots = node[rank], root[rank]
        is_node = mine == rank
        np.add.at(self._unknown, roots[is_node & (roots != rank)], 1)
        np.add.at(self._settled, roots[is_node & (rank < self._documents.of_base)], 1)
        for name, values in (("root", roots), ("node", mine), ("rank", rank)):
            rows = rows.append_column(name, pa.array(values.astype(np.uint64)))
        members.add(rows, roots.astype(np.uint64))

    def links(self, linked: spill.Spill, share: int) -> Iterator[StepResult]:
        """Pairs by root, in survivor order of their ends."""
        further = [spill.number(name) for name in ("first", "second")]
        for _, part in spill.finer(self._side, linked, further, share):
            root, first, second = (columns.numbers(part, name) for name in ("root", "first", "second"))
            in_order = np.lexsort((second, first, root))
            root, first, second = root[in_order], first[in_order], second[in_order]
            np.subtract.at(self._unknown, root[first == root], 1)
            ends = [values for ranks in (root, first, second) for values in self._documents.addresses(ranks)]
            similarity = columns.numbers(part, "similarity")[in_order]
            table = pa.Table.from_arrays([pa.array(v) for v in (*ends, similarity)], schema=columns.LINKS)
            yield StepResult(outputs={"links": self._sliced(table, root)})

    def members(self, members: spill.Spill, asked: spill.Spill, share: int) -> Iterator[StepResult]:
        """Documents by root, node and rank; fills ``asked`` with one text of each node of those components in
        which ``confirm`` has something to compare.
        """
        last = -1
        further = [spill.number(name) for name in ("node", "rank")]
        for _, part in spill.finer(self._side, members, further, share):
            root, node, rank = (columns.numbers(part, name) for name in ("root", "node", "rank"))
            in_order = np.lexsort((rank, node, root))
            root, node, rank = root[in_order], node[in_order], rank[in_order]
            rows = part.take(pa.array(in_order)).combine_chunks()
            heads = [values for ranks in (root, node) for values in self._documents.addresses(ranks)]
            arrays = [pa.array(h) for h in heads] + [rows.column(c).combine_chunks() for c in DOCUMENT]
            table = pa.Table.from_arrays(arrays, schema=columns.MEMBERS)
            yield StepResult(outputs={"members": self._sliced(table, root)})
            # The first gathered member of a node, as ``confirm`` chooses it.
            block = columns.numbers(rows, "block")
            left = (self._unknown[root] > 0) | (self._settled[root] > 1)
            gathered = np.flatnonzero((block >= 0) & left)
            if not len(gathered):
                continue
            of = node[gathered].astype(np.int64)
            who = gathered[np.append(last, of[:-1]) != of]  # the rest of a node may follow in the next part
            last = int(of[-1])
            home = pa.array(self._home[root[who]].astype(np.uint32))
            texts = rows.select(("chunk", "row", "block", "rank")).take(pa.array(who))
            texts = texts.append_column("range", home)
            asked.add(texts, rank[who])

    def asked(self, asked: spill.Spill) -> Iterator[StepResult]:
        """The texts to compare, in survivor order."""
        for part in asked.ranges():
            rows = part.table()
            rows = rows.take(pa.array(np.argsort(columns.numbers(rows, "rank"))))
            block = columns.numbers(rows, "block")
            table = rows.select(columns.ASKED.names).cast(columns.ASKED)
            slices = columns.prefix_slices(block, self._side.numbers.blocks)
            yield StepResult(outputs={"asked": table.append_column("slice", slices)})

    def _sliced(self, table: pa.Table, root: npt.NDArray[np.uint64]) -> pa.Table:
        home = self._home[root].astype(np.int64)
        return table.append_column("slice", columns.prefix_slices(home, self._side.numbers.root_prefixes))
