"""A database of somebody else, and what is listed and fetched of it."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pyarrow as pa

from dataflow_ops import media
from dataflow_ops.job_file import parse_job
from dataflow_ops.layers.ingest.discover import DiscoverStep
from dataflow_ops.layers.ingest.fetch import FetchStep
from dataflow_ops.layers.ingest.listing import list_sources
from dataflow_ops.pipeline.outside import OUTSIDE
from dataflow_ops.settings import JobSettings
from tests.layers.ingest.side import FolderSide

DDL = "CREATE TABLE articles (id INTEGER PRIMARY KEY, text TEXT, title TEXT, updated INTEGER)"


class Database:
    """A SQLite file of somebody else."""

    def __init__(self, path: Path, ddl: str = DDL) -> None:
        self.path = path
        self.connection = sqlite3.connect(path, isolation_level=None)
        self.connection.execute(ddl)

    def do(self, statement: str, *values: object) -> None:
        self.connection.execute(statement, values)

    def fill(self, n: int, first: int = 0) -> None:
        self.do("BEGIN")
        for i in range(first, first + n):
            self.do("INSERT INTO articles VALUES (?, ?, ?, 1)", i * 3, f"text {i}", f"title {i}")
        self.do("COMMIT")

    def job(self, **more: Any) -> JobSettings:
        source = {
            "kind": "sql",
            "url": f"sqlite:///{self.path}",
            "table": "articles",
            "key": "id",
            "source_id": "db",
            "range_rows": 20,
            **more,
        }
        if "query" in more:
            source.pop("table")
        return parse_job({"dataset": {"id": "t"}, "sources": [source]})


def listed(job: JobSettings) -> dict[str, str]:
    """Path → mark."""
    table = list_sources(job, OUTSIDE)
    assert set(table["media_type"].to_pylist()) <= {media.ROWS}
    assert len(set(table["path"].to_pylist())) == table.num_rows
    return dict(zip(table["path"].to_pylist(), table["etag"].to_pylist(), strict=True))


def fetch(job: JobSettings, folder: Path) -> tuple[list[dict[str, Any]], list[dict[str, Any]], FolderSide]:
    """Rows of ``fetch.files`` and ``fetch.dead``."""
    return fetch_listed(job, list_sources(job, OUTSIDE), folder)


def fetch_listed(
    job: JobSettings, listing: pa.Table, folder: Path
) -> tuple[list[dict[str, Any]], list[dict[str, Any]], FolderSide]:
    (found,) = DiscoverStep(job, listing).run(FolderSide(job, folder), 0)
    files = found.outputs["files"].drop_columns(["slice"])
    side = FolderSide(job, folder, {("discover", "files"): files})
    results = list(FetchStep(job, outside=OUTSIDE).run(side, 0))
    for result in results:
        result.counts.check("fetch")
    assert [r.cursor for r in results] == list(range(1, len(results) + 1))
    return (
        [row for r in results for row in r.outputs["files"].to_pylist()],
        [row for r in results for row in r.outputs["dead"].to_pylist()],
        side,
    )


def lines(files: list[dict[str, Any]], side: FolderSide) -> list[tuple[int, str, dict[str, Any]]]:
    """Position, id and fields of all rows fetched."""
    found = []
    for file in files:
        with side.open_source("db", file["path"], file["location"]) as opened:
            body = opened.read()
        assert len(body) == file["size"]
        for line in body.splitlines():
            number, record_id, fields = line.split(b"\t")
            found.append((int(number), json.loads(record_id), json.loads(fields)))
    return found
