"""``kind: files``: any parsable file, one document each, but for files of records."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from dataflow_ops.layers.ingest.sources.jsonfiles import record_or_document
from dataflow_ops.layers.ingest.sources.listed import LeftOut, SourceFile
from dataflow_ops.layers.ingest.sources.roots import root_of
from dataflow_ops.layers.ingest.sources.walk import media_by_content, walk
from dataflow_ops.media import media_of
from dataflow_ops.source_settings import SourceSettings


def list_files(source: SourceSettings, left_out: LeftOut) -> Iterator[SourceFile]:
    """Yield files whose name or first bytes say what they are; binary data of no known kind is left out."""
    single = bool(root_of(source).single)
    for file, path in walk(source, left_out):
        if file.problem:
            yield file
            continue
        found = media_by_content(path, media_of(path.name))
        if not single:  # a JSON file that the job itself names is meant as records
            found = record_or_document(path, found, source)
        if found.media_type:
            yield replace(file, media_type=found.media_type)
        else:
            left_out["unknown_type"] += 1
