"""Runs the parse step over files in memory."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa

from dataflow_ops import media, schema
from dataflow_ops.job_file import parse_job
from dataflow_ops.layers.parse import wire
from dataflow_ops.layers.parse.guard import Guard, InlineGuard
from dataflow_ops.layers.parse.step import ParseStep
from dataflow_ops.ranges import range_sha256
from dataflow_ops.settings import JobSettings
from dataflow_ops.values import Counts, StepResult

CASES = Path(__file__).parents[2] / "cases" / "data"


def settings(**sections: Any) -> JobSettings:
    return parse_job({"dataset": {"id": "t"}, **sections})


@dataclass
class FakeSide:
    """Files by path, as fetch would have listed them."""

    files: dict[str, bytes]
    source_id: str = "default"
    extra: dict[str, dict[str, Any]] = field(default_factory=dict)
    opened: list[str] = field(default_factory=list)

    def table(self, step: str, kind: str) -> pa.Table:
        assert (step, kind) == ("fetch", "files")
        rows = []
        for path, data in self.files.items():
            row: dict[str, object] = {
                "source_id": self.source_id,
                "path": path,
                "start": 0,
                "end": -1,
                "size": len(data),
                "media_type": media.media_of(path).media_type,
                "charset": "",
                "url": "",
                "location": "",
            }
            row.update(self.extra.get(path, {}))
            if "sha256" not in row:
                kind, start, end = str(row["media_type"]), int(str(row["start"])), int(str(row["end"]))
                row["sha256"], _ = range_sha256(io.BytesIO(data), kind, start, end)
            rows.append(row)
        return pa.Table.from_pylist(rows, schema=schema.FETCHED)

    def checkpoint(self) -> None:
        """Nobody asks for a pause."""

    def open_source(self, source_id: str, path: str, location: str = "") -> BinaryIO:
        self.opened.append(path)
        return io.BytesIO(self.files[path])


@dataclass
class Ran:
    """Everything a run gave, joined."""

    docs: list[dict[str, Any]]
    rejects: list[dict[str, Any]]
    dead: list[dict[str, Any]]
    counts: Counts
    cursors: list[int]
    results: list[StepResult]

    @property
    def texts(self) -> list[str]:
        return [d["text"] for d in self.docs]


def collect(results: Iterator[StepResult]) -> Ran:
    out: dict[str, list[dict[str, Any]]] = {"text": [], "rejects": [], "dead": []}
    expected = {"text": schema.DOCUMENTS, "rejects": schema.PARSE_REJECTS, "dead": schema.DEAD}
    counts, cursors, kept = Counts(), [], []
    for result in results:
        for kind, table in result.outputs.items():
            assert table.schema.equals(expected[kind])
            out[kind] += table.to_pylist()
        counts = counts + result.counts
        assert result.cursor is not None
        cursors.append(result.cursor)
        kept.append(result)
    counts.check("parse")
    assert counts.documents_out == len(out["text"])
    assert cursors == sorted(cursors)
    return Ran(out["text"], out["rejects"], out["dead"], counts, cursors, kept)


def parse(
    files: dict[str, bytes] | FakeSide,
    job: JobSettings | None = None,
    guard: Guard | None = None,
    start: int = 0,
) -> Ran:
    side = files if isinstance(files, FakeSide) else FakeSide(files)
    step = ParseStep(job or settings(), guard or InlineGuard(wire.handle))
    return collect(step.run(side, start))  # type: ignore[arg-type]


def case(name: str, **kwargs: Any) -> Ran:
    return parse({name: (CASES / name).read_bytes()}, **kwargs)
