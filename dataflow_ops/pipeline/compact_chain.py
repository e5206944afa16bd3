"""The versions that a compaction puts together: shards, lineage files, and what is hidden in each."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from dataflow_ops.engine.base_records import alias
from dataflow_ops.errors import BaseDamaged, CorruptOutput, VersionError
from dataflow_ops.layers.export.columns import EXPORTED
from dataflow_ops.layers.export.exporters import EXPORTERS
from dataflow_ops.pipeline.chain import Link, chain_of
from dataflow_ops.pipeline.tombstones import hidden_in, without_hidden
from dataflow_ops.settings import JobSettings
from dataflow_ops.state.store import StateStore
from dataflow_ops.storage.blob import BlobStore, sha256_of
from dataflow_ops.storage.remote import local_copy


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A shard, or a lineage file, of one of the versions.

    Attributes:
        name: 16 hex digits, from the version's manifest and the path.
        place: of its version in the chain, 0 is the lowest.
        path: inside the version.
        uri: below the storage root.
        rows: as in the manifest.
        size: bytes.
        sha256: hex digest.
        partition: of a shard: its partition keys and values.
    """

    name: str
    place: int
    path: str
    uri: str
    rows: int
    size: int
    sha256: str
    partition: Mapping[str, str]

    @property
    def folder(self) -> str:
        """Of a shard: the folder of its partition, ``""`` where there is none."""
        return self.path.rpartition("/")[0]

    @property
    def format(self) -> str:
        """Of a shard: its exporter's name."""
        return next(name for name in EXPORTERS if self.path.endswith(f".{name}"))


@dataclass(frozen=True, slots=True)
class Chain:
    """What is put together.

    Attributes:
        links: the versions as somebody reads them, the lowest first.
        hidden: for each the ids of its documents that later ones replaced.
        hidden_text: the same as shards write them.
        shards: in the order of the compacted rows: by partition, then version, then name.
        lineage: by version, then name.
    """

    links: tuple[Link, ...]
    hidden: tuple[pa.Array, ...]
    hidden_text: tuple[pa.Array, ...]
    shards: tuple[SourceFile, ...]
    lineage: tuple[SourceFile, ...]

    @property
    def top(self) -> Link:
        """The version whose documents these are."""
        return self.links[-1]


def load_chain(state: StateStore, blobs: BlobStore, settings: JobSettings) -> Chain:
    """The chain that a compaction's run was created for.

    Raises:
        VersionError: one of the versions is gone or damaged.
    """
    parent = None if settings.interval is None else settings.interval.parent
    if parent is None:
        raise VersionError("this run does not say which version it compacts: begin another one")
    links = chain_of(state, blobs, settings.dataset.id, parent.version)
    if links[-1].record.manifest_sha256 != parent.manifest_sha256:
        raise VersionError(f"version {parent.version} is not the one that this run began with")
    try:
        hidden = hidden_in(links, blobs)
    except CorruptOutput as e:
        raise VersionError(str(e)) from e
    shards = [
        _file(link, place, entry)
        for place, link in enumerate(links)
        for entry in sorted(link.manifest["shards"], key=lambda entry: str(entry["path"]))
    ]
    lineage = [
        _file(link, place, entry)
        for place, link in enumerate(links)
        for entry in sorted(link.manifest["lineage"], key=lambda entry: str(entry["path"]))
    ]
    ordered = sorted(shards, key=lambda file: (file.folder, file.place, file.path))
    text = [pa.array([doc.hex() for doc in ids.to_pylist()], pa.string()) for ids in hidden]
    return Chain(tuple(links), tuple(hidden), tuple(text), tuple(ordered), tuple(lineage))


def _file(link: Link, place: int, entry: Mapping[str, Any]) -> SourceFile:
    return SourceFile(
        alias(link.part, entry["path"]),
        place,
        entry["path"],
        f"{link.folder}/{entry['path']}",
        entry["rows"],
        entry["bytes"],
        entry["sha256"],
        entry.get("partition", {}),
    )


def group_name(files: list[SourceFile]) -> str:
    """Name of several files put together, 16 hex digits."""
    return hashlib.sha256("\n".join(file.name for file in files).encode()).hexdigest()[:16]


def living_rows(blobs: BlobStore, scratch: Path, chain: Chain, file: SourceFile) -> Iterator[pa.Table]:
    """Rows of a shard that nobody replaced, in order, with the columns of :data:`EXPORTED`.

    Args:
        blobs: where the folders of versions are.
        scratch: a file that is not on this machine is brought there meanwhile.
        chain: whose shard it is.
        file: the shard; its bytes are hashed before the first row is given.

    Raises:
        BaseDamaged: it is not what was published, or has other columns.
    """
    hidden = chain.hidden_text[file.place]
    with _checked(blobs, scratch, file) as path:
        for table in EXPORTERS[file.format].read(path):
            if set(table.column_names) != set(EXPORTED.names):
                raise BaseDamaged(
                    f"{file.uri} has other columns than this program writes; run the job in full mode instead"
                )
            rows = table.select(EXPORTED.names).cast(EXPORTED)
            yield rows.filter(pc.invert(pc.is_in(rows["id"], value_set=hidden))) if len(hidden) else rows


def living_fates(
    blobs: BlobStore, scratch: Path, chain: Chain, file: SourceFile
) -> Iterator[tuple[int, pa.Table]]:
    """A lineage file by row group: ``(rows there, those of documents that nobody replaced)``.

    Raises:
        BaseDamaged: it is not what was published.
    """
    with _checked(blobs, scratch, file) as path, pq.ParquetFile(path) as parquet:
        for number in range(parquet.num_row_groups):
            table = parquet.read_row_group(number)
            yield table.num_rows, without_hidden(table, chain.hidden[file.place])


@contextmanager
def _checked(blobs: BlobStore, scratch: Path, file: SourceFile) -> Iterator[Path]:
    if blobs.stat(file.uri) is None:
        raise BaseDamaged(f"{file.uri} is gone; restore it, or run the job in full mode")
    with local_copy(blobs, file.uri, scratch) as path:
        with path.open("rb") as opened:
            found = sha256_of(opened)
        if found != (file.sha256, file.size):
            raise BaseDamaged(
                f"{file.uri} is not what was published; restore it, or run the job in full mode"
            )
        yield path
