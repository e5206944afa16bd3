"""An in-memory run: small real tables behind the reader protocol."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pytest

from dataflow_ops import schema
from dataflow_ops.observe.metrics import RunMetrics
from dataflow_ops.observe.report import build_report_data
from dataflow_ops.values import Output, Slice
from tests.observe import page


class MemoryReader:
    """Outputs held as tables; a ``slice`` column marks sliced kinds, as steps write them."""

    def __init__(self) -> None:
        self.tables: dict[str, pa.Table] = {}
        self.by_kind: dict[tuple[str, str], dict[str, Output]] = {}
        self.columns_read: list[tuple[str, tuple[str, ...]]] = []

    def put(self, step: str, kind: str, partition: str, table: pa.Table) -> None:
        uri = f"{step}/{kind}/{partition}"
        slices: tuple[Slice, ...] = (Slice("", 0, 1, "", table.num_rows),)
        if "slice" in table.column_names:
            names = table["slice"].to_pylist()
            slices = tuple(Slice(n, 0, 1, "", names.count(n)) for n in sorted(set(names)))
        self.tables[uri] = table
        self.by_kind.setdefault((step, kind), {})[partition] = Output(
            kind, uri, 1, 0, "", table.num_rows, slices
        )

    def outputs(self, step: str, kind: str) -> Iterator[tuple[str, Output]]:
        yield from sorted(self.by_kind.get((step, kind), {}).items())

    def read(self, output: Output, slice_name: str = "", columns: Sequence[str] = ()) -> pa.Table:
        table = self.tables[output.uri]
        self.columns_read.append((output.uri, tuple(columns)))
        if "slice" in table.column_names:
            if slice_name:
                table = table.filter(pa.compute.equal(table["slice"], slice_name))
            table = table.drop_columns(["slice"])
        return table.select(list(columns)) if columns else table


def rows(kind: pa.Schema, items: Sequence[Mapping[str, Any]], sliced: bool = False) -> pa.Table:
    """A table of a contract schema; missing columns become "", 0 or null."""
    columns: dict[str, pa.Array] = {}
    for field in kind:
        default: Any = None
        if pa.types.is_string(field.type) or pa.types.is_large_string(field.type):
            default = ""
        elif pa.types.is_integer(field.type):
            default = 0
        columns[field.name] = pa.array([item.get(field.name, default) for item in items], field.type)
    if sliced:
        columns["slice"] = pa.array([item["slice"] for item in items], pa.string())
    return pa.table(columns)


HOSTILE = "<script>alert(1)</script>\"'&\x1b[31m{{x}}\n=cmd|calc"

CHUNKS = ("0000000000000001", "0000000000000002")


def ident(chunk: int, row: int) -> bytes:
    return schema.doc_id(f"src{chunk}", f"file{chunk}.jsonl", row)


@pytest.fixture
def reader() -> MemoryReader:
    return MemoryReader()


@pytest.fixture
def finished() -> MemoryReader:
    return finished_run()


def finished_run() -> MemoryReader:
    """Two chunks of ten documents each, one source each, run to the end.

    Chunk 1: rows 0–1 rejected (zlib_ratio, length), row 2 a near copy of chunk 2's row 2, row 3 an exact
    copy of chunk 1's row 4, row 5 refused by language, row 6 not drawn, the rest exported.
    Chunk 2: row 0 rejected (length), the rest exported. Each chunk has one parse reject and one dead letter.
    """
    reader = MemoryReader()
    for number, name in enumerate(CHUNKS, 1):
        _parse(reader, number, name)
        _filter(reader, number, name)
        _label_and_fates(reader, number, name)
    one, two = CHUNKS
    pairs = [
        {"slice": one, "row": 2, "verdict": "near", "survivor_chunk": 2, "survivor_row": 2,
         "survivor_id": ident(2, 2), "similarity": 0.91},
        {"slice": two, "row": 2, "verdict": "survivor", "survivor_chunk": 2, "survivor_row": 2,
         "survivor_id": ident(2, 2), "similarity": 1.0, "copies": 1},
    ]  # fmt: skip
    reader.put("confirm", "verdicts", "0", rows(schema.DUPLICATES, pairs, sliced=True))
    pairs = [
        {"slice": one, "row": 3, "verdict": "exact", "survivor_chunk": 1, "survivor_row": 4,
         "survivor_id": ident(1, 4), "similarity": 1.0},
        {"slice": one, "row": 4, "verdict": "survivor", "survivor_chunk": 1, "survivor_row": 4,
         "survivor_id": ident(1, 4), "similarity": 1.0, "copies": 1},
    ]  # fmt: skip
    reader.put("confirm", "verdicts", "1", rows(schema.DUPLICATES, pairs, sliced=True))
    plan = {"domain": ["web"], "target_tokens": [2800], "supply_tokens": [3400], "drawn_tokens": [2800],
            "shortage_tokens": [0]}  # fmt: skip
    reader.put("plan", "domains", "all", pa.table(plan))
    return reader


def _parse(reader: MemoryReader, number: int, name: str) -> None:
    documents = [
        {
            "doc_id": ident(number, row),
            "text": f"text {row} of chunk {number} " * 20 + HOSTILE,
            "source_id": f"src{number}",
            "path": f"file{number}.jsonl",
            "position": row,
            "url": f"https://host{number}.example/{row}",
            "media_type": "text/html",
            "parser": "html@3",
        }
        for row in range(10)
    ]
    reader.put("parse", "text", name, rows(schema.DOCUMENTS, documents))
    reject = {"doc_id": ident(number, 100), "source_id": f"src{number}", "path": "void.html", "position": 100,
              "url": f"https://host{number}.example/void", "rule": "empty_text", "value": 0.0, "bound": 1.0,
              "detail": "only scripts"}  # fmt: skip
    reader.put("parse", "rejects", name, rows(schema.PARSE_REJECTS, [reject]))
    dead = {"level": "document", "doc_id": ident(number, 200), "source_id": f"src{number}", "path": "bad.pdf",
            "position": 200, "error": "ParserFailed", "message": f"no trailer {HOSTILE}", "parser": "pdf",
            "media_type": "application/pdf", "host": f"host{number}.example"}  # fmt: skip
    reader.put("parse", "dead", name, rows(schema.DEAD, [dead]))


def _filter(reader: MemoryReader, number: int, name: str) -> None:
    gone = {0: ("length", "L1", 90.0, 120.0, "low")}
    if number == 1:
        gone = {0: ("zlib_ratio", "L2", 0.12, 0.2, "low"), 1: ("length", "L1", 90.0, 120.0, "low")}
    verdicts = [{"kept": row not in gone, "kind": "prose", "script": "latin"} for row in range(10)]
    reader.put("filter", "verdicts", name, rows(schema.VERDICTS, verdicts))
    rejects = [
        {"row": row, "doc_id": ident(number, row), "rule": rule, "gate": gate, "value": value,
         "bound": bound, "side": side}
        for row, (rule, gate, value, bound, side) in gone.items()
    ]  # fmt: skip
    reader.put("filter", "rejects", name, rows(schema.REJECTS, rejects))
    stats = pa.table({"length": [90.0 if r in gone else 400.0 for r in range(10)], "zlib_ratio": [0.4] * 10})
    reader.put("filter", "stats", name, stats)


def _label_and_fates(reader: MemoryReader, number: int, name: str) -> None:
    survivors = [4, 5, 6, 7, 8, 9] if number == 1 else list(range(1, 10))
    labels = [
        {"row": row, "doc_id": ident(number, row), "domain": "web" if number == 1 else HOSTILE,
         "language": "en" if row % 2 else "zh", "language_score": 0.9, "kind": "prose",
         "quality_level": "unscored", "tokens": 100 * row, "chars": 500 * row, "copies": 0,
         "verdict": "language" if (number, row) == (1, 5) else ""}
        for row in survivors
    ]  # fmt: skip
    reader.put("label", "labels", name, rows(schema.LABELS, labels))
    fates = [
        {"doc_id": ident(number, 100), "source_id": f"src{number}", "path": "void.html", "position": 100,
         "url": f"https://host{number}.example/void", "fate": "rejected", "step": "parse",
         "rule": "empty_text", "value": 0.0, "bound": 1.0}
    ]  # fmt: skip
    for row in range(10):
        fate: dict[str, Any] = {
            "fate": "exported",
            "step": "export",
            "shard": "domain=web/part-00000-of-00001",
        }
        if (number == 1 and row in (0, 1)) or (number == 2 and row == 0):
            rule = "zlib_ratio" if (number, row) == (1, 0) else "length"
            value, bound = (0.12, 0.2) if rule == "zlib_ratio" else (90.0, 120.0)
            fate = {"fate": "rejected", "step": "filter", "rule": rule, "value": value, "bound": bound}
        elif number == 1 and row == 2:
            fate = {"fate": "duplicate", "step": "confirm", "rule": "near", "survivor_id": ident(2, 2),
                    "similarity": 0.91}  # fmt: skip
        elif number == 1 and row == 3:
            fate = {"fate": "duplicate", "step": "confirm", "rule": "exact", "survivor_id": ident(1, 4),
                    "similarity": 1.0}  # fmt: skip
        elif number == 1 and row == 5:
            fate = {"fate": "rejected", "step": "label", "rule": "language", "value": 0.9}
        elif number == 1 and row == 6:
            fate = {"fate": "not_sampled", "step": "plan"}
        fates.append(
            {"doc_id": ident(number, row), "source_id": f"src{number}", "path": f"file{number}.jsonl",
             "position": row, "url": f"https://host{number}.example/{row}", **fate,
             "copies": 1 if (number, row) in ((2, 2), (1, 4)) else 0}
        )  # fmt: skip
    reader.put("scatter", "fates", name, rows(schema.FATES, fates))


@pytest.fixture
def data(finished):
    metrics = RunMetrics.from_rows(page.STEPS, page.DEAD, "run 1; rm -rf", "SUCCEEDED_WITH_DEAD", 12.5)
    manifest = {
        "version": page.HOSTILE,
        "rules": {page.HOSTILE: page.HOSTILE},
        "steps": [{"name": "parse", "fingerprint": "ab" * 32}],
    }
    return build_report_data(finished, metrics, manifest, page.job())
