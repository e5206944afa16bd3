"""``kind: sql``: rows of real databases, read by ranges of their key."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dataflow_ops import media
from dataflow_ops.clients.sql_table import SqlTable
from dataflow_ops.job_file import parse_job
from dataflow_ops.layers.ingest.discover import DiscoverStep
from dataflow_ops.layers.ingest.fetch import FetchStep
from dataflow_ops.layers.ingest.listing import list_sources
from dataflow_ops.pipeline.outside import OUTSIDE
from tests.layers.ingest.side import FolderSide
from tests.layers.ingest.sql_database import Database, fetch, fetch_listed, lines, listed


def test_every_row_is_in_one_range_and_fetched_once(theirs: Database, tmp_path: Path) -> None:
    theirs.fill(500)
    marks = listed(theirs.job())
    assert 10 < len(marks) < 60
    told = [json.loads(mark) for mark in marks.values()]
    assert sum(one["rows"] for one in told) == 500
    for path, mark in marks.items():
        start = path.removeprefix("articles/").removesuffix("/rows")
        assert start == "lowest" or start == f"id>={json.loads(mark)['from'][0]}"
    files, dead, side = fetch(theirs.job(), tmp_path)
    assert dead == []
    rows = sorted(lines(files, side))
    assert [position for position, _, _ in rows] == [i * 3 for i in range(500)]
    assert rows[7] == (21, "21", {"id": 21, "text": "text 7", "title": "title 7", "updated": 1})
    assert {f["media_type"] for f in files} == {media.ROWS}


def test_fetching_goes_on_behind_what_was_staged(theirs: Database, tmp_path: Path) -> None:
    theirs.fill(200)
    job = theirs.job()
    (found,) = DiscoverStep(job, list_sources(job, OUTSIDE)).run(FolderSide(job, tmp_path), 0)
    inputs = {("discover", "files"): found.outputs["files"].drop_columns(["slice"])}
    side = FolderSide(job, tmp_path, inputs)
    whole = [r.outputs["files"].to_pylist() for r in FetchStep(job, outside=OUTSIDE).run(side, 0)]
    rest = [r.outputs["files"].to_pylist() for r in FetchStep(job, outside=OUTSIDE).run(side, 3)]
    assert rest == whole[3:]


key = st.one_of(st.integers(-50, 50), st.text(st.characters(exclude_categories=["Cs"]), max_size=4))


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=st.lists(st.tuples(key, key), unique=True, max_size=60), per_range=st.integers(1, 9))
def test_composite_keys_of_any_kind(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[object, object]], per_range: int
) -> None:
    folder = tmp_path_factory.mktemp("composite")
    # NUL ends a text for SQLite's own functions.
    rows = [row for row in rows if "\x00" not in f"{row}"]
    database = Database(folder / "x.db", "CREATE TABLE articles (a, b, text TEXT)")
    for a, b in rows:
        database.do("INSERT INTO articles VALUES (?, ?, ?)", a, b, f"{a}|{b}")
    job = database.job(key=["a", "b"], range_rows=per_range)
    files, dead, side = fetch(job, folder)
    assert dead == []
    found = [(fields["a"], fields["b"]) for _, _, fields in lines(files, side)]
    assert sorted(map(repr, found)) == sorted(map(repr, rows))
    assert len({position for position, _, _ in lines(files, side)}) == len(rows)
    database.connection.close()


def test_columns_and_queries(theirs: Database, tmp_path: Path) -> None:
    theirs.fill(4)
    files, _, side = fetch(theirs.job(columns=["title"], version="updated"), tmp_path)
    assert next(fields for _, _, fields in lines(files, side)) == {
        "id": 0,
        "text": "text 0",
        "title": "title 0",
        "updated": 1,
    }
    query = "SELECT id AS nr, upper(text) AS body FROM articles WHERE id > 3 -- no more"
    files, _, side = fetch(theirs.job(query=query, key="nr", text_field="body"), tmp_path)
    assert lines(files, side) == [
        (6, "6", {"nr": 6, "body": "TEXT 2"}),
        (9, "9", {"nr": 9, "body": "TEXT 3"}),
    ]
    assert {f["path"] for f in files} == {"query/lowest/rows"}


@pytest.mark.parametrize("version", ["", "updated"])
@pytest.mark.parametrize(
    "change",
    [
        "UPDATE articles SET text = 'new', updated = 2 WHERE id = 30",
        "DELETE FROM articles WHERE id = 30",
        "DELETE FROM articles",
        "INSERT INTO articles VALUES (31, 'x', 'y', 1)",
    ],
)
def test_a_table_that_changes_between_listing_and_fetching(
    theirs: Database, tmp_path: Path, version: str, change: str
) -> None:
    theirs.fill(200)
    job = theirs.job(version=version)
    listing = list_sources(job, OUTSIDE)
    theirs.do(change)
    files, dead, side = fetch_listed(job, listing, tmp_path)
    assert len(files) + len(dead) == listing.num_rows
    assert len(dead) == (listing.num_rows if change == "DELETE FROM articles" else 1)
    for letter in dead:
        assert letter["error"] == "SourceChanged"
        assert "its rows changed after they were listed" in letter["message"]
    # What did not change is whole, and nothing else came.
    assert {f["path"] for f in files} == set(listing["path"].to_pylist()) - {d["path"] for d in dead}
    assert all(fields["text"] == f"text {position // 3}" for position, _, fields in lines(files, side))
    # The next listing has another mark: it is taken anew.
    after = listed(job)
    before = dict(zip(listing["path"].to_pylist(), listing["etag"].to_pylist(), strict=True))
    assert all(after.get(d["path"]) != before[d["path"]] for d in dead)


@pytest.mark.parametrize("version", ["", "updated"])
def test_a_range_is_read_once(theirs: Database, tmp_path: Path, version: str) -> None:
    theirs.fill(200)
    job = theirs.job(version=version)
    first, _, side = fetch(job, tmp_path)
    theirs.do("UPDATE articles SET text = 'new', updated = 2 WHERE id = 300")
    asked: list[str] = []

    class Counting(FolderSide):
        def store_raw(self, data: Iterable[bytes], mark: str = "") -> tuple[str, str, int]:
            asked.append(json.loads(mark)[2])
            return super().store_raw(data, mark)

    (found,) = DiscoverStep(job, list_sources(job, OUTSIDE)).run(FolderSide(job, tmp_path), 0)
    inputs = {("discover", "files"): found.outputs["files"].drop_columns(["slice"])}
    counting = Counting(job, tmp_path, inputs, marks=side.marks)
    again = [
        row
        for result in FetchStep(job, outside=OUTSIDE).run(counting, 0)
        for row in result.outputs["files"].to_pylist()
    ]
    assert [f["path"] for f in again] == [f["path"] for f in first]
    assert asked == [new["path"] for new, old in zip(again, first, strict=True) if new != old]
    assert len(asked) == 1


def test_the_columns_are_asked_for_once(
    theirs: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs.fill(200)
    listing = list_sources(theirs.job(), OUTSIDE)
    asked: list[object] = []
    real = SqlTable._asked

    def counted(table: SqlTable, ask: Any) -> Any:
        asked.append(ask)
        return real(table, ask)

    monkeypatch.setattr(SqlTable, "_asked", counted)
    files, _, _ = fetch_listed(theirs.job(), listing, tmp_path)
    assert len(files) > 5
    assert len(asked) == 1


def test_rows_behind_the_last_listed_one_are_not_read(theirs: Database, tmp_path: Path) -> None:
    theirs.fill(100)
    job = theirs.job()
    listing = list_sources(job, OUTSIDE)
    theirs.fill(50, first=100)
    files, dead, side = fetch_listed(job, listing, tmp_path)
    assert dead == []
    assert max(position for position, _, _ in lines(files, side)) == 99 * 3


def test_bytes_that_are_not_utf8_stay_as_they_are(theirs: Database, tmp_path: Path) -> None:
    theirs.fill(3)
    theirs.do("UPDATE articles SET text = CAST(x'61ff' AS TEXT) WHERE id = 3")
    files, dead, side = fetch(theirs.job(), tmp_path)
    assert dead == []
    with side.open_source("db", files[0]["path"], files[0]["location"]) as opened:
        assert b'"text":"a\xff"' in opened.read()


def test_fingerprints_of_other_sources_stay(tmp_path: Path) -> None:
    local = {"kind": "files", "path": str(tmp_path), "source_id": "a"}
    table = {"kind": "sql", "url": "sqlite:///x", "table": "t", "key": "id", "source_id": "db"}

    def step(*sources: dict[str, Any]) -> FetchStep:
        return FetchStep(parse_job({"dataset": {"id": "t"}, "sources": list(sources)}))

    assert step(local, table).fingerprint_of("a") == step(local).fingerprint() == {"version": 1}
    assert step(local, table).fingerprint_of("db") == step(table).fingerprint()


def test_the_order_of_rows_and_of_columns_in_the_database_does_not_matter(tmp_path: Path) -> None:
    first = Database(tmp_path / "1.db", "CREATE TABLE articles (id INTEGER, text TEXT, title TEXT)")
    second = Database(tmp_path / "2.db", "CREATE TABLE articles (title TEXT, text TEXT, id INTEGER)")
    ids = list(range(100))
    for i in ids:
        first.do("INSERT INTO articles VALUES (?, ?, ?)", i, f"t{i}", f"x{i}")
    random.Random(1).shuffle(ids)
    for i in ids:
        second.do("INSERT INTO articles VALUES (?, ?, ?)", f"x{i}", f"t{i}", i)
    one, two = fetch(first.job(), tmp_path), fetch(second.job(), tmp_path)
    assert [f["sha256"] for f in one[0]] == [f["sha256"] for f in two[0]]
