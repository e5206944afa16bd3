"""Row groups at fixed places: however the rows arrive, the same groups come out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa

from dataflow_ops.kernels.arrow import string_buffers

MAX_ROWS = 10_000
MAX_BYTES = 64 << 20
"""UTF-8 bytes of the ``text`` column in a row group."""


def row_groups(
    tables: Iterable[pa.Table], max_rows: int = MAX_ROWS, max_bytes: int = MAX_BYTES
) -> Iterator[pa.Table]:
    """Cut a stream of rows into row groups.

    A group ends before the row that would make it exceed either bound; a single longer text is a group
    of its own. The cuts depend on the rows alone, not on the tables they came in.

    Args:
        tables: rows with a ``text`` column, in their final order.
        max_rows: most rows of a group.
        max_bytes: most bytes of text of a group.

    Yields:
        Tables of one chunk per column, none empty.

    """
    held: list[pa.Table] = []
    rows = size = 0
    for table in tables:
        _, offsets = string_buffers(table["text"])
        start = 0
        while start < table.num_rows:
            # The last row that still fits, counted from what is held already.
            fits = int(np.searchsorted(offsets, offsets[start] + max_bytes - size, side="right")) - 1
            end = min(fits, start + max_rows - rows, table.num_rows)
            if end <= start and rows == 0:
                end = start + 1
            if end > start:
                held.append(table.slice(start, end - start))
                rows += end - start
                size += int(offsets[end] - offsets[start])
                start = end
            if start < table.num_rows:
                yield pa.concat_tables(held).combine_chunks()
                held, rows, size = [], 0, 0
    if rows:
        yield pa.concat_tables(held).combine_chunks()
