"""``kind: warc``: web archives, plain or compressed, one document a response."""

from __future__ import annotations

from collections.abc import Iterator

from dataflow_ops.layers.ingest.sources.framed import list_framed
from dataflow_ops.layers.ingest.sources.listed import LeftOut, SourceFile
from dataflow_ops.media import WARC
from dataflow_ops.source_settings import SourceSettings


def list_files(source: SourceSettings, left_out: LeftOut) -> Iterator[SourceFile]:
    """Yield the web archives of a source."""
    return list_framed(source, left_out, WARC)
