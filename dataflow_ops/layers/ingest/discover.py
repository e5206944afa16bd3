"""``discover``: from the listing of the sources to the list of chunks."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from dataflow_ops import schema
from dataflow_ops.layers.ingest.listing import chunk_bytes, left_out_of, list_sources, weight
from dataflow_ops.layers.ingest.tree import FILE_OVERHEAD, file_chunk, leaf_chunk, leaves
from dataflow_ops.protocols import Input, OutputSpec, Partitioning, Side
from dataflow_ops.settings import JobSettings
from dataflow_ops.values import Counts, StepResult

__all__ = ["CHUNKS", "DiscoverStep", "list_sources"]

VERSION = 1

CHUNKS = pa.schema(
    [
        ("chunk", pa.string()),
        ("source_id", pa.string()),
        ("files", pa.int64()),
        ("bytes", pa.int64()),  # unpacked, estimated by the codec
        ("prefix", pa.string()),  # bits of the path hashes; "path#part" for a large file
    ]
)
"""``discover.chunks``: in ascending order of chunk."""

_HASHED_AT_ONCE = 10_000


@dataclass(frozen=True, slots=True)
class Chunk:
    """One chunk: which rows of the listing it takes, and which range of them."""

    name: str
    source_id: str
    bytes: int
    prefix: str
    rows: npt.NDArray[np.int64]
    start: int = 0
    end: int = -1


class DiscoverStep:
    """Cuts the listed files into chunks. Pure: what it knows of the world is in ``listing``.

    Args:
        settings: the job.
        listing: from :func:`list_sources`.
    """

    name = "discover"
    layer = "ingest"
    partitioned_by: Partitioning = "all"
    inputs: tuple[Input, ...] = ()
    outputs = (
        OutputSpec("files", schema.FILES, "chunk"),
        OutputSpec("chunks", CHUNKS),
        OutputSpec("dead", schema.DEAD),
    )

    def __init__(self, settings: JobSettings, listing: pa.Table) -> None:
        self._limit = chunk_bytes(settings)
        self._listing = listing

    def fingerprint(self) -> Mapping[str, object]:
        """See :class:`~dataflow_ops.protocols.Step`: the listing is this step's input."""
        return {"version": VERSION, "chunk_bytes": self._limit, "listing": listing_sha256(self._listing)}

    def run(self, side: Side, start: int) -> Iterator[StepResult]:
        """Yield all chunks at once; ``files`` is sliced by chunk, its rows in order of path."""
        del side, start
        yield self._result(self.chunks(), self._listing)

    def chunks(self) -> list[Chunk]:
        """All chunks of the listing, in ascending order of name."""
        listing = self._listing
        if not listing.num_rows:
            return []
        sources = listing["source_id"].to_numpy(zero_copy_only=False)
        good = pc.equal(listing["problem"], "").to_numpy(zero_copy_only=False)
        chunks: list[Chunk] = []
        for source_id in sorted(set(sources)):
            chunks.extend(self._chunks(source_id, np.flatnonzero(good & (sources == source_id))))
        return sorted(chunks, key=lambda c: c.name)

    def _chunks(self, source_id: str, rows: npt.NDArray[np.int64]) -> Iterator[Chunk]:
        paths = self._listing["path"].take(pa.array(rows)).to_pylist()
        sizes = self._listing["size"].take(pa.array(rows)).to_pylist()
        weights = [weight(path, size) for path, size in zip(paths, sizes, strict=True)]
        small = [i for i, w in enumerate(weights) if w <= self._limit]
        for i, whole in enumerate(weights):
            if whole > self._limit:
                starts = self._listing["cuts"][int(rows[i])].as_py() or [0]
                for part, (begin, end) in enumerate(zip(starts, [*starts[1:], -1], strict=True)):
                    name = schema.chunk_name(file_chunk(source_id, paths[i], part))
                    label = f"{paths[i]}#{part}"
                    yield Chunk(name, source_id, whole // len(starts), label, rows[i : i + 1], begin, end)
        small_weights = [weights[i] + FILE_OVERHEAD for i in small]
        for leaf in leaves([paths[i] for i in small], small_weights, self._limit):
            members = np.asarray(small, np.int64)[leaf.members]
            total = sum(weights[i] for i in members)
            name = schema.chunk_name(leaf_chunk(source_id, leaf.prefix))
            yield Chunk(name, source_id, total, leaf.prefix, rows[members])

    def _result(self, chunks: Sequence[Chunk], listing: pa.Table) -> StepResult:
        left_out = left_out_of(listing)
        skipped: dict[str, int] = {}
        metrics: dict[str, float] = {}
        for source, reasons in sorted(left_out.items()):
            for reason, n in sorted(reasons.items()):
                skipped[reason] = skipped.get(reason, 0) + n
                metrics[f"left_out.{source}.{reason}"] = float(n)
        bad = _dead(listing)
        counts = Counts(
            documents_in=listing.num_rows + sum(skipped.values()),
            kept=listing.num_rows - bad.num_rows,
            dead=bad.num_rows,
            skipped=skipped,
            documents_out=sum(len(c.rows) for c in chunks),
        )
        outputs = {"files": _files(chunks, listing), "chunks": _summary(chunks), "dead": bad}
        return StepResult(outputs, counts, metrics=metrics)


def listing_sha256(listing: pa.Table) -> str:
    """Hash of the listed files (rows are sorted by :func:`list_sources`), not of what was left out."""
    digest = hashlib.sha256()
    for at in range(0, listing.num_rows, _HASHED_AT_ONCE):
        for row in listing.slice(at, _HASHED_AT_ONCE).to_pylist():
            digest.update(json.dumps(row, sort_keys=True).encode() + b"\n")
    return digest.hexdigest()


def _files(chunks: Sequence[Chunk], listing: pa.Table) -> pa.Table:
    with_slice = schema.FILES.append(pa.field("slice", pa.string()))
    if not chunks:
        return with_slice.empty_table()
    lengths = [len(c.rows) for c in chunks]
    taken = listing.take(pa.array(np.concatenate([c.rows for c in chunks])))
    own = {
        "start": np.repeat([c.start for c in chunks], lengths),
        "end": np.repeat([c.end for c in chunks], lengths),
        "slice": pa.array(np.repeat(np.array([c.name for c in chunks], dtype=object), lengths), pa.string()),
    }
    columns = [own[name] if name in own else taken[name] for name in with_slice.names]
    return pa.table(columns, schema=with_slice)


def _summary(chunks: Sequence[Chunk]) -> pa.Table:
    return pa.table(
        {
            "chunk": [c.name for c in chunks],
            "source_id": [c.source_id for c in chunks],
            "files": [len(c.rows) for c in chunks],
            "bytes": [c.bytes for c in chunks],
            "prefix": [c.prefix for c in chunks],
        },
        schema=CHUNKS,
    )


def _dead(listing: pa.Table) -> pa.Table:
    if not listing.num_rows:
        return schema.DEAD.empty_table()
    rows = listing.filter(pc.not_equal(listing["problem"], "")).to_pylist()
    found = [
        {
            "level": "file",
            "source_id": row["source_id"],
            "path": row["path"],
            "position": -1,
            "error": "UnreadableFile",
            "message": row["problem"],
            "parser": "",
            "media_type": row["media_type"],
            "host": "",
        }
        for row in rows
    ]
    return pa.Table.from_pylist(found, schema=schema.DEAD)
