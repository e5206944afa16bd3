"""Document ids: search in columns of 16 bytes, and hashes for seeded draws."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dataflow_ops.errors import ConfigError

_HEX = re.compile(r"[0-9a-f]{4,32}")


def is_id(text: str) -> bool:
    """Whether a text can be a document id or the beginning of one: 4 to 32 hex digits."""
    return _HEX.fullmatch(text.strip().lower()) is not None


def id_matrix(column: Any) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.bool_]]:
    """A ``binary(16)`` column as bytes.

    Returns:
        ``(bytes, present)``: uint8 of shape ``(n, 16)``, and which rows are not null (bool, ``(n,)``).

    """
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if isinstance(column, pa.ChunkedArray) or len(column) == 0:
        return np.empty((0, 16), np.uint8), np.empty(0, np.bool_)
    present = np.asarray(column.is_valid())
    data = column.buffers()[1]
    if data is None:
        return np.zeros((len(column), 16), np.uint8), present
    flat = np.frombuffer(data, np.uint8)[16 * column.offset : 16 * (column.offset + len(column))]
    return flat.reshape(-1, 16), present


def rows_with_prefix(column: Any, prefix: str) -> npt.NDArray[np.int64]:
    """Row numbers whose id begins with ``prefix`` (hex digits; all 32 ask for one id exactly)."""
    matrix, present = id_matrix(column)
    whole = bytes.fromhex(prefix[: len(prefix) // 2 * 2])
    hit = present.copy()
    for i, byte in enumerate(whole):
        hit &= matrix[:, i] == byte
    if len(prefix) % 2:
        hit &= matrix[:, len(whole)] >> 4 == int(prefix[-1], 16)
    return np.flatnonzero(hit)


def draw_order(column: Any, seed: int) -> npt.NDArray[np.uint64]:
    """A seeded pseudo-random number per document: splitmix64's finaliser over half the id and the seed.

    The ids are hashes already, so half of one is enough; ties are the caller's to break.

    Returns:
        uint64 of shape ``(n,)``.

    """
    matrix, _ = id_matrix(column)
    x = np.ascontiguousarray(matrix[:, :8]).view(np.uint64).ravel().copy()
    # One round over the seed first: neighbouring seeds must not give neighbouring orders.
    x ^= _mix(np.array([seed & 0xFFFFFFFFFFFFFFFF], np.uint64) + np.uint64(0x9E3779B97F4A7C15))
    return _mix(x)


def _mix(x: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def full_id(text: str) -> str:
    """A document id or prefix in its canonical form.

    Raises:
        ConfigError: it is not 4 to 32 hex digits.

    """
    text = text.strip().lower()
    if not is_id(text):
        raise ConfigError(f"{text!r} is no document id: 32 hex digits, or at least the first 4 of them")
    return text
