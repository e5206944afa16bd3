"""Shards as Parquet: zstd-3, page checksums, ``large_string`` text, row groups of fixed cuts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from dataflow_ops.layers.export.cut import row_groups

SUFFIX = "parquet"
VERSION = 1

_PLAIN = {"id", "text", "url", "path", "title", "source_record_id", "metadata", "messages"}
"""Columns whose values hardly repeat: a dictionary would only be thrown away again."""


def write(path: Path, tables: Iterable[pa.Table], schema: pa.Schema) -> None:
    """Write rows in the order given; equal rows give equal bytes."""
    dictionary = [f.name for f in schema if pa.types.is_string(f.type) and f.name not in _PLAIN]
    with pq.ParquetWriter(
        path,
        schema,
        compression="zstd",
        compression_level=3,
        use_dictionary=dictionary,
        write_page_checksum=True,
        write_statistics=[n for n in schema.names if n not in {"text", "metadata", "messages"}],
    ) as writer:
        for group in row_groups(tables):
            writer.write_table(group, row_group_size=group.num_rows)


def read(path: Path) -> Iterator[pa.Table]:
    """Read a shard back, row group by row group, page checksums verified."""
    with pq.ParquetFile(path, page_checksum_verification=True) as file:
        for i in range(file.num_row_groups):
            yield file.read_row_group(i)
