"""Drives the dedup steps over documents, with a Side that keeps outputs in memory or in a folder."""

from __future__ import annotations

import hashlib
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa

from dataflow_ops import schema
from dataflow_ops.job_file import parse_job
from dataflow_ops.layers.dedup import columns
from dataflow_ops.layers.dedup.collect import CollectStep
from dataflow_ops.layers.dedup.confirm import ConfirmStep
from dataflow_ops.layers.dedup.exact import ExactStep
from dataflow_ops.layers.dedup.gather import GatherStep
from dataflow_ops.layers.dedup.match import MatchStep
from dataflow_ops.layers.dedup.recall import RecallStep
from dataflow_ops.layers.dedup.sign import SignStep
from dataflow_ops.layers.dedup.unite import UniteStep
from dataflow_ops.layers.dedup.verify import VerifyStep
from dataflow_ops.protocols import Input, RunStep, Step
from dataflow_ops.settings import JobSettings
from dataflow_ops.timing import IntervalSettings
from dataflow_ops.values import Counts, Numbers, StepResult

STEPS = (SignStep, ExactStep, MatchStep, GatherStep, VerifyStep, UniteStep, CollectStep, ConfirmStep)
CHUNK_IDS = 1000  # the first chunk's; later ones count down, so that order of id is not order of arrival
NUMBERS = Numbers(key_prefixes=4, band_prefixes=4, blocks=4, root_prefixes=2, shard_groups=1)


def job(**dedup: object) -> JobSettings:
    return parse_job({"dataset": {"id": "t"}, "dedup": dedup})


def above(settings: JobSettings) -> JobSettings:
    """The job as a run has it that builds on a version."""
    interval = {"day": "2026-11-30", "parent": {"version": "v", "manifest_sha256": "0" * 64}, "settled": True}
    return settings.model_copy(update={"interval": IntervalSettings.model_validate(interval)})


class Store:
    """Outputs by (step, kind), partition and slice; on disk when a folder is given."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder
        self.parts: dict[tuple[str, str], dict[str, dict[str, list[object]]]] = defaultdict(dict)
        self.schemas: dict[tuple[str, str], pa.Schema] = {}
        self.files = 0
        self.seconds = 0.0

    def save(self, step: str, kind: str, partition: str, table: pa.Table, sliced: bool) -> None:
        began = time.process_time()
        into = self.parts[step, kind].setdefault(partition, {})
        want = self.schemas[step, kind]
        if sliced:
            names = table.column("slice").combine_chunks().dictionary_encode()
            index = names.indices.to_numpy()
            body = table.drop_columns("slice")
            for i, name in enumerate(names.dictionary.to_pylist()):
                self._put(into, name, body.filter(pa.array(index == i)), want)
        else:
            self._put(into, "", table, want)
        self.seconds += time.process_time() - began

    def _put(self, into: dict[str, list[object]], name: str, table: pa.Table, want: pa.Schema) -> None:
        assert table.schema == want, f"{table.schema} is not {want}"
        handle: object = table
        if self.folder is not None:
            self.files += 1
            handle = self.folder / f"{self.files}.arrow"
            with pa.OSFile(str(handle), "wb") as f, pa.ipc.new_file(f, want) as writer:
                writer.write_table(table)
        into.setdefault(name, []).append(handle)

    def load(self, step: str, kind: str, partition: str, name: str | None) -> pa.Table:
        began = time.process_time()
        slices = self.parts[step, kind].get(partition, {})
        handles = [h for key in sorted(slices) if name is None or key == name for h in slices[key]]
        tables = [
            h if isinstance(h, pa.Table) else pa.ipc.open_file(pa.OSFile(str(h))).read_all() for h in handles
        ]
        table = pa.concat_tables(tables) if tables else self.schemas[step, kind].empty_table()
        self.seconds += time.process_time() - began
        return table


@dataclass
class FlowSide:
    store: Store
    step: Step
    partition: str
    numbers: Numbers
    memory_budget: int = 1 << 30
    lookups: int = 0

    spills: int = 0
    _folder: tempfile.TemporaryDirectory[str] | None = None

    @property
    def scratch(self) -> Path:
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory()
        self.spills += 1
        return Path(self._folder.name)

    def _input(self, step: str, kind: str) -> Input:
        return next(i for i in self.step.inputs if (i.step, i.kind) == (step, kind))

    def tables(self, step: str, kind: str) -> Iterator[tuple[str, pa.Table]]:
        take = self._input(step, kind)
        partitions = [self.partition] if take.take == "same" else sorted(self.store.parts[step, kind])
        assert take.take in ("same", "slice", "all")
        for partition in partitions:
            table = self.store.load(step, kind, partition, self.partition if take.take == "slice" else None)
            if table.num_rows:
                yield partition, table.select(take.columns) if take.columns else table

    def table(self, step: str, kind: str) -> pa.Table:
        tables = [t for _, t in self.tables(step, kind)]
        columns = self._input(step, kind).columns or self.store.schemas[step, kind].names
        return (
            pa.concat_tables(tables)
            if tables
            else self.store.schemas[step, kind].empty_table().select(columns)
        )

    def stream(self, step: str, kind: str) -> Iterator[pa.Table]:
        for _, table in self.tables(step, kind):
            for start in range(0, table.num_rows, 7):
                yield table.slice(start, 7)

    def checkpoint(self) -> None:
        """Nobody asks for a pause."""

    def lookup(self, step: str, kind: str, partition: str, slice_name: str = "") -> pa.Table:
        assert self._input(step, kind).take == "pointer"
        self.lookups += 1
        return self.store.load(step, kind, partition, slice_name)

    def slices(self, step: str, kind: str, name: str) -> Iterator[pa.Table]:
        assert self._input(step, kind).take == "pointer"
        for partition in sorted(self.store.parts[step, kind]):
            table = self.store.load(step, kind, partition, name)
            if table.num_rows:
                yield table

    def rows(self, step: str, kind: str, partition: str, rows: Sequence[int]) -> Iterator[pa.Table]:
        item = self._input(step, kind)
        assert item.take == "pointer"
        table = self.store.load(step, kind, partition, None).select(item.columns)
        half = max(1, len(rows) // 2)
        for some in (rows[:half], rows[half:]):
            if some:
                yield table.take(pa.array(some))


def alias(part: int, chunk: str) -> str:
    """The number of a base's chunk: of some part of it, unlike any chunk of the run."""
    return hashlib.sha256(f"{part} {chunk}".encode()).hexdigest()[:16]


def add_base(store: Store, parts: Sequence[Store], gone: Iterable[tuple[int, int]] = ()) -> None:
    """Give a store the outputs of earlier flows as those of the version below."""
    for kind, of in (("keys", "sign"), ("bands", "sign"), ("text", "parse")):
        store.schemas["base", kind] = parts[0].schemas[of, kind]
        for i, part in enumerate(parts):
            for chunk, made in part.parts[of, kind].items():
                store.parts["base", kind][alias(i, chunk)] = made
    for kind, of in (("key_filter", "exact"), ("band_filter", "match")):
        store.schemas["base", kind] = parts[0].schemas[of, "filter"]
        for i, part in enumerate(parts):
            for prefix, made in part.parts[of, "filter"].items():
                store.parts["base", kind][f"{i}.{prefix}"] = {prefix: made[""]}
    store.schemas["base", "removed"] = parts[0].schemas["confirm", "removed"]
    for i, part in enumerate(parts):
        for root, made in part.parts["confirm", "removed"].items():
            named = {alias(i, chunk): handles for chunk, handles in made.items()}
            store.parts["base", "removed"][f"{i}.{root}"] = named
    store.schemas["supersede", "gone"] = columns.GONE
    rows = [{"chunk": chunk, "place": row, "row": row} for chunk, row in gone]
    store.save("supersede", "gone", "all", pa.Table.from_pylist(rows, columns.GONE), False)


@dataclass
class Outcome:
    """What a flow gave: verdict rows by document id, and everything by step."""

    verdicts: dict[bytes, dict[str, object]]
    store: Store
    counts: dict[str, Counts]
    metrics: dict[str, float]
    hits: dict[str, int]
    seconds: dict[str, float]
    documents: int

    def survivor(self, doc_id: bytes) -> bytes:
        row = self.verdicts.get(doc_id)
        return doc_id if row is None else row["survivor_id"]

    def removed(self) -> dict[bytes, dict[str, object]]:
        return {d: v for d, v in self.verdicts.items() if v["verdict"] != "survivor"}


@dataclass
class Flow:
    settings: JobSettings
    numbers: Numbers = NUMBERS
    batch: int = 1000
    folder: Path | None = None
    tamper: Callable[[Store, str], None] | None = None
    build: dict[str, Step] = field(default_factory=dict)
    below: Sequence[Store] = ()
    gone: Sequence[tuple[int, int]] = ()
    memory_budget: int = 1 << 30

    def run(self, chunks: Iterable[pa.Table]) -> Outcome:
        """Chunks hold doc_id, text, source_id and kept; chunk number i gets id CHUNK_IDS - i."""
        store = Store(self.folder)
        store.schemas["parse", "text"] = pa.schema(
            [(n, schema.DOCUMENTS.field(n).type) for n in ("doc_id", "text", "source_id")]
        )
        kept: dict[str, pa.ChunkedArray] = {}
        for i, table in enumerate(chunks):
            name = schema.chunk_name(CHUNK_IDS - i)
            store.save("parse", "text", name, table.drop_columns("kept"), False)
            kept[name] = table.column("kept")
        if self.below:
            add_base(store, self.below, self.gone)
        counts: dict[str, Counts] = {}
        metrics: dict[str, float] = defaultdict(float)
        hits: dict[str, int] = defaultdict(int)
        seconds: dict[str, float] = {}
        steps = list(STEPS)
        if self.below:
            steps.insert(steps.index(VerifyStep), RecallStep)
        for cls in steps:
            step = self.build.get(cls.name) or cls(self.settings)
            for spec in step.outputs:
                store.schemas[step.name, spec.kind] = spec.schema
            spent = 0.0
            for partition in self._partitions(step, sorted(kept)):
                side = FlowSide(store, step, partition, self.numbers, self.memory_budget)
                for result in self._results(step, side, store, kept):
                    counts[step.name] = counts.get(step.name, Counts()) + result[0].counts
                    spent += result[1]
                    for name, value in result[0].metrics.items():
                        metrics[name] += value
                    for name, n in result[0].rule_hits.items():
                        hits[name] += n
                    for spec in step.outputs:
                        if spec.kind in result[0].outputs:
                            table = result[0].outputs[spec.kind]
                            store.save(step.name, spec.kind, partition, table, bool(spec.slice_by))
            counts.setdefault(step.name, Counts()).check(step.name)
            seconds[step.name] = spent
            if self.tamper is not None:
                self.tamper(store, step.name)
        verdicts = {}
        for name in sorted(kept):
            ids = store.load("parse", "text", name, None).column("doc_id").to_pylist()
            for partition in sorted(store.parts["confirm", "verdicts"]):
                for row in store.load("confirm", "verdicts", partition, name).to_pylist():
                    doc = ids[row["row"]]
                    assert doc not in verdicts, "two verdicts on one document"
                    verdicts[doc] = row | {"at": (int(name, 16), row["row"])}
        return Outcome(
            verdicts, store, counts, dict(metrics), dict(hits), seconds, sum(map(len, kept.values()))
        )

    def _partitions(self, step: Step, chunks: list[str]) -> list[str]:
        n = self.numbers
        ranges = {
            "key_prefix": n.key_prefixes,
            "band_prefix": n.band_prefixes,
            "block": n.blocks,
            "root_prefix": n.root_prefixes,
        }
        if step.partitioned_by == "chunk":
            return chunks
        if step.partitioned_by == "all":
            return ["all"]
        return [str(i) for i in range(ranges[step.partitioned_by])]

    def _results(
        self, step: Step, side: FlowSide, store: Store, kept: dict[str, pa.ChunkedArray]
    ) -> Iterator[tuple[StepResult, float]]:
        """Results with the processor seconds they took, reading and writing left out."""
        if isinstance(step, RunStep):
            results = step.run(side, 0)
            while True:
                began, outside = time.process_time(), store.seconds
                result = next(results, None)
                spent = time.process_time() - began - (store.seconds - outside)
                if result is None:
                    return
                yield result, spent
        text = store.load("parse", "text", side.partition, None)
        state = step.open(side)
        wanted = next(i for i in step.inputs if i.kind == "text").columns
        table = text.select(wanted).append_column("kept", kept[side.partition])
        for first in range(0, table.num_rows, self.batch):
            began = time.process_time()
            result = step.process(table.slice(first, self.batch), first, state)
            yield result, time.process_time() - began


def documents(
    texts: Sequence[str] | pa.ChunkedArray,
    ids: Sequence[bytes] | None = None,
    sources: Sequence[str] | None = None,
) -> pa.Table:
    n = len(texts)
    ids = ids if ids is not None else [schema.doc_id("s", "f", i) for i in range(n)]
    return pa.table(
        {
            "doc_id": pa.array(list(ids), schema.DOC_ID),
            "text": texts if isinstance(texts, pa.ChunkedArray) else pa.array(list(texts), pa.large_string()),
            "source_id": pa.array(list(sources) if sources is not None else ["s"] * n, pa.string()),
            "kept": pa.array(np.ones(n, bool)),
        }
    )


def cut(table: pa.Table, sizes: Sequence[int]) -> list[pa.Table]:
    """Cut documents into chunks of these sizes; the rest is the last chunk."""
    out, at = [], 0
    for size in [*sizes, table.num_rows]:
        if at < table.num_rows:
            out.append(table.slice(at, size).combine_chunks())
        at += size
    return out
