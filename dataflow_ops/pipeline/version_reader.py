"""A published version opened for looking: its manifest, its lineage, its run's outputs while they are kept.

Lineage lies in the version's own folder and stays as long as the version does; all other outputs are the
run's and may have been cleared away.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import pyarrow as pa

from dataflow_ops.engine.context import RunContext
from dataflow_ops.engine.inputs import OutputIndex
from dataflow_ops.errors import VersionError
from dataflow_ops.pipeline.build import build_steps
from dataflow_ops.pipeline.chain import Link, chain_of, index_of, read_manifest, version_named, versions_of
from dataflow_ops.pipeline.home import Home
from dataflow_ops.pipeline.reader import RunReader
from dataflow_ops.pipeline.replaced import replaced_before
from dataflow_ops.pipeline.session import parse_job_text
from dataflow_ops.pipeline.tombstones import hidden_in
from dataflow_ops.pipeline.version_states import REMOVED, unreadable
from dataflow_ops.protocols import Step
from dataflow_ops.schema import DOC_ID, FATES
from dataflow_ops.settings import JobSettings
from dataflow_ops.state.records import RunRecord, VersionRecord
from dataflow_ops.state.store import StateStore
from dataflow_ops.storage.chunk_store import ChunkStore
from dataflow_ops.storage.opening import open_store
from dataflow_ops.values import Output, Slice

_NEAR = 1_000
"""Rows up to which it costs less to walk on than to read a row group again."""

LINEAGE = ("scatter", "fates")
"""``(step, kind)`` that a version's own lineage files hold."""


@dataclass(frozen=True)
class OpenVersion:
    """One version.

    Attributes:
        record: its row in state.
        manifest: as published, checked against its recorded hash.
        run: the run that made it.
        home: where it lies.
        state: open state store.
        hidden: ids of its documents that versions above it replaced, where it is looked at from above.
        inside: the compacted version that its documents stand in, where it is looked at through that one.
        shards: old path -> path in ``inside``.
    """

    record: VersionRecord
    manifest: Mapping[str, Any]
    run: RunRecord
    home: Home
    state: StateStore
    hidden: pa.Array = field(default_factory=lambda: pa.array([], DOC_ID))
    inside: str = ""
    shards: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def parts(self) -> list[OpenVersion]:
        """Itself and the versions that it builds on, the lowest first: its documents are theirs together, but
        for the hidden ones of each. For a compacted one stand those that it was put together from: their runs
        left all that tells about its documents.
        """
        if self.record.base is None:
            return [self]
        links = chain_of(self.state, self.chunks.blobs, self.record.dataset, self.record.version_id)
        hidden = hidden_in(links, self.chunks.blobs)
        found = []
        for link, ids in zip(links, hidden, strict=True):
            found += self._behind(link, ids) if link.record.is_compact else [self._part(link, ids)]
        return found

    def _behind(self, link: Link, ids: pa.Array) -> list[OpenVersion]:
        """What a compacted version was put together from."""
        blobs, inside = self.chunks.blobs, link.record.version_id
        index = index_of(self.state, blobs, link.record.dataset, inside)
        replaced = replaced_before(link, blobs, len(index))
        shards = link.manifest["compacted"]["shards"]
        return [
            replace(
                self._part(one, pa.concat_arrays([before, ids]).unique()), inside=inside, shards=shards[place]
            )
            for place, (one, before) in enumerate(zip(index, replaced, strict=True))
        ]

    def _part(self, link: Link, ids: pa.Array) -> OpenVersion:
        run = self.state.get_run(link.record.run_id)
        assert run is not None, "a version's run is a foreign key"
        return OpenVersion(link.record, link.manifest, run, self.home, self.state, ids)

    @property
    def holder(self) -> str:
        """The version in whose folder its documents are."""
        return self.inside or self.record.version_id

    def shard(self, path: str) -> str:
        """Where a shard that its lineage names is in the folder of :attr:`holder`."""
        return self.shards.get(path, path)

    @cached_property
    def settings(self) -> JobSettings:
        """The job that made it."""
        return parse_job_text(self.run.settings, self.run.run_id)

    @cached_property
    def chunks(self) -> ChunkStore:
        """Where outputs are read."""
        return ChunkStore(open_store(self.home.root))

    @cached_property
    def steps(self) -> dict[str, Step]:
        """The steps as the run had them."""
        context = RunContext(self.run.run_id, self.settings, self.home.root, self.home.state_url)
        return dict(build_steps(context))

    @cached_property
    def lineage(self) -> dict[str, Output]:
        """Chunk -> its lineage file, ascending; of a removed version what its run wrote, if that is kept."""
        folder = f"versions/{self.record.version_id}"
        found = {}
        for entry in self.manifest["lineage"]:
            chunk = entry["path"].removeprefix("lineage/part-").removesuffix(".parquet")
            whole = Slice("", 0, entry["bytes"], entry["sha256"], entry["rows"])
            uri = f"{folder}/{entry['path']}"
            found[chunk] = Output("fates", uri, whole.length, 0, whole.sha256, whole.rows, (whole,))
        if self.record.state == REMOVED:
            left = dict(OutputIndex(self.state, self.run.run_id).outputs(*LINEAGE))
            # Where it is not, reading must say so.
            return left if set(left) == set(found) else found
        return found

    @cached_property
    def reader(self) -> VersionReader:
        """Reads lineage and outputs alike."""
        run = RunReader(OutputIndex(self.state, self.run.run_id), self.chunks, self.steps)
        return VersionReader(run, self.chunks, self.lineage, self._past)

    @cached_property
    def lineage_reader(self) -> VersionReader:
        """Reads lineage alone, as if the run had left nothing else."""
        return VersionReader(None, self.chunks, self.lineage, self._past)

    @property
    def _past(self) -> str:
        """The version's id where retention removed it."""
        return self.record.version_id if self.record.state == REMOVED else ""

    def has(self, step: str, kind: str) -> bool:
        """Whether the run's outputs of this kind are all there still; False where there never were any."""
        outputs = [output for _, output in self.reader.outputs(step, kind)]
        stat = self.chunks.blobs.stat
        return bool(outputs) and all((stat(o.uri) or (-1,))[0] == o.size for o in outputs)


class VersionReader:
    """The :class:`~dataflow_ops.observe.reader.StepReader` of a version.

    Args:
        run: reads the run's outputs; None to read lineage alone.
        chunks: reads the version's own files.
        lineage: chunk -> lineage file.
        removed: the version's id where retention removed its files: that one is missing is no damage.
    """

    def __init__(
        self, run: RunReader | None, chunks: ChunkStore, lineage: Mapping[str, Output], removed: str = ""
    ) -> None:
        self._removed = removed
        self._run, self._chunks, self._lineage = run, chunks, lineage
        self._own = {output.uri for output in lineage.values()}

    def outputs(self, step: str, kind: str) -> Iterator[tuple[str, Output]]:
        """See the protocol."""
        if (step, kind) == LINEAGE:
            yield from self._lineage.items()
        elif self._run is not None:
            yield from self._run.outputs(step, kind)

    def read(self, output: Output, slice_name: str = "", columns: Sequence[str] = ()) -> pa.Table:
        """See the protocol."""
        if output.uri in self._own:
            if self._removed and self._chunks.blobs.stat(output.uri) is None:
                raise VersionError(unreadable(self._removed, self._removed))
            return self._chunks.read(output, slice_name, tuple(columns), schema=FATES)
        assert self._run is not None, "only outputs that were listed here are read"
        return self._run.read(output, slice_name, columns)

    def read_rows(self, output: Output, rows: Sequence[int], columns: Sequence[str] = ()) -> pa.Table:
        """A few rows by number, ascending; only their row groups are read, those of near rows once."""
        if not rows:
            return self.read(output, columns=columns).slice(0, 0)
        parts, stream = [], self._chunks.rows(output, tuple(columns), rows[0])
        for row in rows:
            if row - stream.next_row > _NEAR:
                stream = self._chunks.rows(output, tuple(columns), row)
            stream.take(row - stream.next_row)
            parts.append(stream.take(1))
        return pa.concat_tables(parts)


def open_version(
    home: Home, state: StateStore, version: str | None = None, dataset: str | None = None
) -> OpenVersion:
    """Open a version by its id or the start of one; without any the current one, else the newest.

    Raises:
        ConfigError: nothing has been published (for the data set).
        VersionError: no such version, several fit, or its manifest is not what was published.
    """
    records = versions_of(state, dataset)
    record = _pick(records, version)
    manifest = read_manifest(open_store(home.root), record)
    run = state.get_run(record.run_id)
    assert run is not None, "a version's run is a foreign key"
    return OpenVersion(record, manifest, run, home, state)


def _pick(records: Sequence[VersionRecord], version: str | None) -> VersionRecord:
    if version is not None:
        return version_named(records, version)
    return next((r for r in records if r.is_current), records[0])
