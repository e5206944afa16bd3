"""Edit similarity of two key texts: ``1 - Levenshtein distance / length of the longer``.

Up to 20,000 characters the distance is exact. Above, it would cost seconds, so the texts are cut at anchors
(short passages that occur once in either text and in the same order) into pairs of aligned blocks, and the
distances of the blocks are added up. Any such cutting gives at least the true distance, so the similarity
of long texts is a lower bound: it may miss a duplicate, but never makes one up. Where no anchor is found for
``_MAX_BLOCK`` characters, what the parts begin and end with alike is taken off, and anchors are looked for
once more, closer together. What is still too long then counts as wholly different, which fixes the work per
character.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numba
import numpy as np
from rapidfuzz.distance import Levenshtein

from dataflow_ops.kernels.arrow import I64, U32

VERSION = 2

EXACT_CHARS = 20_000
"""Longest text that is compared exactly (about 2 ms a pair)."""

_LEAST_GUESS = 31  # distances up to half a machine word cost the same

_ANCHOR = 24  # characters of an anchor; shorter ones repeat by chance in long texts
_SAMPLE = 16  # one passage in so many is tried as an anchor, chosen by its hash, so alike in both texts
_SAMPLE_LONG = 64  # … in texts above _LONG, where sorting the anchors would cost most
_LONG = 100_000
_CLOSER = 4  # so many times as many are tried in parts that found none
_MIN_BLOCK = 256  # anchors nearer than this to the last cut are passed over: fewer, fuller calls
_MAX_BLOCK = 4096
_WORK = (
    2_000_000 * _MAX_BLOCK
)  # bound on the sum of squared blocks: in longer texts the largest block shrinks


def similarity(a: str, b: str, least: float, expected: float = 1.0) -> float:
    """Edit similarity of two key texts.

    Args:
        a: one key text.
        b: the other.
        least: the threshold; below it the exact value doesn't matter and work stops early.
        expected: what it is likely to be: work grows with the distance that is looked for first, and is done
            again at twice of it where the guess was too high. The result is the same.

    Returns:
        A value in ``least … 1`` (a lower bound above 20,000 characters), or 0.0 when it is below ``least``.
    """
    longer = max(len(a), len(b))
    if longer == 0 or a == b:
        return 1.0
    # The distance is at least the difference in length; this also keeps a rounding error out of the cutoff.
    allowed = _allowed(longer, least)
    if abs(len(a) - len(b)) > allowed:
        return 0.0
    if longer <= EXACT_CHARS:
        guess = int((1.0 - expected) * longer) + _LEAST_GUESS
        distance = Levenshtein.distance(a, b, score_cutoff=allowed, score_hint=guess)
    else:
        distance = _block_distance(a, b, allowed)
    return 0.0 if distance > allowed else 1.0 - distance / longer


def expected_similarity(share: float, shingle: int) -> float:
    """Edit similarity of two texts of which a share of all shingles (Jaccard) is common to both.

    Of single changes spread evenly each spoils ``shingle`` shingles; of those common to one text,
    ``2 J / (1 + J)``, each was spared ``shingle`` times.
    """
    return float((2.0 * share / (1.0 + share)) ** (1.0 / shingle))


def _allowed(longer: int, least: float) -> int:
    """The largest distance whose similarity, as computed in floating point, is still at least ``least``."""
    allowed = int((1.0 - least) * longer) + 1
    while allowed > 0 and 1.0 - allowed / longer < least:
        allowed -= 1
    return allowed


def _block_distance(a: str, b: str, allowed: int) -> int:
    """An upper bound of the distance, or more than ``allowed`` as soon as that is certain."""
    longer = max(len(a), len(b))
    limit = min(_MAX_BLOCK, max(4 * _MIN_BLOCK, _WORK // longer))
    rate = _SAMPLE if longer <= _LONG else _SAMPLE_LONG
    codes = _codes(a), _codes(b)
    total, open_ = 0, []
    for part in _parts(*codes, rate):
        if part.longer <= limit:
            total += Levenshtein.distance(*part.of(a, b), score_cutoff=allowed - total)
        else:
            part = part.without_ends(*codes)
            total += part.least
            open_.append(part)
        if total > allowed:
            return total
    for part in open_:
        total -= part.least
        for piece in part.pieces(*codes, rate // _CLOSER) if part.longer > limit else (part,):
            if piece.longer <= limit:
                total += Levenshtein.distance(*piece.of(a, b), score_cutoff=allowed - total)
            else:
                total += piece.without_ends(*codes).longer
            if total > allowed:
                return total
    return total


class _Part(NamedTuple):
    """A stretch of either text; the two are taken to correspond."""

    from_a: int
    to_a: int
    from_b: int
    to_b: int

    @property
    def longer(self) -> int:
        """Characters of the longer one: the most that their distance can be."""
        return max(self.to_a - self.from_a, self.to_b - self.from_b)

    @property
    def least(self) -> int:
        """By how much they differ in length: the least that their distance can be."""
        return abs(self.to_a - self.from_a - (self.to_b - self.from_b))

    def of(self, a: str, b: str) -> tuple[str, str]:
        """The two stretches."""
        return a[self.from_a : self.to_a], b[self.from_b : self.to_b]

    def without_ends(self, a: U32, b: U32) -> _Part:
        """What is left without the characters that both begin with, then those that both end with."""
        one, two = a[self.from_a : self.to_a], b[self.from_b : self.to_b]
        n = min(len(one), len(two))
        head = _alike(one[:n], two[:n])
        tail = _alike(one[::-1][: n - head], two[::-1][: n - head])
        return _Part(self.from_a + head, self.to_a - tail, self.from_b + head, self.to_b - tail)

    def pieces(self, a: U32, b: U32, rate: int) -> Iterator[_Part]:
        """The stretches cut at anchors of their own."""
        for piece in _parts(a[self.from_a : self.to_a], b[self.from_b : self.to_b], rate):
            yield _Part(
                self.from_a + piece.from_a,
                self.from_a + piece.to_a,
                self.from_b + piece.from_b,
                self.from_b + piece.to_b,
            )


def _alike(a: U32, b: U32) -> int:
    """With how many characters two texts of one length begin alike."""
    unlike = a != b
    return int(unlike.argmax()) if unlike.any() else len(a)


def _codes(text: str) -> U32:
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)


def _parts(a: U32, b: U32, rate: int) -> Iterator[_Part]:
    """Two texts cut at their anchors."""
    cuts_a, cuts_b = anchors(a, b, rate)
    last_a = last_b = 0
    for end_a, end_b in zip([*cuts_a.tolist(), len(a)], [*cuts_b.tolist(), len(b)], strict=True):
        yield _Part(last_a, end_a, last_b, end_b)
        last_a, last_b = end_a, end_b


def anchors(a: U32, b: U32, rate: int = _SAMPLE) -> tuple[I64, I64]:
    """Positions at which two texts may be cut so that the parts correspond.

    Args:
        a: uint32 code points.
        b: uint32 code points.
        rate: one passage in so many is tried.

    Returns:
        ``(cuts in a, cuts in b)``: int64, ascending in both, shape ``(m,)``; no cut is nearer than 256
        characters to the one before it in either text.
    """
    at_a, hash_a = _samples(a, _ANCHOR, rate)
    at_b, hash_b = _samples(b, _ANCHOR, rate)
    once_a, first_a, count_a = np.unique(hash_a, return_index=True, return_counts=True)
    once_b, first_b, count_b = np.unique(hash_b, return_index=True, return_counts=True)
    once_a, first_a = once_a[count_a == 1], first_a[count_a == 1]
    once_b, first_b = once_b[count_b == 1], first_b[count_b == 1]
    _, in_a, in_b = np.intersect1d(once_a, once_b, assume_unique=True, return_indices=True)
    pairs_a, pairs_b = at_a[first_a[in_a]], at_b[first_b[in_b]]
    order = np.argsort(pairs_a)
    chain = _increasing(pairs_b[order])
    cuts: tuple[I64, I64] = _thin(pairs_a[order][chain], pairs_b[order][chain], _MIN_BLOCK)
    return cuts


@numba.njit(cache=True)
def _samples(codes, width, rate):  # type: ignore[no-untyped-def]
    """Positions and rolling hashes of the passages chosen as possible anchors."""
    base = np.uint64(0x9E3779B97F4A7C15)
    top = np.uint64(1)
    for _ in range(width):
        top *= base
    n = len(codes)
    positions = np.empty(n, np.int64)
    hashes = np.empty(n, np.uint64)
    found = 0
    h = np.uint64(0)
    for i in range(n):
        h = h * base + np.uint64(codes[i])
        if i >= width:
            h -= np.uint64(codes[i - width]) * top
        if i >= width - 1:
            mixed = (h ^ (h >> np.uint64(32))) * np.uint64(0xD6E8FEB86659FD93)
            if (mixed >> np.uint64(40)) % np.uint64(rate) == 0:
                positions[found] = i - width + 1
                hashes[found] = h
                found += 1
    return positions[:found].copy(), hashes[:found].copy()


@numba.njit(cache=True)
def _increasing(values):  # type: ignore[no-untyped-def]
    """Indices of a longest strictly increasing subsequence (patience sorting)."""
    n = len(values)
    tails = np.empty(n, np.int64)
    before = np.empty(n, np.int64)
    length = 0
    for i in range(n):
        low, high = 0, length
        while low < high:
            middle = (low + high) // 2
            if values[tails[middle]] < values[i]:
                low = middle + 1
            else:
                high = middle
        before[i] = tails[low - 1] if low > 0 else -1
        tails[low] = i
        length = max(length, low + 1)
    out = np.empty(length, np.int64)
    i = tails[length - 1] if length > 0 else -1
    for k in range(length - 1, -1, -1):
        out[k] = i
        i = before[i]
    return out


@numba.njit(cache=True)
def _thin(at_a, at_b, least):  # type: ignore[no-untyped-def]
    """Drop anchors that would make a block shorter than ``least`` in either text."""
    kept_a = np.empty(len(at_a), np.int64)
    kept_b = np.empty(len(at_b), np.int64)
    n = 0
    last_a = 0
    last_b = 0
    for i in range(len(at_a)):
        if at_a[i] - last_a >= least and at_b[i] - last_b >= least:
            last_a = at_a[i]
            last_b = at_b[i]
            kept_a[n] = last_a
            kept_b[n] = last_b
            n += 1
    return kept_a[:n].copy(), kept_b[:n].copy()


def warm() -> None:
    """Compile the kernels of this module."""
    text = "".join(map(str, range(EXACT_CHARS // 3)))
    similarity(text + "a", text + "b", 0.8)
