"""Arrow string columns as numpy views, without a copy."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

U8 = npt.NDArray[np.uint8]
U32 = npt.NDArray[np.uint32]
U64 = npt.NDArray[np.uint64]
I64 = npt.NDArray[np.int64]
F64 = npt.NDArray[np.float64]

ix = np.uint64
"""Marks an index in compiled code as not negative. numba lets negative ones count from the end, which costs
three instructions at every access and keeps the loads of neighbouring bytes from becoming one."""


def is_text(kind: Any) -> bool:
    """Whether a pyarrow type is ``string`` or ``large_string``."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def string_buffers(column: Any) -> tuple[U8, I64]:
    """UTF-8 bytes and offsets of a string column.

    Args:
        column: pyarrow Array or ChunkedArray of (large_)string or (large_)binary, nulls read as empty.

    Returns:
        ``(data, offsets)``: uint8 bytes, and int64 offsets of shape ``(n + 1,)`` into them; row i is
        ``data[offsets[i]:offsets[i + 1]]``. Views on Arrow's memory where the column is one chunk of
        ``large_string``; keep the column alive while using them.
    """
    wide = pa.large_string() if is_text(column.type) else pa.large_binary()
    # Chunk by chunk before they are joined: together they may be longer than 32-bit offsets reach (2 GiB).
    column = column.cast(wide)
    if isinstance(column, pa.ChunkedArray):
        column = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    if isinstance(column, pa.ChunkedArray):  # combine_chunks of an empty column
        column = pa.array([], wide)
    _, offsets, data = column.buffers()
    if offsets is None or len(column) == 0:
        return np.empty(0, np.uint8), np.zeros(1, np.int64)
    view = np.frombuffer(offsets, np.int64)[column.offset : column.offset + len(column) + 1]
    body = np.frombuffer(data, np.uint8) if data is not None and data.size else np.empty(0, np.uint8)
    return body, view


def eights(data: U8) -> U64:
    """Eight bytes from every byte on as one number, low byte first: a read-only view, nothing is copied.

    Args:
        data: bytes, C-contiguous.

    Returns:
        uint64 of shape ``(max(0, n - 7),)``, overlapping.
    """
    n = max(0, data.size - 7)
    if n == 0:
        # An array without elements may not reach over the buffer's end.
        wide = np.ndarray((0,), "<u8", np.zeros(9, np.uint8), 1, (1,))
    else:
        wide = np.ndarray((n,), "<u8", data, 0, (1,))
    wide.flags.writeable = False
    return wide


_HEX = np.frombuffer("".join(f"{b:02x}" for b in range(256)).encode(), "<u2")
"""The two digits of each byte as they lie in memory."""


def hex_strings(column: Any) -> Any:
    """Hexadecimal digits of fixed-size binary values.

    Args:
        column: pyarrow Array or ChunkedArray of ``binary(k)``, no nulls.

    Returns:
        A pyarrow array of strings of ``2 k`` lower-case digits.
    """
    if isinstance(column, pa.ChunkedArray):
        column = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    n, width = len(column), column.type.byte_width
    values = column.buffers()[1]
    if not n or values is None:
        return pa.array([""] * n, pa.string())
    data = np.frombuffer(values, np.uint8)[column.offset * width : (column.offset + n) * width]
    offsets = np.arange(n + 1, dtype=np.int32) * (2 * width)
    return pa.StringArray.from_buffers(n, pa.py_buffer(offsets), pa.py_buffer(_HEX[data]))
