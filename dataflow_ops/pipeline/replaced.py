"""What was replaced in the versions that a compacted one was put together from: as a file of it.

Duplicates may name one of these documents as their survivor: what was removed stays removed until the next
full run, though the survivor's file was read again and gives something else now.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from dataflow_ops.errors import CorruptOutput
from dataflow_ops.pipeline.chain import Link
from dataflow_ops.schema import DOC_ID
from dataflow_ops.storage.blob import BlobStore
from dataflow_ops.storage.small_parquet import parquet_in

PATH = "replaced.parquet"
SCHEMA = pa.schema(
    [
        ("part", pa.int32()),  # which of the versions made from sources, 0 is the lowest
        ("doc_id", DOC_ID),
    ]
)
_GROUP = 65_536


def replaced_file(by_part: Sequence[pa.Array]) -> tuple[bytes, int]:
    """The file's bytes and its rows.

    Args:
        by_part: ids of replaced documents for each of the versions, the lowest first.
    """
    tables = [
        pa.table([pa.array([part] * len(ids), pa.int32()), ids], schema=SCHEMA)
        for part, ids in enumerate(by_part)
    ]
    table = pa.concat_tables([SCHEMA.empty_table(), *tables])
    table = table.sort_by([("part", "ascending"), ("doc_id", "ascending")])
    sink = io.BytesIO()
    pq.write_table(table, sink, compression="zstd", compression_level=3, row_group_size=_GROUP)
    return sink.getvalue(), table.num_rows


def replaced_before(link: Link, blobs: BlobStore, parts: int) -> list[pa.Array]:
    """For each version that a compacted one was put together from, the ids that were replaced by then.

    Args:
        link: the compacted version.
        blobs: where its folder is.
        parts: how many they are.

    Raises:
        CorruptOutput: the file is not the one that was published.
    """
    entry, uri = link.manifest["compacted"]["replaced"], f"{link.folder}/{PATH}"
    data = blobs.read(uri)
    if hashlib.sha256(data).hexdigest() != entry["sha256"]:
        raise CorruptOutput(f"{uri} is not what was published; restore it or make the version again")
    table = parquet_in(data).cast(SCHEMA)
    found = []
    for part in range(parts):
        mine = table["doc_id"].filter(pc.equal(table["part"], part)).combine_chunks()
        found.append(mine if isinstance(mine, pa.Array) else pa.array([], DOC_ID))
    return found


def replaced_so_far(links: Sequence[Link], hidden: Sequence[pa.Array], blobs: BlobStore) -> list[pa.Array]:
    """The same for a chain: for each of the versions made from sources that stand in it.

    Args:
        links: as somebody reads them, the lowest first; it may be a compacted one.
        hidden: for each the ids that later ones replaced.
        blobs: where their folders are.
    """
    found: list[pa.Array] = []
    for link, ids in zip(links, hidden, strict=True):
        if not link.record.is_compact:
            found.append(ids)
            continue
        before = replaced_before(link, blobs, len(link.manifest["compacted"]["shards"]))
        found += [pa.concat_arrays([one, ids]).unique() for one in before]
    return found
