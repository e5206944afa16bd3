"""Kinds whose files hold many records: only files of that format are taken, whatever else lies beside."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from dataflow_ops.layers.ingest.sources.listed import LeftOut, SourceFile
from dataflow_ops.layers.ingest.sources.roots import root_of
from dataflow_ops.layers.ingest.sources.walk import walk
from dataflow_ops.source_settings import SourceSettings


def list_framed(
    source: SourceSettings, left_out: LeftOut, media_type: str, also: frozenset[str] = frozenset()
) -> Iterator[SourceFile]:
    """Yield files of one format.

    A file that the job names itself, or whose name a pattern of ``include`` takes, is read as that format
    whatever its name ends in.

    Args:
        source: its settings.
        left_out: reasons are counted here.
        media_type: the kind's format.
        also: formats that the kind's reader takes as well; they keep their own type.
    """
    root = root_of(source)
    chosen = bool(root.single or source.include or root.pattern)
    for file, _ in walk(source, left_out):
        if file.problem or file.media_type == media_type or file.media_type in also:
            yield file
        elif chosen:
            yield replace(file, media_type=media_type)
        else:
            left_out["unknown_type"] += 1
