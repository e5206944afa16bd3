"""Comparing candidates: length and signature estimate first, then the edit similarity of the key texts.

Neither of the first two costs recall. The difference in length alone bounds the distance from below, so
refusing by it is exact. The estimate refuses only what banding would not have found anyway: with J0 the
Jaccard similarity that the job's bands find once in a thousand times, and the estimator's standard error
``s = sqrt(J0 (1 - J0) / k)``, the bound is ``J0 - 4 s``: 17 of 128 positions, 0.13, for 16 x 8 bands. A pair
of at least J0 falls below it with probability 3e-5.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dataflow_ops.kernels import minhash
from dataflow_ops.kernels.arrow import I64, U32
from dataflow_ops.kernels.bands import similarity_at
from dataflow_ops.kernels.similarity import expected_similarity, similarity
from dataflow_ops.settings import JobSettings

_FOUND = 0.001
_ERRORS = 4.0


def estimate_bound(settings: JobSettings) -> int:
    """Fewest equal positions of two signatures whose texts are worth comparing."""
    m = settings.dedup.minhash
    least = similarity_at(_FOUND, m.band, m.rows_per_band)
    error = math.sqrt(least * (1.0 - least) / m.signature_size)
    return max(0, math.floor((least - _ERRORS * error) * m.signature_size))


@dataclass(frozen=True, slots=True)
class Candidates:
    """What is compared, by index.

    Attributes:
        signatures: uint32, shape ``(n, k)``.
        shingles: int64, shape ``(n,)``: only signatures of one shingle size say anything about each other.
        text: gives the key text of one index.
        least: the threshold of edit similarity.
        bound: from :func:`estimate_bound`.
    """

    signatures: U32
    shingles: I64
    text: Callable[[int], str]
    least: float
    bound: int

    def similarity(self, a: int, b: int, equal: int) -> float:
        """Edit similarity of two texts, 0.0 when it is below the threshold.

        Args:
            a: one text.
            b: the other.
            equal: equal positions of their signatures.
        """
        expected = 1.0
        if self.shingles[a] == self.shingles[b]:
            if equal < self.bound:
                return 0.0
            expected = expected_similarity(equal / self.signatures.shape[1], int(self.shingles[a]))
        return similarity(self.text(a), self.text(b), self.least, expected)

    def pairs_agreeing(self, a: I64, b: I64) -> I64:
        """Equal signature positions of each of some pairs."""
        return minhash.pairs_agreeing(self.signatures, a, b)

    def agreements(self, many: list[int], one: int) -> I64:
        """Equal positions of one signature with each of many."""
        return minhash.agreements(self.signatures, np.array(many, np.int64), one)


def leader_walk(
    members: list[int],
    with_first: list[int],
    agreements: Callable[[list[int], int], I64],
    similar: Callable[[int, int, int, bool], float],
    max_leaders: int,
    settled: int = 0,
) -> tuple[list[tuple[int, int, float]], int]:
    """Match each member of a bucket with one of those before it.

    A member is compared with the leaders so far, the likeliest by signature first, and becomes a leader
    itself unless a verified match is found. So a bucket of n texts that share a template costs n
    comparisons, not n squared, and a group is found although a longer stranger comes before it.

    Args:
        members: indices in survivor order.
        with_first: equal positions of each member's signature with the first member's.
        agreements: equal positions of one member's signature (second) with each of many (first).
        similar: edit similarity of two members, 0.0 below the threshold; negative where both are known to be
            alike to the same better document: nothing is compared then, the member needs no edge here, and is
            spared: a leader beside the others, as it may be the one that a later member is alike to. Its
            third argument are their signatures' equal positions, its last whether it may spare.
        max_leaders: cap; a member beyond it is compared as well, and if it matches none stays as it is. As
            many again may be spared, which takes no leader's place; beyond that all are compared.
        settled: so many of the first members stay whatever comes, and are not held against each other: all
            are leaders, and the others are compared with the ``max_leaders`` likeliest of them.

    Returns:
        ``(edges, beyond)``: ``(leader, member, similarity)`` of each match, and how many members matched none
        and, because of the cap, became no leader or were not held against all.
    """
    leaders: list[int] = members[:settled]
    spared: set[int] = set()
    edges: list[tuple[int, int, float]] = []
    beyond = 0
    for member, of_first in zip(members[settled:], with_first[settled:], strict=True):
        ranked = [(leader, of_first) for leader in leaders]
        if len(leaders) > 1:
            equal = agreements(leaders, member)
            likeliest = np.argsort(-equal, kind="stable").tolist()
            ranked = [(leaders[i], int(equal[i])) for i in likeliest]
        found = 0.0
        own = len(leaders) - len(spared)
        if own > max_leaders:
            ranked = _likeliest(ranked, spared, max_leaders)
        for leader, equal_positions in ranked:
            found = similar(leader, member, equal_positions, len(spared) < max_leaders)
            if found > 0.0:
                edges.append((leader, member, found))
            if found != 0.0:
                break
        full = own - settled >= max_leaders
        beyond += found == 0.0 and (full or own > max_leaders)
        if found < 0.0:
            spared.add(member)
        if found < 0.0 or (found == 0.0 and not full):
            leaders.append(member)
    return edges, beyond


def _likeliest(ranked: list[tuple[int, int]], spared: set[int], most: int) -> list[tuple[int, int]]:
    """The ``most`` likeliest leaders, and those among them that were spared."""
    own = 0
    kept = []
    for leader, equal in ranked:
        own += leader not in spared
        if own <= most or leader in spared:
            kept.append((leader, equal))
    return kept
