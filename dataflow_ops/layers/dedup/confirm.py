"""Step ``confirm``: each removed document gets a survivor it was itself compared with.

A component only says that its members hang together by edges. Its best member in survivor order takes
those that are similar to it: known from an edge, else compared here. The others are grouped again among
themselves in the same way, so a chain of small changes never swallows its unlike ends. At last each removed
document moves to the survivor most similar to it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa

from dataflow_ops import schema
from dataflow_ops.kernels import minhash
from dataflow_ops.kernels.arrow import F64, I64, U32
from dataflow_ops.kernels.similarity import expected_similarity, similarity
from dataflow_ops.layers.dedup import base, columns, identity, order
from dataflow_ops.layers.dedup.compare import estimate_bound
from dataflow_ops.layers.dedup.pointers import GatheredTexts, KeyText, Pointer
from dataflow_ops.protocols import Input, OutputSpec, Partitioning, Side
from dataflow_ops.settings import JobSettings
from dataflow_ops.values import Counts, StepResult

WHOLE_WALK = 2_000
"""Waiting nodes up to which a survivor is compared with all of them; in larger components with those at most
two verified edges away. Without that, a component costs its square."""

MAX_MOVES = 20_000_000
"""Survivors times nodes of a component up to which removed documents move to the nearest survivor."""

MAX_SIGNATURES = 100_000
"""Nodes of a component up to which all their signatures are held (51 MB)."""

_FEW = 4  # nodes below which their signatures are compared one by one


@dataclass(frozen=True, slots=True)
class _Component:
    """Nodes of one component in survivor order.

    Attributes:
        pointers: where each node's text is; None for the single node of an exact group.
        edges: similarity by pair of nodes, smaller first.
        settled: how many of the first nodes are of the version below.
    """

    pointers: list[Pointer | None]
    edges: dict[tuple[int, int], float]
    settled: int = 0


class ConfirmStep:
    """Reduce over a root prefix.

    Outputs ``verdicts``, sliced by chunk; what later steps need of them, each by itself (``removed``,
    ``copies``, ``losses``); and ``pairs``.
    """

    name = "confirm"
    layer = "dedup"
    partitioned_by: Partitioning = "root_prefix"
    outputs = (
        OutputSpec("verdicts", schema.DUPLICATES, "chunk"),
        OutputSpec("removed", columns.REMOVED, "chunk"),
        OutputSpec("copies", columns.COPIES, "chunk"),
        OutputSpec("losses", columns.LOSSES, "chunk"),
        OutputSpec("pairs", columns.PAIRS),
    )

    def __init__(self, settings: JobSettings) -> None:
        self._settings = settings
        self.inputs: tuple[Input, ...] = (
            Input("unite", "members", "slice"),
            Input("unite", "links", "slice"),
            Input("gather", "texts", "pointer"),
        )
        if base.has_base(settings):
            self.inputs += (Input("recall", "texts", "pointer"),)
        self._least = settings.dedup.verify.min_similarity
        self._bound = estimate_bound(settings)

    def fingerprint(self) -> Mapping[str, object]:
        """Threshold and what a similarity is."""
        return {
            "step": 2,
            **identity.similarity_fingerprint(self._settings),
            "signatures": identity.signature_id(self._settings),
            "whole_walk": WHOLE_WALK,
            "max_moves": [MAX_MOVES, MAX_SIGNATURES],
        }

    def run(self, side: Side, start: int) -> Iterator[StepResult]:
        """Decide the components of one prefix.

        Raises:
            CorruptOutput: a gathered text is not the one its pointer means.
            FingerprintMismatch: signatures of different making came together.
        """
        members = side.table("unite", "members").combine_chunks()
        if members.num_rows == 0:
            yield StepResult()
            return
        texts = GatheredTexts(side, identity.signature_id(self._settings), side.memory_budget // 4)
        n = members.num_rows
        root, node = _labels(members)
        survivor_of = np.arange(n, dtype=np.int64)
        similarities = np.ones(n)
        links = _links(side, members, node)
        bounds = np.concatenate([[0], np.flatnonzero(root[1:] != root[:-1]) + 1, [n]]).tolist()
        compared = 0
        for first, last in pairwise(bounds):
            heads = np.unique(node[first:last])  # row of each node's first member
            component = _component(members, node, heads, first, last, links)
            found, values, more = self._decide(component, texts, side.checkpoint)
            compared += more
            at = np.searchsorted(heads, node[first:last])
            survivor_of[first:last] = heads[np.array(found)][at]
            similarities[first:last] = np.array(values)[at]
        of_base = columns.numbers(members, "order_hi") == order.BASE
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

    def _decide(
        self, component: _Component, texts: GatheredTexts, ask: Callable[[], None]
    ) -> tuple[list[int], list[float], int]:
        """Survivor of each node, its similarity, and how many pairs had to be compared here."""
        ask()
        n = len(component.pointers)
        if n == 1:
            return [0], [1.0], 0
        walk = _Walk(component, texts, self._least, self._bound, ask)
        survivor, values = list(range(n)), [1.0] * n
        survivors = []
        # Documents of the version below come first. They stay, and are not held against each other.
        settled = component.settled
        waiting = set(range(settled, n))
        for best in range(n):
            if best >= settled and best not in waiting:
                continue
            waiting.discard(best)
            survivors.append(best)
            near = waiting if len(waiting) <= WHOLE_WALK else walk.within_two_edges(best) & waiting
            for other in walk.worth_comparing(best, sorted(near)):
                value = walk.similarity(best, other)
                if value > 0.0:
                    survivor[other], values[other] = best, value
                    waiting.discard(other)
        if 1 < len(survivors) <= MAX_MOVES // n and n <= MAX_SIGNATURES:
            _move_to_nearest(walk, survivors, survivor, values)
        return survivor, values, walk.compared


class _Walk:
    """Similarities inside one component: known from an edge, else compared once.

    Args:
        component: its nodes and edges.
        texts: where their texts are.
        least: threshold of edit similarity.
        bound: fewest equal positions of two signatures worth comparing.
        ask: called before each comparison.
    """

    def __init__(
        self,
        component: _Component,
        texts: GatheredTexts,
        least: float,
        bound: int,
        ask: Callable[[], None],
    ) -> None:
        self._component, self._texts, self._least, self._bound = component, texts, least, bound
        self._ask = ask
        self._signed: tuple[U32, I64] | None = None
        self._known = dict(component.edges)
        self._neighbours: dict[int, set[int]] | None = None
        self.compared = 0

    def similarity(self, a: int, b: int) -> float:
        """Edit similarity of two nodes, 0.0 below the threshold."""
        pair = (min(a, b), max(a, b))
        value = self._known.get(pair)
        if value is None:
            value = self._compare(a, b)
            self._known[pair] = value
        return value

    def within_two_edges(self, node: int) -> set[int]:
        """Nodes joined to this one by a verified edge or by two."""
        if self._neighbours is None:
            self._neighbours = {}
            for a, b in self._component.edges:
                self._neighbours.setdefault(a, set()).add(b)
                self._neighbours.setdefault(b, set()).add(a)
        first = self._neighbours.get(node, set())
        return first.union(*(self._neighbours[other] for other in first))

    def worth_comparing(self, a: int, others: list[int]) -> list[int]:
        """Of some nodes those joined to one by an edge, or whose signatures don't speak against it."""
        if len(others) < _FEW or len(self._component.pointers) > MAX_SIGNATURES:
            return others
        equal = self.agreements(a)
        return [b for b in others if not 0 <= equal[b] < self._bound or (min(a, b), max(a, b)) in self._known]

    def agreements(self, a: int) -> I64:
        """Equal signature positions of one node with every node; -1 where signatures say nothing."""
        self._ask()
        signatures, shingles = self._signatures()
        equal = minhash.agreements(signatures, np.arange(len(signatures)), a)
        return np.where(shingles == shingles[a], equal, -1)

    def _compare(self, a: int, b: int) -> float:
        self._ask()
        one, two = self._text(a), self._text(b)
        expected = 1.0
        if one.shingle == two.shingle:
            equal = int(np.count_nonzero(one.signature == two.signature))
            if equal < self._bound:
                return 0.0
            expected = expected_similarity(equal / len(one.signature), one.shingle)
        self.compared += 1
        return similarity(one.text, two.text, self._least, expected)

    def _signatures(self) -> tuple[U32, I64]:
        if self._signed is None:
            texts = [self._text(i) for i in range(len(self._component.pointers))]
            self._signed = (
                np.stack([t.signature for t in texts]),
                np.array([t.shingle for t in texts], np.int64),
            )
        return self._signed

    def _text(self, i: int) -> KeyText:
        at = self._component.pointers[i]
        assert at is not None, "a node beside others was gathered, or it would have no edge"
        return self._texts.get(at)


def _move_to_nearest(walk: _Walk, survivors: list[int], survivor: list[int], values: list[float]) -> None:
    """Give each removed node the most similar survivor of its component, not the first one that would do.

    Only survivors whose signature is nearer than the present one's are compared.
    """
    nearest = np.full(len(survivor), -1, np.int64)
    given = np.array(survivor)
    for s in survivors:
        mine = given == s
        nearest[mine] = walk.agreements(s)[mine]
    for s in survivors:
        agreement = walk.agreements(s)
        for node in np.flatnonzero(agreement > nearest).tolist():
            if survivor[node] not in (s, node):
                value = walk.similarity(s, node)
                if value > values[node]:
                    survivor[node], values[node] = s, value
                    nearest[node] = agreement[node]


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


def _links(side: Side, members: pa.Table, node: I64) -> dict[int, list[tuple[int, int, float]]]:
    """Edges by the row of their component's root, ends as rows of members."""
    links = side.table("unite", "links")
    if links.num_rows == 0:
        return {}
    own, root, a, b = columns.address_ids(
        (columns.numbers(members, "chunk"), columns.numbers(members, "row")),
        *(
            (columns.numbers(links, f"{of}_chunk"), columns.numbers(links, f"{of}_row"))
            for of in ("root", "a", "b")
        ),
    )
    by_own = np.argsort(own)
    place = own[by_own]
    ends = [by_own[np.searchsorted(place, ids)].tolist() for ids in (root, a, b)]
    found: dict[int, list[tuple[int, int, float]]] = {}
    for r, x, y, value in zip(*ends, columns.numbers(links, "similarity").tolist(), strict=True):
        found.setdefault(r, []).append((x, y, value))
    return found


def _component(
    members: pa.Table,
    node: I64,
    heads: I64,
    first: int,
    last: int,
    links: dict[int, list[tuple[int, int, float]]],
) -> _Component:
    pointers: list[Pointer | None] = [None] * len(heads)
    if len(heads) > 1:
        rows = members.slice(first, last - first)
        block = columns.numbers(rows, "block")
        gathered = np.flatnonzero(block >= 0)
        at = np.searchsorted(heads, node[first + gathered])
        chunk, row, sha1 = (rows.column(c) for c in ("chunk", "row", "sha1"))
        of_base = columns.numbers(rows, "order_hi") == order.BASE
        for i, place in zip(gathered.tolist(), at.tolist(), strict=True):
            if pointers[place] is None:
                pointers[place] = Pointer(
                    chunk[i].as_py(), row[i].as_py(), int(block[i]), sha1[i].as_py(), bool(of_base[i])
                )
    edges = {}
    for a, b, value in links.get(first, ()):
        x, y = int(np.searchsorted(heads, a)), int(np.searchsorted(heads, b))
        edges[min(x, y), max(x, y)] = value
    settled = int((columns.numbers(members, "order_hi")[heads] == order.BASE).sum())
    return _Component(pointers, edges, settled)


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
