"""``kind: sql``: ranges of keys, from real databases."""

from __future__ import annotations

import json
import random
import sqlite3
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dataflow_ops import media
from dataflow_ops.errors import ConfigError
from dataflow_ops.job_file import parse_job
from dataflow_ops.layers.ingest.discover import DiscoverStep
from dataflow_ops.layers.ingest.fetch import FetchStep
from dataflow_ops.layers.ingest.listing import check_sources, list_sources
from dataflow_ops.layers.ingest.sources.sql import ROW_BYTES
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


@pytest.fixture
def theirs(tmp_path: Path) -> Iterator[Database]:
    database = Database(tmp_path / "theirs.db")
    yield database
    database.connection.close()


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


@pytest.mark.parametrize("version", ["", "updated"])
def test_what_changes_moves_its_own_range_only(theirs: Database, version: str) -> None:
    theirs.fill(400)
    job = theirs.job(version=version)
    before = listed(job)
    assert listed(job) == before
    starts = [json.loads(mark)["from"][0] for mark in before.values()]
    inside = next(i for i in range(0, 1200, 3) if i not in starts and i + 3 not in starts)

    def changed() -> set[str]:
        after = listed(job)
        return {p for p in before.keys() | after.keys() if before.get(p) != after.get(p)}

    theirs.do("UPDATE articles SET text = 'new', updated = 2 WHERE id = ?", inside)
    [path] = changed()
    assert json.loads(before[path])["from"][0] < inside <= json.loads(before[path])["to"][0]
    theirs.do("UPDATE articles SET text = ?, updated = 1 WHERE id = ?", f"text {inside // 3}", inside)
    assert changed() == set()
    theirs.do("DELETE FROM articles WHERE id = ?", inside)
    assert changed() == {path}
    theirs.do(
        "INSERT INTO articles VALUES (?, ?, ?, 1)", inside, f"text {inside // 3}", f"title {inside // 3}"
    )
    assert changed() == set()
    theirs.fill(1, first=400)
    assert len(changed()) == 1


def test_the_row_where_a_range_begins(theirs: Database) -> None:
    theirs.fill(400)
    before = listed(theirs.job())
    start = sorted(json.loads(mark)["from"][0] for mark in before.values())[5]
    theirs.do("DELETE FROM articles WHERE id = ?", start)
    after = listed(theirs.job())
    gone = f"articles/id>={start}/rows"
    assert before.keys() - after.keys() == {gone}
    [grown] = [p for p in after if after[p] != before[p]]
    assert json.loads(after[grown])["to"] == json.loads(before[gone])["to"]
    theirs.fill(1, first=start // 3)
    assert listed(theirs.job()) == before


def test_without_a_version_every_change_is_seen_and_with_one_only_its_own(theirs: Database) -> None:
    theirs.fill(50)
    plain, versioned = theirs.job(), theirs.job(version="updated")
    before = listed(plain), listed(versioned)
    theirs.do("UPDATE articles SET title = 'other' WHERE id = 30")
    assert listed(plain) != before[0]
    assert listed(versioned) == before[1]
    theirs.do("UPDATE articles SET updated = NULL WHERE id = 30")
    assert listed(versioned) != before[1]


def test_with_a_version_the_texts_are_not_read(theirs: Database) -> None:
    theirs.fill(50)
    table = list_sources(theirs.job(version="updated"), OUTSIDE)
    assert sum(table["size"].to_pylist()) == 50 * ROW_BYTES
    plain = list_sources(theirs.job(), OUTSIDE)
    assert sum(plain["size"].to_pylist()) < 50 * 100


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


def test_rows_without_a_key_are_a_dead_letter(theirs: Database, tmp_path: Path) -> None:
    database = Database(tmp_path / "x.db", "CREATE TABLE articles (id, text TEXT)")
    for i in (1, 2, None, None):
        database.do("INSERT INTO articles VALUES (?, 'x')", i)
    job = database.job()
    listing = list_sources(job, OUTSIDE)
    assert dict(zip(listing["path"].to_pylist(), listing["problem"].to_pylist(), strict=True)) == {
        "articles/id is NULL": "2 row(s) without a value in id: they can't be told apart; give them one",
        "articles/lowest/rows": "",
    }
    (result,) = DiscoverStep(job, listing).run(FolderSide(job, tmp_path), 0)
    result.counts.check("discover")
    assert result.counts.dead == 1


def test_an_empty_table_is_no_error(theirs: Database) -> None:
    assert listed(theirs.job()) == {}
    check_sources(theirs.job(), OUTSIDE)


def test_two_rows_with_one_key_are_refused(theirs: Database, tmp_path: Path) -> None:
    database = Database(tmp_path / "x.db", "CREATE TABLE articles (id, text TEXT)")
    for i in (1, 5, 5, 7):
        database.do("INSERT INTO articles VALUES (?, 'x')", i)
    with pytest.raises(ConfigError, match=r"source 'db': two rows have the key 5; name columns as key"):
        listed(database.job())


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"key": "nr"}, "key: there is no column 'nr'; there are id, text, title, updated"),
        ({"text_field": "body"}, "text_field: there is no column 'body'"),
        ({"version": "changed"}, "version: there is no column 'changed'"),
        ({"columns": ["title", "tags"]}, "columns: there is no column 'tags'"),
        ({"table": "nowhere"}, "the database says: no such table: nowhere"),
    ],
)
def test_what_is_not_there_is_told_before_a_run(theirs: Database, more: dict[str, Any], said: str) -> None:
    theirs.fill(5)
    with pytest.raises(ConfigError, match=said):
        check_sources(theirs.job(**more), OUTSIDE)


@pytest.mark.postgres
def test_two_columns_of_one_name(empty_postgres_url: str) -> None:
    job = Database.job(
        SimpleNamespace(path=""),  # type: ignore[arg-type]
        url=empty_postgres_url,
        query="SELECT 1 AS id, 'a' AS text, 'b' AS text",
    )
    with pytest.raises(ConfigError, match="two columns are called text; give one another name in the query"):
        check_sources(job, OUTSIDE)


def test_a_look_reads_one_range(theirs: Database) -> None:
    theirs.fill(50)
    # The key of the last row can't be one; who lists all is told.
    theirs.do("CREATE TABLE odd AS SELECT id AS id, text FROM articles")
    theirs.do("INSERT INTO odd VALUES (x'00', 'last, for SQLite sorts bytes behind numbers')")
    check_sources(theirs.job(table="odd"), OUTSIDE)
    with pytest.raises(ConfigError, match="a key of type bytes"):
        list_sources(theirs.job(table="odd"), OUTSIDE)


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


def test_other_columns_make_other_ranges_of_the_same_name(theirs: Database) -> None:
    theirs.fill(30)
    one, other = (
        listed(theirs.job(version="updated")),
        listed(theirs.job(version="updated", columns=["title"])),
    )
    assert one.keys() == other.keys()
    assert all(one[path] != other[path] for path in one)


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


def test_where_the_database_lies_is_no_part_of_any_mark(theirs: Database, tmp_path: Path) -> None:
    theirs.fill(60)
    moved = tmp_path / "moved.db"
    moved.write_bytes(theirs.path.read_bytes())
    assert listed(theirs.job()) == listed(theirs.job(url=f"sqlite:///{moved}"))


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
