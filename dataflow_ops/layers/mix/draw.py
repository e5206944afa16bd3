"""The order in which documents are drawn: a hash of seed and document id."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

U64 = npt.NDArray[np.uint64]

DRAW_VERSION = 1
_GOLDEN = 0x9E3779B97F4A7C15


def mix64(values: U64) -> U64:
    """Finaliser of SplitMix64 (Steele, Lea and Flood 2014): a bijection of uint64, all bits mixed."""
    z: U64 = values ^ (values >> np.uint64(30))
    z = z * np.uint64(0xBF58476D1CE4E5B9)
    z = z ^ (z >> np.uint64(27))
    z = z * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def draw_key(doc_ids: Any, seed: int) -> U64:
    """Draw order of documents: the smaller, the earlier.

    Depends on the seed and on the document alone: neither on the domain's other documents nor on where
    it lies, so that a larger target draws a superset.

    Args:
        doc_ids: Array or ChunkedArray of ``binary(16)`` without nulls, n rows.
        seed: ``mixing.seed``.

    Returns:
        uint64 of shape ``(n,)``, uniform.

    """
    words = id_words(doc_ids)
    start = mix64(np.array([(seed * _GOLDEN + 1) % 2**64], np.uint64))
    return mix64(words[:, 1] ^ mix64(words[:, 0] ^ start))


def id_words(doc_ids: Any) -> U64:
    """The ids as two little-endian words each: uint64 of shape ``(n, 2)``."""
    column = doc_ids.combine_chunks() if isinstance(doc_ids, pa.ChunkedArray) else doc_ids
    if isinstance(column, pa.ChunkedArray) or len(column) == 0:
        return np.empty((0, 2), np.uint64)
    body = np.frombuffer(column.buffers()[1], "<u8")
    return body[column.offset * 2 : (column.offset + len(column)) * 2].reshape(-1, 2)
