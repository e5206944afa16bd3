"""A version and those below it: what an incremental run builds on, and what its own version then is."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dataflow_ops.engine.base_records import BasePart
from dataflow_ops.engine.inputs import digest_of
from dataflow_ops.errors import ConfigError, VersionError
from dataflow_ops.layers.dedup.identity import band_fingerprint
from dataflow_ops.settings import JobSettings
from dataflow_ops.state.lookup import Content
from dataflow_ops.state.records import VersionRecord
from dataflow_ops.state.store import StateStore
from dataflow_ops.storage.blob import BlobStore
from dataflow_ops.values import Numbers

INDEXED = (
    ("sign", "keys"),
    ("sign", "bands"),
    ("confirm", "removed"),
    ("parse", "text"),
    ("exact", "filter"),
    ("match", "filter"),
)
"""``(step, kind)`` of the outputs that a version's index is: keys and bands of all that dedup met, which of
them it removed, the texts to compare with, and the filters that are asked before keys and bands are read."""
Contents = Mapping[tuple[str, str], Mapping[str, Content]]
"""Outputs by (step, kind) and partition."""
UNFINISHED = ("PLANNED", "RUNNING", "PAUSED", "FAILED")
"""States of a run whose outputs may be newer ones than its version was made of."""


@dataclass(frozen=True, slots=True)
class Link:
    """One version of a chain.

    Attributes:
        record: its row in state.
        manifest: as published.
    """

    record: VersionRecord
    manifest: Mapping[str, Any]

    @property
    def part(self) -> BasePart:
        """What the engine needs to know of it."""
        return BasePart(self.record.manifest_sha256, self.record.run_id)

    @property
    def folder(self) -> str:
        """Where its files are."""
        return f"versions/{self.record.version_id}"


def read_manifest(blobs: BlobStore, record: VersionRecord) -> dict[str, Any]:
    """A version's manifest, checked against its recorded hash.

    Raises:
        VersionError: it is gone, or not what was published.
    """
    if blobs.stat(record.manifest_uri) is None:
        raise VersionError(f"{record.version_id} is no longer stored: {record.manifest_uri} is gone")
    data = blobs.read(record.manifest_uri)
    if hashlib.sha256(data).hexdigest() != record.manifest_sha256:
        raise VersionError(
            f"{record.manifest_uri} is not what was published; restore it or make the version again"
        )
    manifest: dict[str, Any] = json.loads(data)
    return manifest


def versions_of(state: StateStore, dataset: str | None) -> Sequence[VersionRecord]:
    """The versions of a data set (None: of all), newest first.

    Raises:
        ConfigError: there are none.
    """
    versions = state.versions(dataset)
    if versions:
        return versions
    others = sorted({v.dataset for v in state.versions()})
    if dataset is not None and others:
        raise ConfigError(f"data set '{dataset}' has no version here; there are {', '.join(others)}")
    raise ConfigError("no version has been published here yet; `dataflow run JOB` makes one")


def version_named(records: Sequence[VersionRecord], version: str) -> VersionRecord:
    """A version by its id, or by the start of one where it fits one alone: every command reads names so.

    Args:
        records: among these, newest first.
        version: what somebody typed.

    Raises:
        VersionError: none fits, or several do; it names them.
    """
    found = [r for r in records if r.version_id == version]
    found = found or [r for r in records if r.version_id.startswith(version)]
    if len(found) == 1:
        return found[0]
    what = "fits several versions" if found else "is no version here"
    known = ", ".join(r.version_id for r in (found or records)[:10])
    raise VersionError(f"'{version}' {what}; there are {known}")


def records_below(versions: Sequence[VersionRecord], version_id: str) -> list[VersionRecord]:
    """A version and those whose folders hold the rest of its documents, the lowest first.

    Args:
        versions: of one data set.
        version_id: which.

    Raises:
        VersionError: one of them is not there.
    """
    found: list[VersionRecord] = []
    for record in _down(versions, version_id):
        found.append(record)
        if record.is_compact:
            break
    return found[::-1]


def records_behind(versions: Sequence[VersionRecord], version_id: str) -> list[VersionRecord]:
    """The versions that were made from sources, a version among them or not, the lowest first: behind a
    compacted one stand those that it was put together from, whose runs left index, texts and file lists.

    Raises:
        VersionError: one of them is not there.
    """
    return [record for record in _down(versions, version_id) if not record.is_compact][::-1]


def _down(versions: Sequence[VersionRecord], version_id: str) -> Iterator[VersionRecord]:
    by_id = {v.version_id: v for v in versions}
    at: str | None = version_id
    while at is not None:
        record = by_id.get(at)
        if record is None:
            raise VersionError(f"version {at}, on which {version_id} builds, is gone")
        yield record
        at = record.base


def chain_of(state: StateStore, blobs: BlobStore, dataset: str, version_id: str) -> list[Link]:
    """A version and those below it, the lowest first, with their manifests.

    Raises:
        VersionError: one of them is not there, or its manifest is damaged.
    """
    records = records_below(state.versions(dataset), version_id)
    return [Link(record, read_manifest(blobs, record)) for record in records]


def index_of(state: StateStore, blobs: BlobStore, dataset: str, version_id: str) -> list[Link]:
    """The versions whose runs left the index of a version, the lowest first; see :func:`records_behind`.

    Raises:
        VersionError: one of them is not there, or its manifest is damaged.
    """
    records = records_behind(state.versions(dataset), version_id)
    return [Link(record, read_manifest(blobs, record)) for record in records]


def signed_by(settings: JobSettings) -> str:
    """Names the settings and code behind keys and bands: an index made with others finds nothing."""
    return digest_of(band_fingerprint(settings))[:16]


def index_entry(settings: JobSettings, numbers: Numbers, outputs: Contents) -> dict[str, Any]:
    """What the manifest says of a run's own part of the index.

    Args:
        settings: the job.
        numbers: into how many ranges it is cut.
        outputs: of :data:`INDEXED`, by partition.

    Returns:
        ``documents`` (that stayed), ``bytes`` of keys, bands and filters, ``ranges``, ``signed_by`` and
        ``sha256``: of what the files hold, wherever they lie.
    """
    keys, bands, removed, _, *filters = (outputs[name] for name in INDEXED)
    return {
        "documents": sum(o.rows for o in keys.values()) - sum(o.rows for o in removed.values()),
        "bytes": sum(o.size for table in (keys, bands, *filters) for o in table.values()),
        "ranges": {
            "key_prefixes": numbers.key_prefixes,
            "band_prefixes": numbers.band_prefixes,
            "blocks": numbers.blocks,
            "root_prefixes": numbers.root_prefixes,
            "shard_groups": numbers.shard_groups,
        },
        "signed_by": signed_by(settings),
        "sha256": _content(outputs),
    }


def indexed_outputs(state: StateStore, run_id: str) -> dict[tuple[str, str], Mapping[str, Content]]:
    """The outputs of a run that are its part of an index."""
    return {name: state.contents_of_step(run_id, *name) for name in INDEXED}


def check_index(state: StateStore, links: Iterable[Link]) -> None:
    """Whether every part of the index is still what the manifests answer for.

    Raises:
        VersionError: a run was run again with other content, or what it left was cleared away.
    """
    for link in links:
        name = link.record.version_id
        run = state.get_run(link.record.run_id)
        if run is None or run.state in UNFINISHED:
            raise VersionError(
                f"run {link.record.run_id}, which made version {name}, is {run.state if run else 'gone'};"
                " let it end, then go on"
            )
        if _content(indexed_outputs(state, run.run_id)) != link.manifest["index"]["sha256"]:
            raise VersionError(
                f"the index of version {name} is no longer kept as it was published; run the job in full"
                " mode first"
            )


def _content(outputs: Contents) -> str:
    digest = hashlib.sha256()
    for (step, kind), by_partition in sorted(outputs.items()):
        for partition, output in sorted(by_partition.items()):
            digest.update(f"{step}.{kind} {partition} {output.rows} {output.sha256}\n".encode())
    return digest.hexdigest()
