"""Documents of the versions below that a run replaces: as a file of its version, and in numbers.

A tombstone names the version by its place in the chain (0: the lowest) and the document by its id: a file
that is read again gives the same ids, so the id alone would hide the new document with the old one.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from dataflow_ops.engine.base_records import alias
from dataflow_ops.errors import CorruptOutput, VersionError
from dataflow_ops.pipeline.chain import Link
from dataflow_ops.pipeline.version_states import REMOVED, unreadable
from dataflow_ops.schema import DOC_ID
from dataflow_ops.storage.blob import BlobStore
from dataflow_ops.storage.small_parquet import parquet_in

PATH = "tombstones.parquet"

SCHEMA = pa.schema(
    [
        ("part", pa.int32()),  # place of the version in the chain, 0 is the lowest
        ("doc_id", DOC_ID),
        ("fate", pa.string()),  # what it was there
        ("domain", pa.string()),  # of exported ones, as the rest
        ("language", pa.string()),
        ("rows", pa.int64()),
        ("tokens", pa.int64()),
    ]
)
_BATCH = 65_536


@dataclass(frozen=True, slots=True)
class Tombstones:
    """What a version replaces.

    Attributes:
        data: the bytes of its file.
        rows: how many documents.
        totals: what the exported ones of them come to, as in a manifest.
    """

    data: bytes
    rows: int
    totals: Mapping[str, Any]


def tombstones_of(
    replaced: pa.Table, links: Sequence[Link], index: Sequence[Link], blobs: BlobStore
) -> Tombstones:
    """Look up what the replaced documents were.

    Args:
        replaced: ``supersede.tombstones`` of the run.
        links: the versions below, the lowest first.
        index: those whose runs left the index, the lowest first: others where the lowest was compacted.
        blobs: where their shards are.

    Raises:
        VersionError: a shard of a version below is gone, or lacks a document.
    """
    parts = _parts_of(replaced, links, index)
    rows: list[dict[str, Any]] = []
    for number, link in enumerate(links):
        mine = replaced.filter(pc.equal(parts, number))
        found = _exported(link, mine, blobs)
        for doc_id, fate in zip(mine["doc_id"].to_pylist(), mine["fate"].to_pylist(), strict=True):
            one = found.get(doc_id.hex(), {"domain": "", "language": "", "rows": 0, "tokens": 0})
            rows.append({"part": number, "doc_id": doc_id, "fate": fate, **one})
    rows.sort(key=lambda row: (row["part"], row["doc_id"]))
    table = pa.Table.from_pylist(rows, schema=SCHEMA)
    sink = io.BytesIO()
    pq.write_table(table, sink, compression="zstd", compression_level=3, row_group_size=_BATCH)
    return Tombstones(sink.getvalue(), table.num_rows, _totals(rows))


def hidden_in(links: Sequence[Link], blobs: BlobStore) -> list[pa.Array]:
    """For each version of a chain the ids of its documents that a later one replaces, each once.

    Raises:
        CorruptOutput: a file of tombstones is not the one that was published.
        VersionError: retention removed it.
    """
    found: list[list[pa.Array]] = [[] for _ in links]
    for link in links:
        entry = link.manifest.get("tombstones")
        if not entry or not entry["rows"]:
            continue
        removed = link.record.state == REMOVED and blobs.stat(f"{link.folder}/{PATH}") is None
        if removed:
            raise VersionError(unreadable(links[-1].record.version_id, link.record.version_id))
        table = read_tombstones(link, blobs)
        for number in range(len(links)):
            ids = table["doc_id"].filter(pc.equal(table["part"], number))
            found[number] += ids.chunks
    return [pa.concat_arrays(ids).unique() if ids else pa.array([], DOC_ID) for ids in found]


def check_tombstones(links: Sequence[Link], blobs: BlobStore) -> None:
    """Whether what each version replaced in those below it is still told as it was published.

    Raises:
        VersionError: it is not.
    """
    for link in links:
        if link.manifest.get("tombstones"):
            try:
                read_tombstones(link, blobs)
            except CorruptOutput as e:
                raise VersionError(f"{e}; run the job in full mode first") from e


def read_tombstones(link: Link, blobs: BlobStore) -> pa.Table:
    """A version's tombstones.

    Raises:
        CorruptOutput: the file is not the one that was published.
    """
    entry, uri = link.manifest["tombstones"], f"{link.folder}/{PATH}"
    data = blobs.read(uri)
    if hashlib.sha256(data).hexdigest() != entry["sha256"]:
        raise CorruptOutput(f"{uri} is not what was published; restore it or make the version again")
    return parquet_in(data)


def _parts_of(replaced: pa.Table, links: Sequence[Link], index: Sequence[Link]) -> pa.Array:
    """Place in the chain of each replaced document's version: all that a compacted one was put together from
    stand at its place, the lowest.
    """
    by_alias = {}
    inside = len(index) - len(links)
    for place, link in enumerate(index):
        number = max(0, place - inside)
        for entry in link.manifest["lineage"]:
            chunk = entry["path"].removeprefix("lineage/part-").removesuffix(".parquet")
            by_alias[int(alias(link.part, chunk), 16)] = number
    return pa.array([by_alias[chunk] for chunk in replaced["chunk"].to_pylist()], pa.int32())


def _exported(link: Link, mine: pa.Table, blobs: BlobStore) -> dict[str, dict[str, Any]]:
    """Domain, language, rows and tokens of the exported documents, out of the shards that hold them."""
    out = mine.filter(pc.equal(mine["fate"], "exported"))
    wanted = {d.hex() for d in out["doc_id"].to_pylist()}
    found: dict[str, dict[str, Any]] = {}
    for shard in _shards_of(link, out, blobs):
        for row in _rows(f"{link.folder}/{shard}", blobs, wanted):
            one = found.setdefault(
                row["id"], {"domain": row["domain"], "language": row["language"], "rows": 0, "tokens": 0}
            )
            one["rows"] += 1
            one["tokens"] += row["tokens"]
    if len(found) != len(wanted):
        lost = sorted(wanted - set(found))
        raise VersionError(
            f"{len(lost)} document(s) that this run replaces are not in the shards of version"
            f" {link.record.version_id}, where its lineage has them ({lost[0]}); verify that version"
        )
    return found


def _shards_of(link: Link, out: pa.Table, blobs: BlobStore) -> list[str]:
    """Shards that hold some exported documents; a compacted version's lineage names its own.

    Lineage names a document's first row. Where some were drawn more than once, the others may be in any.
    """
    shards = link.manifest["shards"]
    if out.num_rows and sum(s["rows"] for s in shards) > sum(s["documents"] for s in shards):
        return sorted(s["path"] for s in shards)
    if not link.record.is_compact or not out.num_rows:
        return sorted(set(out["shard"].to_pylist()))
    found: set[str] = set()
    ids = out["doc_id"].combine_chunks()
    for entry in link.manifest["lineage"]:
        with blobs.open(f"{link.folder}/{entry['path']}") as file:
            for batch in pq.ParquetFile(file).iter_batches(
                _BATCH, columns=["doc_id", "fate", "shard"], use_threads=False
            ):
                table = pa.Table.from_batches([batch])
                here = pc.and_(pc.equal(table["fate"], "exported"), pc.is_in(table["doc_id"], value_set=ids))
                found.update(table["shard"].filter(here).to_pylist())
    return sorted(found)


def _rows(uri: str, blobs: BlobStore, wanted: set[str]) -> Iterator[dict[str, Any]]:
    columns = ["id", "domain", "language", "tokens"]
    if blobs.stat(uri) is None:
        raise VersionError(f"{uri} is gone; restore it, or run the job in full mode")
    ids = pa.array(sorted(wanted), pa.string())
    with blobs.open(uri) as file:
        if not uri.endswith(".jsonl.zst"):
            for batch in pq.ParquetFile(file).iter_batches(_BATCH, columns=columns, use_threads=False):
                table = pa.Table.from_batches([batch])
                yield from table.filter(pc.is_in(table["id"], value_set=ids)).to_pylist()
            return
        import zstandard

        with zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True) as raw:
            for line in io.TextIOWrapper(raw, encoding="utf-8", newline="\n"):
                row = json.loads(line)
                if row["id"] in wanted:
                    yield {name: row[name] for name in columns}


def _totals(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    exported = [row for row in rows if row["fate"] == "exported"]
    totals: dict[str, Any] = {
        "rows": sum(row["rows"] for row in exported),
        "documents": len(exported),
        "tokens": sum(row["tokens"] for row in exported),
        "by_domain": {},
        "by_language": {},
    }
    for row in exported:
        for by in ("domain", "language"):
            cell = totals[f"by_{by}"].setdefault(row[by], {"rows": 0, "tokens": 0, "documents": 0})
            cell["rows"] += row["rows"]
            cell["tokens"] += row["tokens"]
            cell["documents"] += 1
    return totals


def without_hidden(table: pa.Table, hidden: pa.Array) -> pa.Table:
    """Rows of a table with ``doc_id`` that are not hidden."""
    if not len(hidden) or not table.num_rows:
        return table
    return table.filter(pc.invert(pc.is_in(table["doc_id"], value_set=hidden)))
