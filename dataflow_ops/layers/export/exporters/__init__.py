"""Formats of the training set. A format is one small module and one line in the table below."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Protocol

import pyarrow as pa

from dataflow_ops.layers.export.exporters import jsonl_zst, parquet


class Exporter(Protocol):
    """Writes one shard, and reads it back. Modules are exporters."""

    SUFFIX: str
    """File name suffix without the dot; ``output.format`` names the exporter by it."""
    VERSION: int
    """Raised whenever equal rows give other bytes."""

    def write(self, path: Path, tables: Iterable[pa.Table], schema: pa.Schema) -> None:
        """Write rows in the order given, in bounded memory; the bytes depend on the rows alone."""

    def read(self, path: Path) -> Iterator[pa.Table]:
        """The rows again, in order."""


EXPORTERS: Mapping[str, Exporter] = {
    "parquet": parquet,
    "jsonl.zst": jsonl_zst,
}
"""``output.format`` -> exporter."""
