"""Documents by address: ``(chunk, row)`` as one number, and where it stands among those that are known."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dataflow_ops.kernels.arrow import I64, U64
from dataflow_ops.layers.dedup import columns

_ROW_BITS = 32


def numbered(chunks: U64, chunk: U64, row: npt.NDArray[np.uint32]) -> I64:
    """One number per address, ascending by chunk, then row.

    Args:
        chunks: all that occur, ascending, fewer than 2**31; others give numbers that mean nothing.
        chunk: of each address.
        row: of each address.
    """
    return (np.searchsorted(chunks, chunk).astype(np.int64) << _ROW_BITS) | row.astype(np.int64)


@dataclass(frozen=True, slots=True)
class Known:
    """Addresses to look up in; 8 bytes each.

    Attributes:
        chunks: of them, ascending.
        ids: by :func:`numbered`, ascending and each once.
    """

    chunks: U64
    ids: I64

    @classmethod
    def of(cls, chunk: U64, row: npt.NDArray[np.uint32]) -> Known:
        """Those of some rows."""
        chunks = columns.distinct(chunk)
        return cls(chunks, np.unique(np.sort(numbered(chunks, chunk, row))))

    def find(self, chunk: U64, row: npt.NDArray[np.uint32]) -> tuple[I64, npt.NDArray[np.bool_]]:
        """Place of each address in ``ids``, and whether it is there at all."""
        if not len(self.ids):
            return np.zeros(len(chunk), np.int64), np.zeros(len(chunk), np.bool_)
        wanted = numbered(self.chunks, chunk, row)
        at = np.minimum(np.searchsorted(self.ids, wanted), len(self.ids) - 1)
        # A chunk that is not known has the number of another.
        same = self.chunks[np.minimum(wanted >> _ROW_BITS, len(self.chunks) - 1)] == chunk
        return at, (self.ids[at] == wanted) & same
