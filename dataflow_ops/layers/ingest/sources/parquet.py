"""``kind: parquet``: one document a row."""

from __future__ import annotations

from collections.abc import Iterator

from dataflow_ops.layers.ingest.sources.framed import list_framed
from dataflow_ops.layers.ingest.sources.listed import LeftOut, SourceFile
from dataflow_ops.media import PARQUET
from dataflow_ops.source_settings import SourceSettings


def list_files(source: SourceSettings, left_out: LeftOut) -> Iterator[SourceFile]:
    """Yield the Parquet files of a source."""
    return list_framed(source, left_out, PARQUET)
