"""Who stays of one component: each removed node was itself compared with the node that stands for it.

The best node in survivor order takes those that are similar to it: known from an edge, else compared here.
The others are grouped again among themselves in the same way, so a chain of small changes never swallows its
unlike ends. At last each removed node moves to the survivor most similar to it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dataflow_ops.kernels import minhash
from dataflow_ops.kernels.arrow import I64, U32
from dataflow_ops.kernels.similarity import expected_similarity, similarity
from dataflow_ops.layers.dedup.pointers import CollectedTexts, Pointer

WHOLE_WALK = 2_000
"""Waiting nodes up to which a survivor is compared with all of them; in larger components with those at most
two verified edges away. Without that, a component costs its square."""

MAX_MOVES = 20_000_000
"""Survivors times nodes of a component up to which removed documents move to the nearest survivor."""

MAX_SIGNATURES = 100_000
"""Nodes of a component up to which all their signatures are held (51 MB)."""


@dataclass(frozen=True, slots=True)
class Component:
    """Nodes of one component in survivor order.

    Attributes:
        pointers: where each node's text is.
        edges: similarity by pair of nodes, smaller first; 0 where it was not asked for, as both are alike to
            the same better node.
        characters: of each node's key text; -1: not known.
        settled: how many of the first nodes are of the version below.
    """

    pointers: list[Pointer]
    edges: dict[tuple[int, int], float]
    characters: I64
    settled: int = 0


class Walk:
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
        component: Component,
        texts: CollectedTexts,
        least: float,
        bound: int,
        ask: Callable[[], None],
    ) -> None:
        self._component, self._texts, self._least, self._bound = component, texts, least, bound
        self._ask = ask
        self._signed: tuple[U32, I64] | None = None
        self._known: dict[int, dict[int, float]] = {}
        for (one, other), value in component.edges.items():
            if value > 0.0:
                self._learn(one, other, value)
        self._neighbours: dict[int, set[int]] | None = None
        self.compared = 0

    def similar_to(self, a: int, others: I64) -> list[tuple[int, float]]:
        """Those of some nodes whose edit similarity to one reaches the threshold, with its value.

        Texts whose lengths rule it out or whose signatures speak against it are not compared.
        """
        known = self._known.get(a, {})
        equal, size, shingle = self._estimates(a, others)
        possible = ((equal < 0) | (equal >= self._bound)) & self._near_in_length(a, others)
        if known:
            possible |= np.isin(others, list(known))
        found = []
        for b, of_b in zip(others[possible].tolist(), equal[possible].tolist(), strict=True):
            value = known.get(b)
            if value is None:
                self._ask()
                self.compared += 1
                expected = expected_similarity(of_b / size, shingle) if of_b >= 0 else 1.0
                value = similarity(self._text(a), self._text(b), self._least, expected)
                self._learn(a, b, value)
            if value > 0.0:
                found.append((b, value))
        return found

    def _near_in_length(self, a: int, others: I64) -> npt.NDArray[np.bool_]:
        """False where the difference in length alone is more than the threshold leaves room for."""
        own, theirs = self._component.characters[a], self._component.characters[others]
        room = (1.0 - self._least) * np.maximum(own, theirs) + 1.0
        near: npt.NDArray[np.bool_] = (np.abs(own - theirs) <= room) | (own < 0) | (theirs < 0)
        return near

    def _learn(self, a: int, b: int, value: float) -> None:
        self._known.setdefault(a, {})[b] = value
        self._known.setdefault(b, {})[a] = value

    def within_two_edges(self, node: int) -> set[int]:
        """Nodes joined to this one by an edge or by two."""
        if self._neighbours is None:
            self._neighbours = {}
            for a, b in self._component.edges:
                self._neighbours.setdefault(a, set()).add(b)
                self._neighbours.setdefault(b, set()).add(a)
        first = self._neighbours.get(node, set())
        return first.union(*(self._neighbours[other] for other in first))

    def agreements(self, a: int) -> I64:
        """Equal signature positions of one node with every node; -1 where signatures say nothing."""
        self._ask()
        signatures, shingles = self._signatures()
        equal = minhash.agreements(signatures, np.arange(len(signatures)), a)
        return np.where(shingles == shingles[a], equal, -1)

    def _estimates(self, a: int, others: I64) -> tuple[I64, int, int]:
        """Equal signature positions of one node with others (-1: they say nothing), of how many; the node's
        size of shingles.
        """
        pointers = self._component.pointers
        if len(pointers) <= MAX_SIGNATURES:
            signatures, shingles = self._signatures()
            return self.agreements(a)[others], signatures.shape[1], int(shingles[a])
        signatures, shingles = self._texts.signatures([pointers[i] for i in (a, *others.tolist())])
        same = np.count_nonzero(signatures[1:] == signatures[0], axis=1)
        return np.where(shingles[1:] == shingles[0], same, -1), signatures.shape[1], int(shingles[0])

    def _signatures(self) -> tuple[U32, I64]:
        if self._signed is None:
            self._signed = self._texts.signatures(self._component.pointers)
        return self._signed

    def _text(self, i: int) -> str:
        return self._texts.text(self._component.pointers[i])


def decide(component: Component, walk: Walk) -> tuple[list[int], list[float]]:
    """Survivor of each node (itself where it stays), and its similarity to it."""
    n = len(component.pointers)
    survivor, values = list(range(n)), [1.0] * n
    survivors = []
    # Documents of the version below come first. They stay, and are not held against each other.
    settled = component.settled
    waiting = np.zeros(n, np.bool_)
    waiting[settled:] = True
    for best in range(n):
        if best >= settled and not waiting[best]:
            continue
        waiting[best] = False
        survivors.append(best)
        near = np.flatnonzero(waiting)
        if len(near) > WHOLE_WALK:
            reached = np.array(sorted(walk.within_two_edges(best)), np.int64)
            near = reached[waiting[reached]]
        for other, value in walk.similar_to(best, near) if len(near) else ():
            survivor[other], values[other] = best, value
            waiting[other] = False
    if 1 < len(survivors) <= MAX_MOVES // n and n <= MAX_SIGNATURES:
        _move_to_nearest(walk, survivors, survivor, values)
    return survivor, values


def _move_to_nearest(walk: Walk, survivors: list[int], survivor: list[int], values: list[float]) -> None:
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
        nearer = [i for i in np.flatnonzero(agreement > nearest).tolist() if survivor[i] not in (s, i)]
        for node, value in walk.similar_to(s, np.array(nearer)) if nearer else ():
            if value > values[node]:
                survivor[node], values[node] = s, value
                nearest[node] = agreement[node]
