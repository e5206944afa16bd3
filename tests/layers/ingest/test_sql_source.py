"""``kind: sql``: ranges of keys, from real databases."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dataflow_ops.errors import ConfigError
from dataflow_ops.layers.ingest.discover import DiscoverStep
from dataflow_ops.layers.ingest.listing import check_sources, list_sources
from dataflow_ops.layers.ingest.sources.sql import ROW_BYTES
from dataflow_ops.pipeline.outside import OUTSIDE
from tests.layers.ingest.side import FolderSide
from tests.layers.ingest.sql_database import Database, listed


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


def test_other_columns_make_other_ranges_of_the_same_name(theirs: Database) -> None:
    theirs.fill(30)
    one, other = (
        listed(theirs.job(version="updated")),
        listed(theirs.job(version="updated", columns=["title"])),
    )
    assert one.keys() == other.keys()
    assert all(one[path] != other[path] for path in one)


def test_where_the_database_lies_is_no_part_of_any_mark(theirs: Database, tmp_path: Path) -> None:
    theirs.fill(60)
    moved = tmp_path / "moved.db"
    moved.write_bytes(theirs.path.read_bytes())
    assert listed(theirs.job()) == listed(theirs.job(url=f"sqlite:///{moved}"))
