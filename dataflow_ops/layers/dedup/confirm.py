"""Step ``confirm``: each removed document gets a survivor it was itself compared with.

A component only says that its members hang together by edges. Where each of them has one to the best member
there is nothing left to do; the others are decided by :mod:`dataflow_ops.layers.dedup.component`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dataflow_ops import schema
from dataflow_ops.kernels.arrow import F64, I64
from dataflow_ops.layers.dedup import columns, component, identity, order
from dataflow_ops.layers.dedup.compare import estimate_bound
from dataflow_ops.layers.dedup.component import Component, Walk, decide
from dataflow_ops.layers.dedup.pointers import CollectedTexts, Pointer
from dataflow_ops.layers.dedup.stars import unsettled
from dataflow_ops.protocols import Input, OutputSpec, Partitioning, Side
from dataflow_ops.settings import JobSettings
from dataflow_ops.values import Counts, StepResult


class ConfirmStep:
    """Reduce over a root prefix.

    Outputs ``verdicts``, sliced by chunk; what later steps need of them, each by itself (``removed``,
    ``copies``, ``losses``); and ``pairs``.
    """

    name = "confirm"
    layer = "dedup"
    partitioned_by: Partitioning = "root_prefix"
    inputs = (
        Input("unite", "members", "slice"),
        Input("unite", "links", "slice"),
        Input("collect", "texts", "pointer"),
    )
    outputs = (
        OutputSpec("verdicts", schema.DUPLICATES, "chunk"),
        OutputSpec("removed", columns.REMOVED, "chunk"),
        OutputSpec("copies", columns.COPIES, "chunk"),
        OutputSpec("losses", columns.LOSSES, "chunk"),
        OutputSpec("pairs", columns.PAIRS),
    )

    def __init__(self, settings: JobSettings) -> None:
        self._settings = settings
        self._least = settings.dedup.verify.min_similarity
        self._bound = estimate_bound(settings)

    def fingerprint(self) -> Mapping[str, object]:
        """Threshold and what a similarity is."""
        return {
            "step": 3,
            **identity.similarity_fingerprint(self._settings),
            "signatures": identity.signature_id(self._settings),
            "whole_walk": component.WHOLE_WALK,
            "max_moves": [component.MAX_MOVES, component.MAX_SIGNATURES],
        }

    def run(self, side: Side, start: int) -> Iterator[StepResult]:
        """Decide the components of one prefix.

        Raises:
            CorruptOutput: a collected text is not the one its pointer means.
            FingerprintMismatch: signatures of different making came together.
        """
        members = side.table("unite", "members").combine_chunks()
        if members.num_rows == 0:
            yield StepResult()
            return
        texts = CollectedTexts(side, identity.signature_id(self._settings), side.memory_budget // 4)
        n = members.num_rows
        root, node = _labels(members)
        links = _links(side, members)
        of_base = columns.numbers(members, "order_hi") == order.BASE
        # As it is in stars; the others follow.
        survivor_of = root.copy()
        similarities = _to_best(root, links)[node]
        left = unsettled(root, node, links.a, of_base)
        edges = links.by_root(left)
        compared = 0
        for first in np.flatnonzero(left).tolist():
            last = int(np.searchsorted(root, first, "right"))
            heads = np.unique(node[first:last])  # row of each node's first member
            one = _component(members, node, heads, first, last, edges[first])
            walk = Walk(one, texts, self._least, self._bound, side.checkpoint)
            found, values = decide(one, walk)
            compared += walk.compared
            at = np.searchsorted(heads, node[first:last])
            survivor_of[first:last] = heads[np.array(found)][at]
            similarities[first:last] = np.array(values)[at]
        removed = (survivor_of != np.arange(n)) & ~of_base
        own = n - int(of_base.sum())
        near = removed & (survivor_of != node)
        yield StepResult(
            outputs=_tables(members, survivor_of, similarities, removed, near, of_base),
            counts=Counts(
                documents_in=own,
                kept=int(own - removed.sum()),
                rejected=int(removed.sum()),
                documents_out=int(own - removed.sum()),
            ),
            rule_hits={"exact_duplicate": int((removed & ~near).sum()), "near_duplicate": int(near.sum())},
            metrics={"confirm_compared": compared, "confirm_slices_read": texts.read},
        )


def _labels(members: pa.Table) -> tuple[I64, I64]:
    """Root and node of each member as the row (in ``members``) of their first member."""
    root_id, node_id, own = columns.address_ids(
        *(
            (columns.numbers(members, f"{of}chunk"), columns.numbers(members, f"{of}row"))
            for of in ("root_", "node_", "")
        )
    )
    by_own = np.argsort(own)
    place = own[by_own]
    return by_own[np.searchsorted(place, root_id)], by_own[np.searchsorted(place, node_id)]


@dataclass(frozen=True, slots=True)
class _Links:
    """Verified pairs of nodes, by row of ``members``: root of their component, better end, other end."""

    root: I64
    a: I64
    b: I64
    similarity: F64

    def by_root(self, wanted: npt.NDArray[np.bool_]) -> dict[int, list[tuple[int, int, float]]]:
        """Pairs of the wanted components."""
        found: dict[int, list[tuple[int, int, float]]] = {r: [] for r in np.flatnonzero(wanted).tolist()}
        mine = wanted[self.root]
        columns_ = (self.root[mine], self.a[mine], self.b[mine], self.similarity[mine])
        for r, a, b, value in zip(*(c.tolist() for c in columns_), strict=True):
            found[r].append((a, b, value))
        return found


def _links(side: Side, members: pa.Table) -> _Links:
    links = side.table("unite", "links")
    own, root, a, b = columns.address_ids(
        (columns.numbers(members, "chunk"), columns.numbers(members, "row")),
        *(
            (columns.numbers(links, f"{of}_chunk"), columns.numbers(links, f"{of}_row"))
            for of in ("root", "a", "b")
        ),
    )
    by_own = np.argsort(own)
    place = own[by_own]
    heads, better, other = (by_own[np.searchsorted(place, ids)] for ids in (root, a, b))
    return _Links(heads, better, other, columns.numbers(links, "similarity"))


def _to_best(root: I64, links: _Links) -> F64:
    """Similarity of each node to its component's best where an edge tells it, 1.0 elsewhere."""
    found = np.ones(len(root))
    of_best = links.a == links.root
    found[links.b[of_best]] = links.similarity[of_best]
    return found


def _component(
    members: pa.Table, node: I64, heads: I64, first: int, last: int, links: list[tuple[int, int, float]]
) -> Component:
    rows = members.slice(first, last - first)
    block = columns.numbers(rows, "block")
    gathered = np.flatnonzero(block >= 0)
    nodes, which = np.unique(np.searchsorted(heads, node[first + gathered]), return_index=True)
    assert len(nodes) == len(heads), "a node beside others was gathered, or it would have no edge"
    chosen = gathered[which]
    chunk, row = columns.numbers(rows, "chunk")[chosen], columns.numbers(rows, "row")[chosen]
    sha1 = rows.column("sha1").take(pa.array(chosen)).to_pylist()
    places = zip(chunk.tolist(), row.tolist(), block[chosen].tolist(), sha1, strict=True)
    edges = {}
    for a, b, value in links:
        x, y = int(np.searchsorted(heads, a)), int(np.searchsorted(heads, b))
        edges[min(x, y), max(x, y)] = value
    high = columns.numbers(members, "order_hi")[heads]
    of_base = high == order.BASE
    characters = np.where(of_base, -1, order.key_chars(high))
    return Component([Pointer(*place) for place in places], edges, characters, int(of_base.sum()))


def _tables(
    members: pa.Table,
    survivor_of: I64,
    similarities: F64,
    removed: np.ndarray,
    near: np.ndarray,
    of_base: np.ndarray,
) -> dict[str, pa.Table]:
    n = members.num_rows
    copies = np.bincount(survivor_of[removed], minlength=n).astype(np.uint32)
    verdict = np.where(removed, np.where(near, "near", "exact"), "survivor")
    # What is published of the version below stays as it is.
    said = np.flatnonzero((removed | (copies > 0)) & ~of_base)
    chunk, row = columns.numbers(members, "chunk"), columns.numbers(members, "row")
    said = said[np.lexsort((row[said], chunk[said]))]
    to = survivor_of[said]
    doc_id = members.column("doc_id")
    verdicts = pa.Table.from_arrays(
        [
            pa.array(row[said]),
            pa.array(verdict[said].tolist(), pa.string()),
            pa.array(chunk[to]),
            pa.array(row[to]),
            doc_id.take(pa.array(to)).combine_chunks(),
            pa.array(similarities[said].astype(np.float32)),
            pa.array(copies[said]),
        ],
        schema=schema.DUPLICATES,
    ).append_column("slice", columns.chunk_slices(chunk[said]))
    gone = said[removed[said]]
    ids = columns.binary_rows(members, "doc_id")
    hexes = [ids[which].tobytes().hex() for which in (gone, survivor_of[gone])]
    names = [[text[i : i + 32] for i in range(0, len(text), 32)] for text in hexes]
    pairs = pa.Table.from_arrays(
        [
            pa.array(names[0], pa.string()),
            pa.array(names[1], pa.string()),
            pa.array(verdict[gone].tolist(), pa.string()),
            pa.array(similarities[gone]),
            columns.chunk_slices(chunk[gone]),
            pa.array(row[gone]),
            columns.chunk_slices(chunk[survivor_of[gone]]),
            pa.array(row[survivor_of[gone]]),
        ],
        schema=columns.PAIRS,
    )
    lost = verdicts.filter(pa.array(removed[said]))
    return {
        "verdicts": verdicts,
        "removed": lost.select([*columns.REMOVED.names, "slice"]),
        "copies": verdicts.filter(pa.array(~removed[said])).select([*columns.COPIES.names, "slice"]),
        "losses": lost.select([*columns.LOSSES.names, "slice"]),
        "pairs": pairs,
    }
