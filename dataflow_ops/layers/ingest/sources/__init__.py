"""Source kinds: where documents come from. A kind is one module and one line in a table.

:data:`KINDS` are listed from local files; :data:`OUTSIDE_KINDS` ask a server.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import BinaryIO, Final

from dataflow_ops.layers.ingest.outside import Outside
from dataflow_ops.layers.ingest.sources import files, git, http, jsonl, parquet, s3, sql, warc
from dataflow_ops.layers.ingest.sources.listed import LeftOut, SourceFile
from dataflow_ops.layers.ingest.sources.roots import locate
from dataflow_ops.source_settings import SourceSettings

ListFiles = Callable[[SourceSettings, LeftOut], Iterator[SourceFile]]
ListOutside = Callable[[SourceSettings, LeftOut, Outside], Iterator[SourceFile]]

KINDS: Final[dict[str, ListFiles]] = {
    "files": files.list_files,
    "jsonl": jsonl.list_files,
    "parquet": parquet.list_files,
    "warc": warc.list_files,
    "git": git.list_files,
    "http": http.list_files,
}

OUTSIDE_KINDS: Final[dict[str, ListOutside]] = {
    "s3": s3.list_objects,
    "sql": sql.list_ranges,
}


def found_in(source: SourceSettings, left_out: LeftOut, outside: Outside) -> Iterator[SourceFile]:
    """Yield the files of a source, of whatever kind."""
    if source.kind in OUTSIDE_KINDS:
        return OUTSIDE_KINDS[source.kind](source, left_out, outside)
    return KINDS[source.kind](source, left_out)


def open_path(source: SourceSettings, path: str) -> BinaryIO:
    """Open a listed file of a local source for reading.

    Raises:
        ConfigError: the path would leave the source's folder.
        OSError: the file vanished or may not be read.
    """
    return open(locate(source, path), "rb")
