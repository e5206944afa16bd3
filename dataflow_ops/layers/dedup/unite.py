"""Step ``unite``: verified edges and exact groups become components, the candidates for one survivor each.

It holds the documents that are in some group, about 150 bytes each, and no text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from dataflow_ops.kernels.arrow import F64, I64
from dataflow_ops.kernels.bands import mix_rows
from dataflow_ops.kernels.digest import leading_u64, prefix_of
from dataflow_ops.kernels.unionfind import components
from dataflow_ops.layers.dedup import columns, order
from dataflow_ops.layers.dedup.stars import unsettled
from dataflow_ops.protocols import Input, OutputSpec, Partitioning, Side
from dataflow_ops.settings import JobSettings
from dataflow_ops.values import StepResult


@dataclass(frozen=True, slots=True)
class _Documents:
    """All documents of any group, in survivor order; an index is a document."""

    table: pa.Table
    ids: I64
    by_id: I64

    def find(self, ids: I64) -> I64:
        found: I64 = self.by_id[np.searchsorted(self.ids[self.by_id], ids)]
        return found


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
        edges, nodes = side.table("verify", "edges"), side.table("verify", "nodes")
        groups = side.table("exact", "groups")
        if nodes.num_rows + groups.num_rows == 0:
            yield StepResult()
            return
        survivor_id, member_id, node_id, a_id, b_id = columns.address_ids(
            (columns.numbers(groups, "survivor_chunk"), columns.numbers(groups, "survivor_row")),
            (columns.numbers(groups, "chunk"), columns.numbers(groups, "row")),
            (columns.numbers(nodes, "chunk"), columns.numbers(nodes, "row")),
            (columns.numbers(edges, "a_chunk"), columns.numbers(edges, "a_row")),
            (columns.numbers(edges, "b_chunk"), columns.numbers(edges, "b_row")),
        )
        side.checkpoint()
        documents = _documents(groups, member_id, nodes, node_id)
        side.checkpoint()
        n = documents.table.num_rows
        # An exact group is one node: its members inherit each other's edges.
        node = components(n, documents.find(survivor_id), documents.find(member_id))
        a, b = node[documents.find(a_id)], node[documents.find(b_id)]
        root = components(n, np.concatenate([node, a]), np.concatenate([np.arange(n), b]))
        sizes = np.bincount(root, minlength=n)
        side.checkpoint()
        block = _blocks(documents, nodes, node_id)
        home = _homes(documents.table, root, side.numbers.root_prefixes)
        members = _members(documents.table, block, node, root, home, side.numbers.root_prefixes)
        side.checkpoint()
        pairs, similarity = _pairs(edges, a, b, root)
        asked = _asked(documents.table, pairs, node, root, block, home, side.numbers.blocks)
        yield StepResult(
            outputs={
                "members": members,
                "links": _links(documents.table, pairs, similarity, root, home, side.numbers.root_prefixes),
                "asked": asked,
            },
            metrics={
                "components": int(np.count_nonzero(sizes)),
                "component_members": n,
            },
        )


def _documents(groups: pa.Table, member_id: I64, nodes: pa.Table, node_id: I64) -> _Documents:
    names = ["chunk", "row", "doc_id", "sha1", "order_hi", "order_lo"]
    table = pa.concat_tables([nodes.select(names), groups.select(names)])
    ids = np.concatenate([node_id, member_id])
    ids, first = np.unique(ids, return_index=True)
    table = table.take(pa.array(first)).combine_chunks()
    parts = (columns.numbers(table, c) for c in ("order_hi", "order_lo", "chunk", "row"))
    by_order = order.sort(*parts)
    ids = ids[by_order]
    return _Documents(table.take(pa.array(by_order)), ids, np.argsort(ids))


def _homes(documents: pa.Table, root: I64, ranges: int) -> I64:
    """The range of each document's root: by the root's text, not by its address, since its row may move with
    every file added to its chunk.
    """
    key = leading_u64(columns.binary_rows(documents, "sha1"))
    found: I64 = prefix_of(mix_rows(key), ranges)[root]
    return found


def _blocks(documents: _Documents, nodes: pa.Table, node_id: I64) -> I64:
    """In which block each document's text is read: the first that has it; -1: in none."""
    at = documents.find(node_id)
    block = columns.numbers(nodes, "block").astype(np.int64)
    found: I64 = np.full(len(documents.ids), np.iinfo(np.int64).max, np.int64)
    np.minimum.at(found, at, block)
    found[found == np.iinfo(np.int64).max] = -1
    return found


def _members(documents: pa.Table, block: I64, node: I64, root: I64, home: I64, ranges: int) -> pa.Table:
    by_root = np.lexsort((np.arange(len(root)), node, root))
    chunk, row = columns.numbers(documents, "chunk"), columns.numbers(documents, "row")
    heads = [values[which[by_root]] for which in (root, node) for values in (chunk, row)]
    rest = documents.take(pa.array(by_root)).combine_chunks()
    arrays = [pa.array(h) for h in heads] + [c.combine_chunks() for c in rest.columns]
    arrays.append(pa.array(block[by_root]))
    table = pa.Table.from_arrays(arrays, schema=columns.MEMBERS)
    return table.append_column("slice", columns.prefix_slices(home[by_root], ranges))


def _pairs(edges: pa.Table, a: I64, b: I64, root: I64) -> tuple[tuple[I64, I64], F64]:
    """Verified pairs of nodes, smaller first, each once with the best similarity, by component."""
    first, second = np.minimum(a, b), np.maximum(a, b)
    similarity = columns.numbers(edges, "similarity")
    by_pair = np.lexsort((-similarity, second, first, root[first]))
    first, second, similarity = first[by_pair], second[by_pair], similarity[by_pair]
    new = first != second  # an edge inside an exact group says nothing
    new[1:] &= (first[1:] != first[:-1]) | (second[1:] != second[:-1])
    return (first[new], second[new]), similarity[new]


def _links(
    documents: pa.Table, pairs: tuple[I64, I64], similarity: F64, root: I64, home: I64, ranges: int
) -> pa.Table:
    first, second = pairs
    chunk, row = columns.numbers(documents, "chunk"), columns.numbers(documents, "row")
    ends = [values[which] for which in (root[first], first, second) for values in (chunk, row)]
    table = pa.Table.from_arrays([pa.array(v) for v in (*ends, similarity)], schema=columns.LINKS)
    return table.append_column("slice", columns.prefix_slices(home[first], ranges))


def _asked(
    documents: pa.Table, pairs: tuple[I64, I64], node: I64, root: I64, block: I64, home: I64, blocks: int
) -> pa.Table:
    """One text of each node of the components in which ``confirm`` has something to compare."""
    of_base = columns.numbers(documents, "order_hi") == order.BASE
    # The first gathered member of a node, as ``confirm`` chooses it.
    gathered = np.flatnonzero((block >= 0) & unsettled(root, node, pairs[0], of_base)[root])
    gathered = gathered[np.lexsort((gathered, node[gathered]))]
    new = np.ones(len(gathered), bool)
    new[1:] = node[gathered[1:]] != node[gathered[:-1]]
    who = np.sort(gathered[new])
    table = pa.Table.from_arrays(
        [
            pa.array(columns.numbers(documents, "chunk")[who]),
            pa.array(columns.numbers(documents, "row")[who]),
            pa.array(home[who].astype(np.uint32)),
        ],
        schema=columns.ASKED,
    )
    return table.append_column("slice", columns.prefix_slices(block[who], blocks))
