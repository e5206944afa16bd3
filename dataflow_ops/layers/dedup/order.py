"""Survivor order: which of several duplicates stays. Never arrival.

Documents of a domain named in ``dedup.priority`` first, in its order; then the longest key text, the
shortest stored text, the smallest document id. All of it is packed into two numbers that sort ascending,
so that every step sorts alike; equal pairs (lengths equal and the first eight bytes of the id too) fall
back on (chunk, row).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from dataflow_ops.kernels.arrow import I64, U8, U64
from dataflow_ops.kernels.digest import leading_u64
from dataflow_ops.settings import JobSettings

_MAX_LENGTH = (1 << 28) - 1  # lengths above 268 million count as equal
_MAX_RANK = 255

BASE = 0
"""``order_hi`` of documents of the version that an incremental run builds on. No other document has it, and
none comes before: they stay, whatever the survivor order says."""


def source_ranks(settings: JobSettings) -> dict[str, int]:
    """Rank of each source by the place of its domain in ``dedup.priority``; unnamed domains come last."""
    places = {domain: i for i, domain in enumerate(settings.dedup.priority)}
    return {s.source_id: min(places.get(s.domain, len(places)), _MAX_RANK) for s in settings.sources}


def pack(ranks: I64, key_chars: I64, stored_bytes: I64, doc_ids: U8) -> tuple[U64, U64]:
    """Order numbers of documents.

    Args:
        ranks: int64 in ``0 … 255``.
        key_chars: int64, characters of the key text.
        stored_bytes: int64, UTF-8 bytes of the stored text.
        doc_ids: uint8, shape ``(n, 16)``.

    Returns:
        ``(order_hi, order_lo)``: uint64; the smaller pair survives.
    """
    length = _MAX_LENGTH - np.minimum(key_chars, _MAX_LENGTH)
    stored = np.minimum(stored_bytes, _MAX_LENGTH)
    high: U64 = (ranks.astype(np.uint64) << np.uint64(56)) | (length.astype(np.uint64) << np.uint64(28))
    high |= stored.astype(np.uint64)
    return high, leading_u64(doc_ids)


def key_chars(high: U64) -> I64:
    """Characters of the key texts behind ``order_hi`` (see :func:`pack`), up to 268 million."""
    return _MAX_LENGTH - ((high >> np.uint64(28)) & np.uint64(_MAX_LENGTH)).astype(np.int64)


def sort(high: U64, low: U64, chunk: U64, row: npt.NDArray[np.uint32], *before: Any) -> I64:
    """Indices that put documents in survivor order, within groups of equal ``before``, last one first."""
    return np.lexsort((row, chunk, low, high, *before))
