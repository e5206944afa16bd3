"""How much a map step is handed at once, so that a batch takes about as long as a pause may wait for it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Final

import pyarrow as pa

TARGET_S: Final = 1.0
"""A batch should take no longer; on a machine that has just become busy it may take twice that."""
FIRST_BYTES: Final = 1 << 20
LEAST_BYTES: Final = 64 << 10
_STEP: Final = 4
"""Most by which one batch makes the next larger or smaller."""


class Pace:
    """Cuts tables by what the batches before took. Shapes no output: steps must not care how rows are cut.

    Args:
        max_rows: most rows in a batch.
        max_bytes: most payload bytes in a batch.
    """

    def __init__(self, max_rows: int, max_bytes: int) -> None:
        self._max_rows = max_rows
        self._max_bytes = max_bytes
        self.bytes = min(FIRST_BYTES, max_bytes)

    def cut(self, table: pa.Table) -> Iterator[pa.Table]:
        """Yield the table in pieces; the time until the next is asked for is what one took."""
        if table.num_rows == 0:
            yield table
            return
        per_row = max(1.0, table.nbytes / table.num_rows)
        at = 0
        while at < table.num_rows:
            piece = table.slice(at, max(1, min(self._max_rows, int(self.bytes / per_row))))
            began = time.monotonic()
            yield piece
            at += piece.num_rows
            self._took(piece.num_rows * per_row, time.monotonic() - began)

    def _took(self, size: float, seconds: float) -> None:
        fitting = size * TARGET_S / max(seconds, 1e-6)
        fitting = min(max(fitting, self.bytes / _STEP), self.bytes * _STEP)
        self.bytes = int(min(max(fitting, LEAST_BYTES), self._max_bytes))
