"""Bloom filters of what a run has signed: later runs ask them first, and look up in the tables what they let
through.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from dataflow_ops.kernels.arrow import U64
from dataflow_ops.kernels.bloom import Bloom
from dataflow_ops.layers.dedup.columns import FILTERS
from dataflow_ops.protocols import Side
from dataflow_ops.settings import JobSettings

GROWTH = 4
"""A filter has room for so many times the keys that it holds, within the job's capacity: so it lets fewer
through by mistake."""


class Filling:
    """The filter of one slice, while its keys come, and what is to be counted about it.

    Args:
        n: keys that will come; the same one may come again.
        ranges: into how many slices all keys are cut.
        each: keys of a document.
        settings: the job: its capacity, in documents.
    """

    def __init__(self, n: int, ranges: int, each: int, settings: JobSettings) -> None:
        self._n = n
        self._share = -(-settings.dedup.global_bloom.capacity * each // ranges)
        self._made = Bloom.sized(max(n, min(self._share, GROWTH * n)))

    def add(self, keys: U64) -> None:
        """Add keys: uint64 of shape ``(m,)``."""
        self._made.add(keys)

    def done(self) -> tuple[pa.Table, dict[str, float]]:
        """``(one row of FILTERS, metrics)``: ``filters_resized`` where the slice holds more than its share of
        the capacity. The filter is made larger then.
        """
        bits = self._made.as_array()
        table = pa.table({"keys": pa.array([self._n], pa.int64()), "bits": bits}, schema=FILTERS)
        return table, {"filters_resized": 1.0} if self._n > self._share else {}


def let_through(side: Side, step: str, kind: str, wanted: U64) -> U64:
    """Those keys that a version below may hold; all of them where not every version has a filter.

    Args:
        side: of a step that declares this kind as a pointer.
        step: under which the version below stands.
        kind: of its filters.
        wanted: uint64, ascending and each once.
    """
    found: np.ndarray[Any, np.dtype[np.bool_]] | None = None
    for table in side.slices(step, kind, side.partition):
        for bits in table["bits"]:
            perhaps = Bloom.of_bytes(bits.as_buffer()).may_contain(wanted)
            found = perhaps if found is None else found | perhaps
    return wanted if found is None else wanted[found]
