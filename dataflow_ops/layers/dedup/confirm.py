"""Step ``confirm``: each removed document gets a survivor it was itself compared with.

A component only says that its members hang together by edges. Where each of them has one to the best member
there is nothing left to do; the others are decided by :mod:`dataflow_ops.layers.dedup.component`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dataflow_ops import schema
from dataflow_ops.errors import ConservationError
from dataflow_ops.kernels.arrow import F64, I64, hex_strings
from dataflow_ops.layers.dedup import columns, component, identity, order, spill
from dataflow_ops.layers.dedup.addresses import Known
from dataflow_ops.layers.dedup.compare import estimate_bound
from dataflow_ops.layers.dedup.component import Component, Walk, decide
from dataflow_ops.layers.dedup.pointers import CollectedTexts, Pointer
from dataflow_ops.layers.dedup.stars import unsettled
from dataflow_ops.protocols import Input, OutputSpec, Partitioning, Side
from dataflow_ops.settings import JobSettings
from dataflow_ops.values import Counts, StepResult

_PEAK = 8.0
"""Bytes at the peak for each byte of members; measured by ``bench.scaling.ranges``."""

_VERDICTS = ("survivor", "exact", "near")
_SURVIVOR, _EXACT, _NEAR = range(3)
_SAID = pa.schema(
    [
        ("chunk", pa.uint64()),
        ("row", pa.uint32()),
        ("doc_id", schema.DOC_ID),
        ("to_chunk", pa.uint64()),
        ("to_row", pa.uint32()),
        ("to_id", schema.DOC_ID),
        ("kind", pa.uint8()),
        ("similarity", pa.float64()),
        ("copies", pa.uint32()),
    ]
)


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
            "step": 4,
            **identity.similarity_fingerprint(self._settings),
            "signatures": identity.signature_id(self._settings),
            "whole_walk": component.WHOLE_WALK,
            "max_moves": [component.MAX_MOVES, component.MAX_SIGNATURES],
        }

    def run(self, side: Side, start: int) -> Iterator[StepResult]:
        """Decide the components of one prefix.

        Raises:
            ConservationError: links came without the members of their component.
            CorruptOutput: a collected text is not the one its pointer means.
            FingerprintMismatch: signatures of different making came together.
        """
        share = spill.share_of(side, _PEAK)
        texts = CollectedTexts(side, identity.signature_id(self._settings), side.memory_budget // 4)
        links = _LinksByRoot(side.stream("unite", "links"))
        batches = 0
        with spill.Spill(side, share // 2) as said:
            for members in _whole_components(side.stream("unite", "members"), share):
                side.checkpoint()
                rows, result = self._decide(side, members, links.of(members), texts)
                said.add(rows, columns.numbers(rows, "chunk"))
                batches += 1
                yield result
            links.check_all_given()
            for _, part in spill.finer(side, said, [spill.number("row")], share // 2):
                yield StepResult(outputs=_tables(part))
        split = {"ranges_split": 1.0} if batches > 1 else {}
        yield StepResult(metrics={"confirm_slices_read": texts.read, **split})

    def _decide(
        self, side: Side, members: pa.Table, linked: pa.Table, texts: CollectedTexts
    ) -> tuple[pa.Table, StepResult]:
        """What is said of the members of some components."""
        n = members.num_rows
        root, node = _labels(members)
        links = _links(members, linked)
        of_base = columns.numbers(members, "order_hi") == order.BASE
        # As it is in stars; the others follow.
        survivor_of = root.copy()
        similarities = _to_best(root, links)[node]
        left = unsettled(root, node, links.a[links.similarity > 0], of_base)
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
        return _said(members, survivor_of, similarities, removed, near, of_base), StepResult(
            counts=Counts(
                documents_in=own,
                kept=int(own - removed.sum()),
                rejected=int(removed.sum()),
                documents_out=int(own - removed.sum()),
            ),
            rule_hits={"exact_duplicate": int((removed & ~near).sum()), "near_duplicate": int(near.sum())},
            metrics={"confirm_compared": compared},
        )


def _whole_components(tables: Iterable[pa.Table], share: int) -> Iterator[pa.Table]:
    """Members, root by root as they come, cut between components: as many as fit, at least one."""
    held: list[pa.Table] = []
    size = 0
    last: tuple[int, int] | None = None
    for table in tables:
        chunk, row = columns.numbers(table, "root_chunk"), columns.numbers(table, "root_row")
        other = np.append(
            last is not None and last != (int(chunk[0]), int(row[0])),
            (chunk[1:] != chunk[:-1]) | (row[1:] != row[:-1]),
        )
        last = int(chunk[-1]), int(row[-1])
        bounds = np.flatnonzero(other)
        if size + table.nbytes > share and len(bounds):
            yield pa.concat_tables([*held, table.slice(0, int(bounds[-1]))]).combine_chunks()
            held, size = [], 0
            table = table.slice(int(bounds[-1]))
        held.append(table)
        size += table.nbytes
    if held:
        yield pa.concat_tables(held).combine_chunks()


class _LinksByRoot:
    """Links as they come, which is in the order of the members' roots."""

    def __init__(self, tables: Iterator[pa.Table]) -> None:
        self._tables = tables
        self._next: pa.Table | None = None

    def of(self, members: pa.Table) -> pa.Table:
        """The next ones: those of the components of these members."""
        known = Known.of(columns.numbers(members, "root_chunk"), columns.numbers(members, "root_row"))
        found = [columns.LINKS.empty_table()]
        while (table := self._next if self._next is not None else next(self._tables, None)) is not None:
            _, there = known.find(columns.numbers(table, "root_chunk"), columns.numbers(table, "root_row"))
            strange = np.flatnonzero(~there)
            end = int(strange[0]) if len(strange) else table.num_rows
            found.append(table.slice(0, end))
            self._next = table.slice(end) if end < table.num_rows else None
            if self._next is not None:
                break
        return pa.concat_tables(found).combine_chunks()

    def check_all_given(self) -> None:
        """After all members.

        Raises:
            ConservationError: some links are of no component that came, or came in another order.
        """
        if self._next is not None or next(self._tables, None) is not None:
            raise ConservationError("links of a component came, but not its members")


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


def _links(members: pa.Table, links: pa.Table) -> _Links:
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
    of_best = (links.a == links.root) & (links.similarity > 0)
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
    edges: dict[tuple[int, int], float] = {}
    for a, b, value in links:
        x, y = int(np.searchsorted(heads, a)), int(np.searchsorted(heads, b))
        pair = min(x, y), max(x, y)
        edges[pair] = max(value, edges.get(pair, 0.0))
    high = columns.numbers(members, "order_hi")[heads]
    of_base = high == order.BASE
    characters = np.where(of_base, -1, order.key_chars(high))
    return Component([Pointer(*place) for place in places], edges, characters, int(of_base.sum()))


def _said(
    members: pa.Table,
    survivor_of: I64,
    similarities: F64,
    removed: npt.NDArray[np.bool_],
    near: npt.NDArray[np.bool_],
    of_base: npt.NDArray[np.bool_],
) -> pa.Table:
    """Removed documents and those that stand for others, with their survivors."""
    copies = np.bincount(survivor_of[removed], minlength=members.num_rows).astype(np.uint32)
    # What is published of the version below stays as it is.
    said = np.flatnonzero((removed | (copies > 0)) & ~of_base)
    to = survivor_of[said]
    chunk, row, ids = columns.numbers(members, "chunk"), columns.numbers(members, "row"), members["doc_id"]
    values = [
        chunk[said],
        row[said],
        ids.take(pa.array(said)),
        chunk[to],
        row[to],
        ids.take(pa.array(to)),
        np.where(removed[said], np.where(near[said], _NEAR, _EXACT), _SURVIVOR).astype(np.uint8),
        similarities[said],
        copies[said],
    ]
    return pa.table(values, schema=_SAID)


def _tables(said: pa.Table) -> dict[str, pa.Table]:
    """Outputs of some documents, by address."""
    chunk, row = columns.numbers(said, "chunk"), columns.numbers(said, "row")
    said = said.take(pa.array(np.lexsort((row, chunk)))).combine_chunks()
    chunk, to_chunk = columns.numbers(said, "chunk"), columns.numbers(said, "to_chunk")
    kind = columns.numbers(said, "kind")
    verdict = pa.array(_VERDICTS, pa.string()).take(pa.array(kind))
    similarity = columns.numbers(said, "similarity")
    verdicts = pa.Table.from_arrays(
        [
            said["row"].combine_chunks(),
            verdict,
            *(said[name].combine_chunks() for name in ("to_chunk", "to_row", "to_id")),
            pa.array(similarity.astype(np.float32)),
            said["copies"].combine_chunks(),
        ],
        schema=schema.DUPLICATES,
    ).append_column("slice", columns.chunk_slices(chunk))
    gone = np.flatnonzero(kind != _SURVIVOR)
    pairs = pa.Table.from_arrays(
        [
            hex_strings(said["doc_id"].take(pa.array(gone))),
            hex_strings(said["to_id"].take(pa.array(gone))),
            verdict.take(pa.array(gone)),
            pa.array(similarity[gone]),
            columns.chunk_slices(chunk[gone]),
            pa.array(columns.numbers(said, "row")[gone]),
            columns.chunk_slices(to_chunk[gone]),
            pa.array(columns.numbers(said, "to_row")[gone]),
        ],
        schema=columns.PAIRS,
    )
    lost = verdicts.take(pa.array(gone))
    return {
        "verdicts": verdicts,
        "removed": lost.select([*columns.REMOVED.names, "slice"]),
        "copies": verdicts.filter(pa.array(kind == _SURVIVOR)).select([*columns.COPIES.names, "slice"]),
        "losses": lost.select([*columns.LOSSES.names, "slice"]),
        "pairs": pairs,
    }
