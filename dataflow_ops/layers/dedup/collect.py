"""Step ``collect``: of a block's key texts those that ``confirm`` has to compare, once more and by component.

Most components are stars: every member has a verified edge to the best one, and nothing is left to compare.
The others' texts lie scattered over the blocks. Each block is read once, whatever is wanted of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa

from dataflow_ops.errors import ConservationError
from dataflow_ops.kernels.arrow import I64
from dataflow_ops.layers.dedup import base, columns, identity
from dataflow_ops.protocols import Input, OutputSpec, Partitioning, Side
from dataflow_ops.settings import JobSettings
from dataflow_ops.values import StepResult


class CollectStep:
    """Reduce over a bucket block. Output ``texts``, sliced by root prefix."""

    name = "collect"
    layer = "dedup"
    partitioned_by: Partitioning = "block"

    def __init__(self, settings: JobSettings) -> None:
        self._settings = settings
        self._sources = ("recall", "gather") if base.has_base(settings) else ("gather",)
        self._schema = columns.collected_schema(settings.dedup.minhash.signature_size)
        self.inputs: tuple[Input, ...] = (
            Input("unite", "asked", "slice"),
            *(Input(step, "texts", "slice", tuple(self._schema.names)) for step in self._sources),
        )
        self.outputs = (OutputSpec("texts", self._schema, "root_prefix"),)

    def fingerprint(self) -> Mapping[str, object]:
        """What shapes key texts and the signatures beside them."""
        return {"step": 1, **identity.signature_fingerprint(self._settings)}

    def run(self, side: Side, start: int) -> Iterator[StepResult]:
        """Give the texts asked for, one piece of the block in memory at a time.

        Raises:
            FingerprintMismatch: signatures of different making came together.
            ConservationError: a text that is asked for is not in this block.
        """
        asked = side.table("unite", "asked")
        left = asked.num_rows
        yield StepResult()
        for step in self._sources if left else ():
            for partition, texts in side.tables(step, "texts"):
                identity.check_signatures(
                    identity.signature_id(self._settings), texts, f"{step} of {partition}"
                )
                rows, wanted = _found(texts, asked)
                left -= len(rows)
                if len(rows):
                    yield self._taken(side, texts, rows, columns.numbers(asked, "range")[wanted])
        if left:
            raise ConservationError(f"block {side.partition}: {left} of {asked.num_rows} texts are not there")

    def _taken(self, side: Side, texts: pa.Table, rows: I64, ranges: np.ndarray) -> StepResult:
        table = texts.select(self._schema.names).take(pa.array(rows))
        slices = columns.prefix_slices(ranges.astype(np.int64), side.numbers.root_prefixes)
        return StepResult(
            outputs={"texts": table.append_column("slice", slices)}, metrics={"texts_collected": len(rows)}
        )


def _found(texts: pa.Table, asked: pa.Table) -> tuple[I64, I64]:
    """Where rows that are asked for stand in ``texts``, ascending, and in ``asked``."""
    here, wanted = columns.address_ids(
        *((columns.numbers(t, "chunk"), columns.numbers(t, "row")) for t in (texts, asked))
    )
    _, rows, places = np.intersect1d(here, wanted, assume_unique=True, return_indices=True)
    by_row = np.argsort(rows)
    return rows[by_row].astype(np.int64), places[by_row].astype(np.int64)
