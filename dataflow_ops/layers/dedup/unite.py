"""Step ``unite``: verified edges and exact groups become components, the candidates for one survivor each.

It holds the documents that are in some group, about 150 bytes each, and no text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from dataflow_ops.kernels.arrow import I64
from dataflow_ops.kernels.bands import mix_rows
from dataflow_ops.kernels.digest import leading_u64, prefix_of
from dataflow_ops.kernels.unionfind import components
from dataflow_ops.layers.dedup import columns, order
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
    """Reduce over everything. Outputs ``members`` and ``links``, both sliced by root prefix."""

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
    )

    def __init__(self, settings: JobSettings) -> None:
        pass

    def fingerprint(self) -> Mapping[str, object]:
        """No setting acts here."""
        return {"step": 3}

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
        home = _homes(documents.table, root, side.numbers.blocks)
        block = _blocks(documents, nodes, node_id, home)
        members = _members(documents.table, block, node, root, side.numbers.root_prefixes)
        side.checkpoint()
        yield StepResult(
            outputs={
                "members": members,
                "links": _links(documents.table, edges, a, b, root, side.numbers.root_prefixes),
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


def _homes(documents: pa.Table, root: I64, blocks: int) -> I64:
    """The block of each document's root, as ``match`` chose it: most texts of a component are there."""
    key = leading_u64(columns.binary_rows(documents, "sha1"))
    found: I64 = prefix_of(mix_rows(key), blocks)[root]
    return found


def _blocks(documents: _Documents, nodes: pa.Table, node_id: I64, home: I64) -> I64:
    """In which block each document's text is read: its root's, where it was gathered for that, else the first
    that has it; -1: in none.
    """
    at = documents.find(node_id)
    block = columns.numbers(nodes, "block").astype(np.int64)
    by_choice = np.lexsort((block, block != home[at], at))
    at, block = at[by_choice], block[by_choice]
    found: I64 = np.full(len(home), -1, np.int64)
    found[at[::-1]] = block[::-1]  # of several the last assignment holds: the first choice
    return found


def _members(documents: pa.Table, block: I64, node: I64, root: I64, ranges: int) -> pa.Table:
    by_root = np.lexsort((np.arange(len(root)), node, root))
    chunk, row = columns.numbers(documents, "chunk"), columns.numbers(documents, "row")
    heads = [values[which[by_root]] for which in (root, node) for values in (chunk, row)]
    rest = documents.take(pa.array(by_root)).combine_chunks()
    arrays = [pa.array(h) for h in heads] + [c.combine_chunks() for c in rest.columns]
    arrays.append(pa.array(block[by_root]))
    table = pa.Table.from_arrays(arrays, schema=columns.MEMBERS)
    return table.append_column("slice", _slices(documents, root[by_root], ranges))


def _links(documents: pa.Table, edges: pa.Table, a: I64, b: I64, root: I64, ranges: int) -> pa.Table:
    first, second = np.minimum(a, b), np.maximum(a, b)
    similarity = columns.numbers(edges, "similarity")
    by_pair = np.lexsort((-similarity, second, first, root[first]))
    first, second, similarity = first[by_pair], second[by_pair], similarity[by_pair]
    new = first != second  # an edge inside an exact group says nothing
    new[1:] &= (first[1:] != first[:-1]) | (second[1:] != second[:-1])
    first, second, similarity = first[new], second[new], similarity[new]
    chunk, row = columns.numbers(documents, "chunk"), columns.numbers(documents, "row")
    ends = [values[which] for which in (root[first], first, second) for values in (chunk, row)]
    table = pa.Table.from_arrays([pa.array(v) for v in (*ends, similarity)], schema=columns.LINKS)
    return table.append_column("slice", _slices(documents, root[first], ranges))


def _slices(documents: pa.Table, root: I64, ranges: int) -> pa.Array:
    """By the root's text, as blocks are: who decides over a range of roots reads the block of that number,
    and little of the others. Not by its address: its row may move with every file added to its chunk.
    """
    return columns.prefix_slices(_homes(documents, root, ranges), ranges)
