"""Source kinds: where documents come from. A kind is one module and one line in :data:`KINDS`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import BinaryIO, Final

from dataflow_ops.layers.ingest.sources import files, git, http, jsonl, parquet, warc
from dataflow_ops.layers.ingest.sources.listed import LeftOut, SourceFile
from dataflow_ops.layers.ingest.sources.roots import locate
from dataflow_ops.settings import SourceSettings

ListFiles = Callable[[SourceSettings, LeftOut], Iterator[SourceFile]]

KINDS: Final[dict[str, ListFiles]] = {
    "files": files.list_files,
    "jsonl": jsonl.list_files,
    "parquet": parquet.list_files,
    "warc": warc.list_files,
    "git": git.list_files,
    "http": http.list_files,
}


def open_path(source: SourceSettings, path: str) -> BinaryIO:
    """Open a listed file of a local source for reading.

    Raises:
        ConfigError: the path would leave the source's folder.
        OSError: the file vanished or may not be read.
    """
    return open(locate(source, path), "rb")
