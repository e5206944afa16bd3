"""Shards: each group's rows, shuffled by their fixed order, into finished files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from dataflow_ops.layers.export.columns import EXPORTED, shard_name
from dataflow_ops.layers.export.exporters import EXPORTERS
from dataflow_ops.layers.export.sort import sorted_shards
from dataflow_ops.protocols import Input, OutputSpec, Partitioning, Side
from dataflow_ops.settings import JobSettings
from dataflow_ops.values import Counts, FileOut, StepResult

_SHARE = 5
"""A fifth of the memory budget is held as rows: sorting doubles it, writing adds a row group."""


class ExportStep:
    """Writes the shards of one group. A shard without rows is not written.

    Args:
        settings: the job.

    """

    name = "export"
    layer = "export"
    partitioned_by: Partitioning = "shard_group"
    inputs = (Input("scatter", "rows", "slice"), Input("plan", "places", "all"))
    outputs: tuple[OutputSpec, ...] = ()
    version = 1

    def __init__(self, settings: JobSettings) -> None:
        self._format = settings.output.format
        self._exporter = EXPORTERS[self._format]
        self._keys = settings.output.partition_by

    def fingerprint(self) -> Mapping[str, object]:
        """See :class:`~dataflow_ops.protocols.Step`; pyarrow and zstandard write the bytes."""
        import zstandard

        return {
            "version": self.version,
            "format": self._format,
            "exporter": self._exporter.VERSION,
            "partition_by": list(self._keys),
            "pyarrow": pa.__version__,
            "zstd": ".".join(str(n) for n in zstandard.ZSTD_VERSION),
        }

    def run(self, side: Side, start: int) -> Iterator[StepResult]:
        """See :class:`~dataflow_ops.protocols.RunStep`: one result per shard."""
        partitions = side.table("plan", "places").to_pylist()
        tables = (table for _, table in side.tables("scatter", "rows"))
        written = False
        for shard, rows in sorted_shards(tables, side.memory_budget // _SHARE, side.scratch):
            yield self._shard(shard, rows, partitions, side.scratch)
            written = True
        if not written:
            yield StepResult()

    def _shard(
        self, shard: int, tables: Iterator[pa.Table], partitions: list[dict[str, Any]], scratch: Path
    ) -> StepResult:
        """Write one shard into the scratch folder."""
        place = next(p for p in partitions if p["first_shard"] <= shard < p["first_shard"] + p["shards"])
        name = f"{shard_name(place['path'], shard, place['total_shards'])}.{self._exporter.SUFFIX}"
        path = scratch / f"out-{shard:05d}.{self._exporter.SUFFIX}"
        tally = _Tally()
        self._exporter.write(path, tally.watch(tables), EXPORTED)
        attributes = {
            "shard": shard,
            "tokens": tally.tokens,
            "documents": tally.documents,
            "partition": {k: place[k] for k in self._keys},
            "cells": [[d, lang, n, t] for (d, lang), (n, t) in sorted(tally.cells.items())],
        }
        return StepResult(
            counts=Counts(
                documents_in=tally.rows, kept=tally.rows, documents_out=tally.rows, tokens_out=tally.tokens
            ),
            files=(FileOut(f"shard/{name}", path, tally.rows, attributes),),
        )


class _Tally:
    """Counts rows on their way to the exporter.

    Attributes:
        rows: all rows.
        documents: distinct documents (rows of repetition 0).
        tokens: over all rows.
        cells: (domain, language) -> (rows, tokens).

    """

    def __init__(self) -> None:
        self.rows = self.documents = self.tokens = 0
        self.cells: dict[tuple[str, str], tuple[int, int]] = {}

    def watch(self, tables: Iterator[pa.Table]) -> Iterator[pa.Table]:
        """Pass tables on without their routing columns."""
        for table in tables:
            self.rows += table.num_rows
            self.documents += pc.sum(pc.equal(table["repetition"], 0)).as_py() or 0
            self.tokens += pc.sum(table["tokens"]).as_py() or 0
            cells = table.group_by(["domain", "language"]).aggregate([("tokens", "sum"), ("tokens", "count")])
            for cell in cells.to_pylist():
                key = cell["domain"], cell["language"]
                before = self.cells.get(key, (0, 0))
                self.cells[key] = before[0] + cell["tokens_count"], before[1] + cell["tokens_sum"]
            yield table.select(EXPORTED.names)
