"""score → label → plan → scatter → export over made-up chunks, in memory."""

from __future__ import annotations

import hashlib
import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from dataflow_ops import schema
from dataflow_ops.job_file import parse_job
from dataflow_ops.layers.export.manifest import (
    FileEntry,
    SourceEntry,
    StepEntry,
    build_manifest,
    canonical_json,
)
from dataflow_ops.layers.export.scatter import ScatterStep
from dataflow_ops.layers.export.shards import ExportStep
from dataflow_ops.layers.export.verify import verify_script
from dataflow_ops.layers.mix.draw import draw_key
from dataflow_ops.layers.mix.label import LabelStep
from dataflow_ops.layers.mix.plan import PlanStep
from dataflow_ops.layers.score.step import ScoreStep
from dataflow_ops.settings import JobSettings
from dataflow_ops.values import Counts, Numbers
from tests.layers.fake_side import FakeSide

DOMAINS = {"s-web": "web", "s-code": "code", "s-zh": "web"}


class Words:
    """A tokenizer that counts words."""

    estimated = False

    def count(self, texts: Any) -> np.ndarray:
        return np.array([len((t or "").split()) for t in texts.to_pylist()], dtype=np.int64)

    def identity(self) -> dict[str, object]:
        return {"name": "words", "estimated": False}


class ByFirstLetter:
    """A detector that needs no model: Chinese where the text begins so, else English."""

    def detect(self, texts: Any) -> tuple[list[str], np.ndarray]:
        found = ["zh" if "一" <= (t or " ")[0] <= "鿿" else "en" for t in texts.to_pylist()]
        return found, np.full(len(found), 0.75, np.float32)

    def identity(self) -> dict[str, object]:
        return {"name": "first letter"}


def job(**sections: Any) -> JobSettings:
    sources = [{"source_id": s, "domain": d, "path": f"/data/{s}"} for s, d in DOMAINS.items()]
    return parse_job({"dataset": {"id": "t"}, "sources": sources, **sections})


@dataclass
class Chunk:
    """One chunk as parse, filter and confirm left it."""

    number: int
    text: pa.Table
    verdicts: pa.Table
    rejects: pa.Table
    unparsed: pa.Table
    duplicates: pa.Table

    @property
    def name(self) -> str:
        return schema.chunk_name(self.number)


def make_chunks(seed: int = 0, chunks: int = 3, documents: int = 80) -> list[Chunk]:
    """Chunks with rejects of both kinds, duplicates with survivors elsewhere, and an empty one at the end."""
    random_ = random.Random(seed)
    made = [_chunk(random_, c + 1, documents) for c in range(chunks)]
    kept = [
        (chunk, row)
        for chunk in made
        for row in range(chunk.text.num_rows)
        if chunk.verdicts["kept"][row].as_py()
    ]
    groups: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for chunk, row in kept[::7]:
        survivor = kept[(kept.index((chunk, row)) // 7) * 7 + 1] if len(kept) > 1 else (chunk, row)
        if survivor != (chunk, row):
            groups.setdefault((survivor[0].number, survivor[1]), []).append((chunk.number, row))
    by_number = {c.number: c for c in made}
    rows: dict[int, list[dict[str, Any]]] = {c.number: [] for c in made}
    for (c, r), members in groups.items():
        survivor_id = by_number[c].text["doc_id"][r].as_py()
        for mc, mr in members:
            rows[mc].append(_duplicate(mr, "near" if mr % 2 else "exact", c, r, survivor_id, 0.9, 0))
        rows[c].append(_duplicate(r, "survivor", c, r, survivor_id, 1.0, len(members)))
    for chunk in made:
        chunk.duplicates = pa.Table.from_pylist(rows[chunk.number], schema=schema.DUPLICATES)
    return [*made, _chunk(random_, chunks + 1, 0)]


def _duplicate(
    row: int, verdict: str, chunk: int, srow: int, sid: bytes, sim: float, copies: int
) -> dict[str, Any]:
    return {
        "row": row,
        "verdict": verdict,
        "survivor_chunk": chunk,
        "survivor_row": srow,
        "survivor_id": sid,
        "similarity": sim,
        "copies": copies,
    }


def _chunk(random_: random.Random, number: int, documents: int) -> Chunk:
    texts, verdicts, rejects = [], [], []
    for row in range(documents):
        source = random_.choice(list(DOMAINS))
        kind = "code" if source == "s-code" else "prose"
        words = random_.choices(
            ["文字", "段落"] if source == "s-zh" else ["alpha", "beta", "x\u2028y"], k=random_.randint(1, 40)
        )
        identity = schema.doc_id(source, f"f{number}", row)
        texts.append(
            {
                **{
                    name: ""
                    for name in schema.DOCUMENTS.names
                    if pa.types.is_string(schema.DOCUMENTS.field(name).type)
                },
                "doc_id": identity,
                "text": " ".join(words),
                "source_id": source,
                "path": f"f{number}",
                "position": row,
                "part": 0,
                "code_language": "python" if kind == "code" else "",
                "raw_chars": 1,
                "control_chars": 0,
                "replacement_chars": 0,
            }
        )
        kept = random_.random() > 0.2
        verdicts.append({"kept": kept, "kind": kind, "script": "han" if source == "s-zh" else "latin"})
        if not kept:
            rejects.append(
                {
                    "row": row,
                    "doc_id": identity,
                    "rule": "zlib_ratio",
                    "gate": "L2",
                    "value": 0.1,
                    "bound": 0.2,
                    "side": "low",
                }
            )
    unparsed = [
        {
            "doc_id": schema.doc_id("s-web", f"f{number}", 10_000 + i),
            "source_id": "s-web",
            "path": f"f{number}",
            "position": 10_000 + i,
            "part": 0,
            "rule": "empty_text",
            "value": 0.0,
            "bound": 1.0,
            "url": "",
            "detail": "",
        }
        for i in range(2 if documents else 0)
    ]
    return Chunk(
        number,
        pa.Table.from_pylist(texts, schema=schema.DOCUMENTS),
        pa.Table.from_pylist(verdicts, schema=schema.VERDICTS),
        pa.Table.from_pylist(rejects, schema=schema.REJECTS),
        pa.Table.from_pylist(unparsed, schema=schema.PARSE_REJECTS),
        schema.DUPLICATES.empty_table(),
    )


def drive(step: Any, side: FakeSide, aligned: pa.Table, size: int) -> tuple[dict[str, pa.Table], Counts]:
    """Drive a map step batch by batch; check conservation; return its outputs."""
    state = step.open(side)
    outputs: dict[str, list[pa.Table]] = {}
    total = Counts()
    for first in range(0, max(aligned.num_rows, 1), size):
        result = step.process(aligned.slice(first, size), first, state)
        result.counts.check(step.name)
        total = total + result.counts
        for kind, table in result.outputs.items():
            outputs.setdefault(kind, []).append(table)
    made = {kind: pa.concat_tables(tables).combine_chunks() for kind, tables in outputs.items()}
    for spec in step.outputs:
        names = [*spec.schema.names, *(["slice"] if spec.slice_by else [])]
        assert made[spec.kind].schema.names == names
        assert made[spec.kind].select(spec.schema.names).schema == spec.schema
    return made, total


def lean(duplicates: pa.Table) -> dict[str, pa.Table]:
    """What score, label and scatter read of the verdicts of dedup: kind of ``confirm`` -> rows."""
    removed = pc.not_equal(duplicates["verdict"], "survivor")
    lost = duplicates.filter(removed)
    return {
        "removed": lost.select(["row"]),
        "copies": duplicates.filter(pc.invert(removed)).select(["row", "copies"]),
        "losses": lost.select(["row", "verdict", "survivor_id", "similarity"]),
    }


@dataclass
class Flow:
    """All outputs of a run of the five steps."""

    settings: JobSettings
    stored: dict[tuple[str, str], list[tuple[str, pa.Table]]]
    counts: dict[str, Counts]
    shards: dict[str, tuple[Path, int, dict[str, Any]]]


def run_flow(
    settings: JobSettings,
    chunks: list[Chunk],
    scratch: Path,
    size: int = 50,
    budget: int = 1 << 30,
    groups: int = 2,
) -> Flow:
    stored: dict[tuple[str, str], list[tuple[str, pa.Table]]] = {}
    counts: dict[str, Counts] = {}
    scratch.mkdir(parents=True, exist_ok=True)
    for chunk in chunks:
        for key, table in (
            (("parse", "text"), chunk.text),
            (("parse", "rejects"), chunk.unparsed),
            (("filter", "verdicts"), chunk.verdicts),
            (("filter", "rejects"), chunk.rejects),
            *((("confirm", kind), table) for kind, table in lean(chunk.duplicates).items()),
        ):
            stored.setdefault(key, []).append((chunk.name, table))
    same = frozenset(stored) | {("score", "scores"), ("label", "labels")}

    def map_step(step: Any) -> None:
        for chunk in chunks:
            side = FakeSide(
                stored,
                chunk.name,
                same=same,
                sliced=frozenset({("plan", "draw")}),
                numbers=Numbers(4, 4, 4, 4, groups),
            )
            aligned = chunk.text
            for name in chunk.verdicts.schema.names:
                aligned = aligned.append_column(name, chunk.verdicts[name])
            made, total = drive(step, side, aligned, size)
            counts[step.name] = counts.get(step.name, Counts()) + total
            for kind, table in made.items():
                stored.setdefault((step.name, kind), []).append((chunk.name, table))

    map_step(ScoreStep(settings))
    map_step(LabelStep(settings, Words(), ByFirstLetter()))
    [result] = PlanStep(settings).run(FakeSide(stored), 0)
    result.counts.check("plan")
    counts["plan"] = result.counts
    for kind, table in result.outputs.items():
        stored[("plan", kind)] = [("all", table)]
    map_step(ScatterStep(settings, "default@1", draw_key))
    shards: dict[str, tuple[Path, int, dict[str, Any]]] = {}
    export = ExportStep(settings)
    for group in range(groups):
        folder = scratch / f"group-{group}"
        folder.mkdir()
        side = FakeSide(
            stored, str(group), scratch=folder, sliced=frozenset({("scatter", "rows")}), memory_budget=budget
        )
        for result in export.run(side, 0):
            result.counts.check("export")
            counts["export"] = counts.get("export", Counts()) + result.counts
            for file in result.files:
                shards[file.kind.removeprefix("shard/")] = (file.path, file.rows, dict(file.attributes))
    return Flow(settings, stored, counts, shards)


def publish(flow: Flow, root: Path) -> Path:
    """Lay a version out as the pipeline does: shards, lineage, manifest, verify.py."""
    shards, lineage = [], []
    for name, (path, rows, attributes) in sorted(flow.shards.items()):
        target = root / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(path.read_bytes())
        shards.append(_entry(root, target, rows, attributes))
    for chunk, table in flow.stored[("scatter", "fates")]:
        target = root / "lineage" / f"part_{chunk}.parquet"
        target.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(table, target)
        lineage.append(_entry(root, target, table.num_rows, {}))
    parsed = sum(t.num_rows for _, t in flow.stored[("parse", "text")])
    refused = sum(t.num_rows for _, t in flow.stored[("filter", "rejects")])
    unparsed = sum(t.num_rows for _, t in flow.stored[("parse", "rejects")])
    counts = {
        "parse": Counts(parsed + unparsed, parsed, unparsed, documents_out=parsed),
        "filter": Counts(parsed, parsed - refused, refused, documents_out=parsed - refused),
        **flow.counts,
    }
    manifest = build_manifest(
        settings=flow.settings,
        steps=[StepEntry(name, "x", "0" * 64, c) for name, c in counts.items()],
        sources=[SourceEntry(s, "files", d, 1, 1, "0" * 64) for s, d in DOMAINS.items()],
        shards=shards,
        lineage=lineage,
        tokenizer=Words().identity(),
        rules={"default": 1},
        parsers={},
        domains=flow.stored[("plan", "domains")][0][1].to_pylist(),
        partitions=flow.stored[("plan", "partitions")][0][1].to_pylist(),
        notes=flow.stored[("plan", "notes")][0][1]["note"].to_pylist(),
    )
    (root / "manifest.json").write_bytes(canonical_json(manifest))
    (root / "verify.py").write_bytes(verify_script())
    return root


def _entry(root: Path, path: Path, rows: int, attributes: dict[str, Any]) -> FileEntry:
    data = path.read_bytes()
    return FileEntry(
        str(path.relative_to(root)), rows, len(data), hashlib.sha256(data).hexdigest(), attributes
    )


def fates(flow: Flow) -> pa.Table:
    return pa.concat_tables([t for _, t in flow.stored[("scatter", "fates")]])


def drawn_ids(flow: Flow, domain: str | None = None) -> set[str]:
    rows = pa.concat_tables([t for _, t in flow.stored[("scatter", "rows")]])
    if domain is not None:
        rows = rows.filter(pc.equal(rows["domain"], domain))
    return set(rows["id"].to_pylist())
