"""The three steps of a compaction. They read the folders of versions, which no step of the flow does."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa

from dataflow_ops.layers.export.columns import EXPORTED
from dataflow_ops.layers.export.content import Content, content_of_all
from dataflow_ops.layers.export.exporters import EXPORTERS
from dataflow_ops.pipeline.compact_chain import Chain, SourceFile, living_fates, living_rows, load_chain
from dataflow_ops.pipeline.compact_plan import Group, lineage_groups, moved, shard_groups
from dataflow_ops.protocols import Input, OutputSpec, Partitioning, Side, Step
from dataflow_ops.schema import FATES
from dataflow_ops.settings import JobSettings
from dataflow_ops.state.store import StateStore
from dataflow_ops.storage.blob import BlobStore
from dataflow_ops.storage.opening import open_store
from dataflow_ops.values import Counts, FileOut, StepResult

if TYPE_CHECKING:
    from dataflow_ops.engine.context import RunContext
    from dataflow_ops.engine.inputs import OutputIndex
    from dataflow_ops.storage.chunk_store import ChunkStore

SHARD = "shard"
WEIGHED = pa.schema([("shard", pa.string()), ("content", pa.string())])
_OF_WEIGH = (Input("weigh", "content", "all"),)


class Work:
    """A compaction's versions and settings, read once per process.

    Args:
        context: of its run.
    """

    def __init__(self, context: RunContext) -> None:
        self.blobs: BlobStore = open_store(context.root)
        self.settings: JobSettings = context.settings
        self._state_url = context.state_url

    @cached_property
    def chain(self) -> Chain:
        """See :class:`Chain`."""
        with StateStore(self._state_url) as state:
            return load_chain(state, self.blobs, self.settings)

    @cached_property
    def shards(self) -> dict[str, SourceFile]:
        """Old shards by name."""
        return {file.name: file for file in self.chain.shards}

    @cached_property
    def lineage(self) -> dict[str, list[SourceFile]]:
        """Old lineage files by the name of what they are put together in."""
        return lineage_groups(self.chain.lineage)

    def groups(self, weighed: Iterator[pa.Table]) -> list[Group]:
        """The new shards, from what ``weigh`` wrote."""
        contents: dict[str, Content] = {}
        for table in weighed:
            for row in table.to_pylist():
                contents[row["shard"]] = Content.from_json(json.loads(row["content"]))
        output = self.settings.output
        return shard_groups(self.chain.shards, contents, output.format, output.shards)

    def groups_of(self, index: OutputIndex, chunks: ChunkStore) -> list[Group]:
        """The same for the process that drives the run."""
        found = index.outputs("weigh", "content")
        return self.groups(chunks.read(output, verify=True) for _, output in found)

    def base(self) -> Mapping[str, object]:
        """What every step's fingerprint holds: the version that answers for all that is read."""
        assert self.settings.interval is not None
        assert self.settings.interval.parent is not None
        return {"of": self.settings.interval.parent.manifest_sha256}


class WeighStep:
    """What each old shard holds, less what was replaced."""

    name = "weigh"
    layer = "export"
    partitioned_by: Partitioning = "shard_group"
    inputs: tuple[Input, ...] = ()
    outputs = (OutputSpec("content", WEIGHED),)

    def __init__(self, work: Work) -> None:
        self._work = work

    def fingerprint(self) -> Mapping[str, object]:
        """See :class:`~dataflow_ops.protocols.Step`."""
        return {"step": 1, **self._work.base()}

    def run(self, side: Side, start: int) -> Iterator[StepResult]:
        """See :class:`~dataflow_ops.protocols.RunStep`."""
        file = self._work.shards[side.partition]
        content = content_of_all(
            _asking(side, living_rows(self._work.blobs, side.scratch, self._work.chain, file))
        )
        row = {"shard": file.name, "content": json.dumps(content.as_json(), sort_keys=True)}
        yield StepResult(
            outputs={"content": pa.Table.from_pylist([row], schema=WEIGHED)},
            counts=Counts(
                documents_in=file.rows,
                kept=content.rows,
                skipped={"replaced": file.rows - content.rows},
                documents_out=content.rows,
                bytes_in=content.text_bytes,
                tokens_out=content.tokens,
            ),
        )


class PackStep:
    """Writes one new shard, and reads it again: what it holds is measured from its own bytes."""

    name = "pack"
    layer = "export"
    partitioned_by: Partitioning = "shard_group"
    inputs = _OF_WEIGH
    outputs: tuple[OutputSpec, ...] = ()

    def __init__(self, work: Work) -> None:
        self._work = work
        self._format = work.settings.output.format

    def fingerprint(self) -> Mapping[str, object]:
        """See :class:`~dataflow_ops.protocols.Step`; pyarrow and zstandard write the bytes."""
        import zstandard

        return {
            "step": 1,
            "format": self._format,
            "exporter": EXPORTERS[self._format].VERSION,
            "shards": self._work.settings.output.shards,
            "pyarrow": pa.__version__,
            "zstd": ".".join(str(n) for n in zstandard.ZSTD_VERSION),
            **self._work.base(),
        }

    def run(self, side: Side, start: int) -> Iterator[StepResult]:
        """See :class:`~dataflow_ops.protocols.RunStep`."""
        work, exporter = self._work, EXPORTERS[self._format]
        groups = work.groups(table for _, table in side.tables("weigh", "content"))
        group = next(one for one in groups if one.name == side.partition)
        path = side.scratch / f"out.{exporter.SUFFIX}"
        rows = (
            table
            for file in group.sources
            for table in living_rows(work.blobs, side.scratch, work.chain, file)
        )
        exporter.write(path, _asking(side, rows), EXPORTED)
        again = (table.select(EXPORTED.names).cast(EXPORTED) for table in exporter.read(path))
        content = content_of_all(_asking(side, again))
        yield StepResult(
            counts=Counts(
                documents_in=content.rows,
                kept=content.rows,
                documents_out=content.rows,
                bytes_in=content.text_bytes,
                tokens_out=content.tokens,
            ),
            files=(FileOut(SHARD, path, content.rows, {"content": content.as_json()}),),
        )


class TraceStep:
    """Puts lineage files together: without what was replaced, and with the new shards' names."""

    name = "trace"
    layer = "export"
    partitioned_by: Partitioning = "shard_group"
    inputs = _OF_WEIGH
    outputs = (OutputSpec("fates", FATES),)

    def __init__(self, work: Work) -> None:
        self._work = work

    def fingerprint(self) -> Mapping[str, object]:
        """See :class:`~dataflow_ops.protocols.Step`."""
        output = self._work.settings.output
        return {"step": 1, "format": output.format, "shards": output.shards, **self._work.base()}

    def run(self, side: Side, start: int) -> Iterator[StepResult]:
        """See :class:`~dataflow_ops.protocols.RunStep`."""
        work = self._work
        names = moved(work.groups(table for _, table in side.tables("weigh", "content")))
        empty = True
        for file in work.lineage[side.partition]:
            for rows, living in living_fates(work.blobs, side.scratch, work.chain, file):
                side.checkpoint()
                empty = False
                shards = [names[file.place, old] if old else old for old in living["shard"].to_pylist()]
                at = FATES.get_field_index("shard")
                table = living.select(FATES.names).set_column(
                    at, FATES.field("shard"), pa.array(shards, pa.string())
                )
                yield StepResult(
                    outputs={"fates": table.cast(FATES)},
                    counts=Counts(
                        documents_in=rows,
                        kept=living.num_rows,
                        skipped={"replaced": rows - living.num_rows},
                        documents_out=living.num_rows,
                    ),
                    metrics={f"fate_{fate}": n for fate, n in Counter(living["fate"].to_pylist()).items()},
                )
        if empty:
            yield StepResult(outputs={"fates": FATES.empty_table()})


def _asking(side: Side, tables: Iterator[pa.Table]) -> Iterator[pa.Table]:
    for table in tables:
        side.checkpoint()
        yield table


def build_compaction(context: RunContext) -> Mapping[str, Step]:
    """The steps of a compaction's run, inside the process that runs them."""
    work = Work(context)
    return {"weigh": WeighStep(work), "pack": PackStep(work), "trace": TraceStep(work)}
