"""``kind: jsonl``: JSON Lines (and JSON arrays in .json files), plain or compressed."""

from __future__ import annotations

from collections.abc import Iterator

from dataflow_ops.layers.ingest.sources.framed import list_framed
from dataflow_ops.layers.ingest.sources.listed import LeftOut, SourceFile
from dataflow_ops.media import JSON, JSONL
from dataflow_ops.source_settings import SourceSettings


def list_files(source: SourceSettings, left_out: LeftOut) -> Iterator[SourceFile]:
    """Yield the JSONL and JSON files of a source."""
    return list_framed(source, left_out, JSONL, frozenset({JSON}))
