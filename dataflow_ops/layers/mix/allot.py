"""How many shards each partition of the output gets."""

from __future__ import annotations

from collections.abc import Sequence

from dataflow_ops.layers.mix.targets import largest_remainder

SHARD_BYTES = 64 << 20
"""UTF-8 text in a shard where the job does not say how many there are."""
MAX_AUTOMATIC = 1024


def shard_count(text_bytes: int, asked: int | None) -> int:
    """Shards of the whole version: as asked, else a power of two giving about 64 MB each, at most 1,024."""
    if asked is not None:
        return asked
    needed = -(-text_bytes // SHARD_BYTES)
    return min(MAX_AUTOMATIC, 1 << max(0, needed - 1).bit_length())


def allot(total: int, tokens: Sequence[int], rows: Sequence[int]) -> list[int]:
    """Share shards out over partitions in proportion to their tokens.

    Args:
        total: shards of the whole version; raised to the number of partitions where it is below.
        tokens: tokens of each partition.
        rows: rows of each partition, at least 1.

    Returns:
        Shards of each partition: at least 1, at most its rows.

    """
    shares = [1] * len(tokens)
    spare = max(0, total - len(tokens))
    # A partition that is full gives its part back; the others share it again.
    while spare > 0:
        active = [i for i in range(len(tokens)) if shares[i] < rows[i]]
        if not active:
            break
        weights = [max(1, tokens[i]) for i in active]
        for i, extra in zip(active, largest_remainder(spare, weights), strict=True):
            given = min(extra, rows[i] - shares[i])
            shares[i] += given
            spare -= given
    return shares
