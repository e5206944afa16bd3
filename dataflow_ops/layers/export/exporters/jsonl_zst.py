"""Shards as JSON lines, zstd-3: one object a line, keys sorted, UTF-8, LF, never NaN."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa
import zstandard

from dataflow_ops.layers.export.cut import row_groups

SUFFIX = "jsonl.zst"
VERSION = 1

_READ_ROWS = 1000


def write(path: Path, tables: Iterable[pa.Table], schema: pa.Schema) -> None:
    """Write rows in the order given; equal rows give equal bytes.

    U+2028 and its kin stay as they are: a line ends at LF and nowhere else.
    """
    encoder = json.JSONEncoder(ensure_ascii=False, sort_keys=True, allow_nan=False, separators=(",", ":"))
    compressor = zstandard.ZstdCompressor(level=3, write_checksum=True, write_content_size=False)
    with path.open("wb") as file, compressor.stream_writer(file, closefd=False) as out:
        for group in row_groups(tables):
            for batch in group.select(schema.names).to_batches(_READ_ROWS):
                lines = "".join(encoder.encode(row) + "\n" for row in batch.to_pylist())
                out.write(lines.encode("utf-8"))


def read(path: Path) -> Iterator[pa.Table]:
    """Read a shard back as tables of at most 1,000 rows, with the types that JSON gives."""
    with (
        path.open("rb") as file,
        zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True) as raw,
    ):
        rows = []
        for line in io.TextIOWrapper(raw, encoding="utf-8", newline="\n"):
            rows.append(json.loads(line))
            if len(rows) == _READ_ROWS:
                yield pa.Table.from_pylist(rows)
                rows = []
        if rows:
            yield pa.Table.from_pylist(rows)
