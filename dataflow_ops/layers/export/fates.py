"""What became of every document of a chunk: the version's lineage."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dataflow_ops import schema
from dataflow_ops.errors import ConservationError
from dataflow_ops.layers.export.coding import Words

Indices = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

EXPORTED, REJECTED, DUPLICATE, NOT_SAMPLED = "exported", "rejected", "duplicate", "not_sampled"


@dataclass(frozen=True, slots=True)
class ByRow:
    """A table looked up by its ``row`` column.

    Attributes:
        rows: ascending uint32.
        table: in the same order.

    """

    rows: npt.NDArray[np.uint32]
    table: pa.Table

    @classmethod
    def of(cls, table: pa.Table) -> ByRow:
        """Sort a table with a ``row`` column."""
        ordered = table.sort_by("row").combine_chunks()
        return cls(ordered["row"].to_numpy(), ordered)

    def between(self, first: int, last: int) -> tuple[npt.NDArray[np.int64], pa.Table]:
        """Rows ``first <= row < last``: their offsets from ``first``, and the table's part."""
        low, high = np.searchsorted(self.rows, [first, last])
        return self.rows[low:high].astype(np.int64) - first, self.table.slice(low, high - low)


class FateBuilder:
    """Fates of the documents of one batch, filled in by one call per kind of fate.

    Args:
        batch: the documents: ``doc_id``, ``source_id``, ``path``, ``position``, ``part``, ``url``.

    """

    def __init__(self, batch: pa.Table) -> None:
        n = batch.num_rows
        self._batch = batch
        self._text = {c: Words(n) for c in ("fate", "step", "rule", "shard")}
        self._numbers = {c: np.full(n, np.nan) for c in ("value", "bound", "similarity")}
        self._survivors: tuple[Indices, Any] = np.zeros(0, np.int64), pa.array([], schema.DOC_ID)
        self._copies = np.zeros(n, np.uint32)

    def put(self, at: Indices, fate: str, step: str, rule: Any = None) -> None:
        """Set the fate of rows that have none yet.

        Args:
            at: the rows.
            fate: what became of them.
            step: where.
            rule: column with the rule of each; None for no rule.

        Raises:
            ConservationError: one of them has a fate already.

        """
        if self._text["fate"].codes[at].any():
            raise ConservationError(f"scatter: a document is {fate} by {step}, but has another fate already")
        self._text["fate"].put(at, fate)
        self._text["step"].put(at, step)
        if rule is not None:
            self._text["rule"].put_each(at, rule)

    def numbers(self, at: Indices, **columns: Any) -> None:
        """Set ``value``, ``bound`` or ``similarity`` of rows; NaN is stored as null."""
        for name, values in columns.items():
            self._numbers[name][at] = values

    def survivors(self, at: Indices, ids: Any) -> None:
        """Set the survivor of rows, once for all of them; ``ids`` is a column of document ids."""
        self._survivors = at, ids

    def shards(self, at: Indices, numbers: npt.NDArray[np.int32], names: Mapping[int, str]) -> None:
        """Set the shard of rows by its number."""
        for number, name in names.items():
            self._text["shard"].put(at[numbers == number], name)

    def copies(self, at: Indices, counts: npt.NDArray[np.uint32]) -> None:
        """Set how many duplicates rows stand for."""
        self._copies[at] = counts

    def open(self) -> Bools:
        """Rows that have no fate yet."""
        blank: Bools = self._text["fate"].codes == 0
        return blank

    def table(self) -> pa.Table:
        """The finished fates.

        Raises:
            ConservationError: a document has none.

        """
        if self.open().any():
            raise ConservationError(f"scatter: {int(self.open().sum())} documents have no fate")
        at, ids = self._survivors
        places = np.full(self._batch.num_rows, -1, np.int64)
        places[at] = np.arange(len(at))
        made = {
            **{c: v.column() for c, v in self._text.items()},
            **{
                c: pa.array(v, schema.FATES.field(c).type, from_pandas=True) for c, v in self._numbers.items()
            },
            "survivor_id": ids.take(pa.array(places, mask=places < 0)),
            "copies": pa.array(self._copies),
        }
        return pa.table(
            [made.get(f.name, self._batch[f.name] if f.name not in made else None) for f in schema.FATES],
            schema=schema.FATES,
        )


def of_parse_rejects(rejects: pa.Table) -> pa.Table:
    """Fates of the records that gave no text."""
    builder = FateBuilder(rejects)
    every = np.arange(rejects.num_rows)
    builder.put(every, REJECTED, "parse", rejects["rule"])
    builder.numbers(every, value=rejects["value"].to_numpy(), bound=rejects["bound"].to_numpy())
    return builder.table()
