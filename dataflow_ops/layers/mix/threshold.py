"""The draw of one domain with bounded memory: which documents come before the target is met.

Two passes over the labels: the first counts tokens by the upper 16 bits of the draw key, which names the
one bucket in which the target is reached; the second brings that bucket's documents, and only they are
sorted. The result is exact.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

U64 = npt.NDArray[np.uint64]
I64 = npt.NDArray[np.int64]

BUCKETS = 1 << 16
_SHIFT = np.uint64(48)


@dataclass(frozen=True, slots=True)
class Cut:
    """Where a domain's draw ends.

    Attributes:
        full_passes: how often every document is given.
        rest: tokens still to be drawn after that, by draw order; 0: none.
        bucket: bucket of the draw key in which ``rest`` is reached; -1 where it is 0.
        before: tokens in the buckets below it.

    """

    full_passes: int
    rest: int
    bucket: int
    before: int


def bucket_of(draw: U64) -> npt.NDArray[np.int64]:
    """Upper 16 bits of draw keys, as indices."""
    return (draw >> _SHIFT).astype(np.int64)


def cut(histogram: I64, target: int | None, max_repetition: int) -> Cut:
    """Find the bucket in which a target is reached.

    Args:
        histogram: tokens by bucket, int64 of shape ``(BUCKETS,)``.
        target: tokens to draw; None takes every document once.
        max_repetition: how often a document may be given.

    """
    supply = int(histogram.sum())
    if target is None:
        return Cut(1, 0, -1, 0)
    if supply == 0 or target <= 0:
        return Cut(0, 0, -1, 0)
    full = min(target // supply, max_repetition)
    rest = target - full * supply if full < max_repetition else 0
    if rest == 0:
        return Cut(full, 0, -1, 0)
    sums = np.cumsum(histogram)
    bucket = int(np.searchsorted(sums, rest, side="left"))
    return Cut(full, rest, bucket, int(sums[bucket] - histogram[bucket]))


def threshold(found: Cut, draw: U64, tokens: I64) -> int | None:
    """The last draw key that is taken: that of the document which reaches the target.

    Args:
        found: the cut.
        draw: draw keys of the bucket's documents, in any order.
        tokens: their tokens.

    Returns:
        Documents at or below it are drawn; None where the cut has no rest.

    """
    if found.rest == 0:
        return None
    order = np.argsort(draw, kind="stable")
    sums = np.cumsum(tokens[order]) + found.before
    return int(draw[order][np.searchsorted(sums, found.rest, side="left")])
