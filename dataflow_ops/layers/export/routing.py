"""Who is drawn, how often, and into which shard: the sampling plan applied to labelled documents."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dataflow_ops.errors import ConservationError
from dataflow_ops.layers.export.coding import coded
from dataflow_ops.layers.export.columns import shard_name

U64 = npt.NDArray[np.uint64]
I32 = npt.NDArray[np.int32]
DrawKey = Callable[[Any, int], U64]
"""``(ids, seed) -> uint64``: the hash that the plan was made with."""

_KEYS = {
    "domain": "domain",
    "language": "language",
    "quality_level": "quality_level",
    "kind": "kind",
    "source": "source_id",
}


@dataclass(frozen=True, slots=True)
class Routed:
    """Rows of the output, ascending by label row, then repetition.

    Attributes:
        label: index of the label of each output row; int64.
        repetition: int32.
        shard: number of the shard; int32.
        order: place in the shuffled output; uint64.
        epoch_start: int32.
        epoch_end: int32.

    """

    label: npt.NDArray[np.int64]
    repetition: I32
    shard: I32
    order: U64
    epoch_start: I32
    epoch_end: I32


class Router:
    """The plan in a form that answers for whole columns.

    Args:
        domains: ``plan.draw`` of the chunk.
        partitions: ``plan.places``.
        draw_key: the hash of the plan.
        seed: ``mixing.seed``.
        groups: number of shard groups.

    """

    def __init__(
        self, domains: pa.Table, partitions: pa.Table, draw_key: DrawKey, seed: int, groups: int
    ) -> None:
        self._domains: dict[str, Mapping[str, Any]] = {d["domain"]: d for d in domains.to_pylist()}
        rows = partitions.to_pylist()
        self._by = tuple(k for k in _KEYS if any(r[k] for r in rows))
        self._partitions = {tuple(r[k] for k in self._by): r for r in rows}
        self._draw_key, self._seed, self._groups = draw_key, seed, groups
        self.total_shards = int(rows[0]["total_shards"]) if rows else 0
        self._shard_paths = [(int(r["first_shard"]), str(r["path"])) for r in rows]

    def route(self, labels: pa.Table) -> Routed:
        """Draw and place documents.

        Args:
            labels: rows of ``label.labels`` that label itself let through.

        Raises:
            ConservationError: a drawn document's partition is not in the plan.

        """
        draw = self._draw_key(labels["doc_id"], self._seed)
        times = np.zeros(len(draw), np.int64)
        epochs = np.zeros((len(draw), 2), np.int32)
        codes, names = coded(labels["domain"])
        for code in sorted(range(len(names)), key=lambda c: str(names[c])):
            plan, mask = self._domains[names[code]], codes == code
            times[mask] = plan["full_passes"]
            if plan["threshold"] is not None:
                times[mask] += draw[mask] <= np.uint64(plan["threshold"])
            epochs[mask] = plan["epoch_start"], plan["epoch_end"]
        index = np.repeat(np.arange(len(draw)), times)
        # 0, 1, … within each document's run of rows.
        starts = np.repeat(np.cumsum(times) - times, times)
        repetition = (np.arange(len(index)) - starts).astype(np.int32)
        first, count = self._ranges(labels, times)
        order = self._order(labels["doc_id"], index, repetition)
        # The upper 32 bits times the number of shards, shifted down: an even cut without a division.
        inside = ((order >> np.uint64(32)) * count[index].astype(np.uint64)) >> np.uint64(32)
        shard = first[index] + inside.astype(np.int32)
        return Routed(index, repetition, shard, order, epochs[index, 0], epochs[index, 1])

    def group(self, shard: I32) -> npt.NDArray[np.int64]:
        """Shard group of each shard number: contiguous ranges over all shards."""
        return shard.astype(np.int64) * self._groups // max(1, self.total_shards)

    def name(self, shard: int) -> str:
        """A shard's name without the suffix."""
        path = next(p for f, p in reversed(self._shard_paths) if f <= shard)
        return shard_name(path, shard, self.total_shards)

    def _order(self, ids: Any, index: npt.NDArray[np.int64], repetition: I32) -> U64:
        """Place in the shuffled output: independent of the draw and other for each repetition.

        A draw keeps documents with small keys; spread by those they would fill the first shards only.
        """
        order = np.zeros(len(index), np.uint64)
        for number in np.unique(repetition):
            mask = repetition == number
            order[mask] = self._draw_key(ids, ((self._seed + 1) << 20) + int(number) + 1)[index[mask]]
        return order

    def _ranges(self, labels: pa.Table, times: npt.NDArray[np.int64]) -> tuple[I32, I32]:
        """First shard and number of shards of each document's partition."""
        first, count = np.zeros(len(times), np.int32), np.zeros(len(times), np.int32)
        drawn = np.flatnonzero(times)
        if not len(drawn):
            return first, count
        cell = np.zeros(len(times), np.int64)  # one number for each combination of keys
        columns = [coded(labels[_KEYS[k]]) for k in self._by]
        for codes, names in columns:
            cell = cell * len(names) + codes
        _, examples, which = np.unique(cell[drawn], return_index=True, return_inverse=True)
        places = np.zeros((len(examples), 2), np.int32)
        for number, example in enumerate(drawn[examples]):
            values = tuple(names[codes[example]] for codes, names in columns)
            row = self._partitions.get(values)
            if row is None:
                raise ConservationError(
                    f"scatter: no partition in the plan for {dict(zip(self._by, values, strict=True))}"
                )
            places[number] = row["first_shard"], row["shards"]
        first[drawn], count[drawn] = places[which].T
        return first, count
