"""Scores of the documents that passed filter and dedup. Without a model: none, and said so."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from dataflow_ops import schema
from dataflow_ops.protocols import Input, OutputSpec, Partitioning, Side
from dataflow_ops.settings import JobSettings
from dataflow_ops.values import Counts, StepResult

NOT_SCORED = "not scored"


class ScoreStep:
    """One row per survivor: kept by ``filter`` and not removed as a duplicate.

    Args:
        settings: the job; reserved for the model's bounds.

    """

    name = "score"
    layer = "score"
    partitioned_by: Partitioning = "chunk"
    inputs = (Input("filter", "verdicts", "aligned", ("kept",)), Input("confirm", "removed", "slice"))
    outputs = (OutputSpec("scores", schema.SCORES),)
    version = 1

    def __init__(self, settings: JobSettings) -> None:
        self._settings = settings

    def fingerprint(self) -> Mapping[str, object]:
        """See :class:`~dataflow_ops.protocols.Step`."""
        return {"version": self.version, "model": NOT_SCORED}

    def open(self, side: Side) -> object:
        """Rows of the chunk that were removed as duplicates: ascending uint32, shape (n,)."""
        return np.unique(side.table("confirm", "removed")["row"].to_numpy())

    def process(self, batch: pa.Table, first_row: int, state: object) -> StepResult:
        """See :class:`~dataflow_ops.protocols.MapStep`."""
        kept = batch["kept"].to_numpy()
        rows = np.arange(first_row, first_row + batch.num_rows, dtype=np.uint32)
        unique = ~np.isin(rows, np.asarray(state))
        survivors = rows[kept & unique]
        n = len(survivors)
        scores = pa.table(
            [pa.array(survivors), pa.nulls(n, pa.float32()), pa.array([NOT_SCORED] * n, pa.string())],
            schema=schema.SCORES,
        )
        skipped = {"rejected_before": int((~kept).sum()), "duplicate": int((kept & ~unique).sum())}
        counts = Counts(documents_in=batch.num_rows, kept=n, skipped=skipped, documents_out=n)
        return StepResult(outputs={"scores": scores}, counts=counts)
