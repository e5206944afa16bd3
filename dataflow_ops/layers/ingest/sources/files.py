"""``kind: files``: any parsable file, one document each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from dataflow_ops.layers.ingest.sources.listed import LeftOut, SourceFile
from dataflow_ops.layers.ingest.sources.walk import media_by_content, walk
from dataflow_ops.media import media_of
from dataflow_ops.settings import SourceSettings


def list_files(source: SourceSettings, left_out: LeftOut) -> Iterator[SourceFile]:
    """Yield files whose name or first bytes say what they are; binary data of no known kind is left out."""
    for file, path in walk(source, left_out):
        if file.problem:
            yield file
            continue
        media_type = media_by_content(path, media_of(path.name)).media_type
        if media_type:
            yield replace(file, media_type=media_type)
        else:
            left_out["unknown_type"] += 1
