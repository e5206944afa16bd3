"""Runs over a table: a full one, the days behind it, and where its password is not."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import sqlalchemy as sa
import yaml

from dataflow_ops.clients import sql_table
from dataflow_ops.errors import ConfigError, SourceAway, SourceRefused
from dataflow_ops.layers.ingest.listing import SAME_FILE
from dataflow_ops.layers.ingest.sources.sql import GONE
from dataflow_ops.pipeline.file_lists import files_of_run
from dataflow_ops.pipeline.left_behind import files_not_in
from dataflow_ops.schema import FILES
from dataflow_ops.storage.chunk_store import ChunkStore
from dataflow_ops.storage.local import LocalStore
from tests.cases.product import dataflow
from tests.pipeline.compacting import rows
from tests.pipeline.growing import Growing
from tests.pipeline.inside import Notes, published
from tests.pipeline.prose import note, sentences

TEXTS = [note(number, sentences()) for number in range(40)]
SECRET = "hush-hush/5@:%"


class Table(Growing):
    """Articles in a database, a job that reads them, and a home."""

    def __init__(self, root: Path, url: str, told: str, **more: Any) -> None:
        super().__init__(root)
        self.engine = sa.create_engine(url)
        self.do(
            "CREATE TABLE articles (slug VARCHAR(40) PRIMARY KEY, body TEXT, title TEXT, updated INTEGER)"
        )
        source = {
            "source_id": "db",
            "kind": "sql",
            "url": told,
            "table": "articles",
            "key": "slug",
            "text_field": "body",
            "range_rows": 3,
            **more,
        }
        job = {
            "dataset": {"id": "grows"},
            "sources": [source],
            "ingest": {"chunk_mb": 0.03},
            "drift": {"max_domain_shift": 1, "max_language_shift": 1},
            "run": {"max_dead_share": 1},
            "output": {"version": "g", "shards": 2},
        }
        self.job.write_text(yaml.safe_dump(job), encoding="utf-8")

    def do(self, statement: str, **values: object) -> None:
        with self.engine.begin() as connection:
            connection.execute(sa.text(statement), values)

    def article(self, slug: str, text: str | None, updated: int = 1) -> None:
        self.do(
            "INSERT INTO articles VALUES (:slug, :text, :title, :updated)",
            slug=slug,
            text=text,
            title=f"About {slug}",
            updated=updated,
        )

    def fill(self, n: int = 24) -> None:
        for i in range(n):
            self.article(f"a-{i:02}", TEXTS[i])

    def change(self, slug: str, text: str, updated: int = 2) -> None:
        self.do(
            "UPDATE articles SET body = :text, updated = :updated WHERE slug = :slug",
            slug=slug,
            text=text,
            updated=updated,
        )

    def holds(self, version: str) -> dict[str, str]:
        """Key -> text of the documents of a version."""
        found = rows(self, version)
        told = {row["source_record_id"]: row["text"] for row in found}
        assert len(told) == len(found), "a row stands twice"
        return told

    def expected(self) -> dict[str, str]:
        """What the table holds now."""
        wanted = sa.text("SELECT slug, body FROM articles WHERE body IS NOT NULL")
        with self.engine.connect() as connection:
            return {slug: text.strip() for slug, text in connection.execute(wanted)}

    def listed(self, run_id: str) -> list[dict[str, Any]]:
        """Files that a run took."""
        with self.state() as state:
            return files_of_run(run_id, state, ChunkStore(LocalStore(self.home))).to_pylist()


def same(found: dict[str, str], expected: dict[str, str]) -> bool:
    return {k: v.strip() for k, v in found.items()} == expected


@pytest.fixture
def postgres(tmp_path: Path, empty_postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Table]:
    monkeypatch.setenv("THEIR_PASSWORD", SECRET)
    url = sa.make_url(empty_postgres_url).set(drivername="postgresql+psycopg")
    # The server trusts whoever comes: it takes any password.
    told = f"postgresql://{url.username}:${{THEIR_PASSWORD}}@127.0.0.1:{url.port}/{url.database}"
    made = Table(tmp_path, url.render_as_string(), told, version="updated")
    yield made
    made.engine.dispose()


@pytest.fixture
def lite(tmp_path: Path) -> Iterator[Table]:
    url = f"sqlite:///{tmp_path}/theirs.db"
    made = Table(tmp_path, url, url)
    yield made
    made.engine.dispose()


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def table(request: pytest.FixtureRequest) -> Table:
    found: Table = request.getfixturevalue({"sqlite": "lite", "postgres": "postgres"}[request.param])
    return found


def everywhere(folder: Path, text: str) -> list[Path]:
    """Files below a folder that hold a text."""
    return [p for p in folder.rglob("*") if p.is_file() and text.encode() in p.read_bytes()]


def test_a_table_and_its_days(table: Table) -> None:
    table.fill()
    table.article("empty", None)
    full = table.run()
    assert full.current
    before = table.expected()
    assert same(table.holds(full.version_id), before)
    table.verify(full.version_id)
    with table.state() as state:
        [kept] = state.dead_letters(run_id=full.run_id)
    assert (kept.letter.error, kept.letter.message) == ("MalformedRecord", "'body' is null")

    # The same again: nothing is read, nothing is made.
    notes = Notes()
    again = table.run(notes=notes)
    assert again.version_id == full.version_id
    assert not {"fetch", "parse"} & notes.ran().keys()

    table.do("DELETE FROM articles WHERE slug = 'empty'")
    table.change("a-03", TEXTS[30])
    table.change("a-11", TEXTS[31])
    table.do("DELETE FROM articles WHERE slug = 'a-05'")
    table.article("a-99", TEXTS[32])
    notes = Notes()
    day = table.day(2, notes=notes)
    assert day.current
    assert same(table.holds(day.version_id), table.expected())
    table.verify(day.version_id)
    left = next(note for note in notes.notes if "are left out" in note)
    assert not left.startswith("0 file(s)"), "ranges without changes are not taken again"

    quiet = table.day(3)
    assert same(table.holds(quiet.version_id), table.expected())
    whole = table.run(date="2026-11-04")
    assert same(table.holds(whole.version_id), table.expected())


def test_a_row_that_begins_a_range_goes_and_a_row_of_that_range_changes(table: Table) -> None:
    table.fill()
    full = table.run()
    starts = [
        json.loads(row["etag"])["from"][0] for row in table.listed(full.run_id) if "lowest" not in row["path"]
    ]
    assert len(starts) > 3
    slugs = sorted(table.expected())
    start = next(s for s in sorted(starts) if slugs[slugs.index(s) + 1] not in starts)
    table.do("DELETE FROM articles WHERE slug = :slug", slug=start)
    table.change(slugs[slugs.index(start) + 1], TEXTS[33])
    for number in (2, 3):
        day = table.day(number)
        assert same(table.holds(day.version_id), table.expected())
        table.verify(day.version_id)
    # It comes back: its range begins where it began.
    table.article(start, TEXTS[34])
    day = table.day(4)
    assert same(table.holds(day.version_id), table.expected())


def test_a_table_that_was_emptied_keeps_its_documents_until_the_next_full_run(lite: Table) -> None:
    lite.fill(6)
    full = lite.run()
    before = lite.expected()
    lite.do("DELETE FROM articles")
    notes = Notes()
    day = lite.day(2, notes=notes)
    assert same(lite.holds(day.version_id), before)
    assert "source 'db' has no rows: what it gave before stays until the next full run" in notes.notes
    assert full.version_id != day.version_id


def test_workers_and_chunks_of_work_do_not_show(lite: Table) -> None:
    lite.fill(20)
    lite.run()
    one = published(lite.home)
    lite.home = lite.root / "other"
    lite.run(workers=2)
    assert published(lite.home) == one


@pytest.mark.postgres
def test_the_password_is_nowhere(postgres: Table) -> None:
    postgres.fill(8)
    assert postgres.run().current
    postgres.change("a-02", TEXTS[30])
    postgres.day(2)
    assert everywhere(postgres.root, "THEIR_PASSWORD"), "the job tells where it is"
    assert everywhere(postgres.root, SECRET) == []
    assert everywhere(postgres.root, "hush-hush") == []


@pytest.mark.postgres
def test_a_password_in_the_job_file_is_refused_and_not_repeated(postgres: Table) -> None:
    text = postgres.job.read_text().replace("${THEIR_PASSWORD}", "hush-hush")
    postgres.job.write_text(text)
    said = dataflow("run", postgres.job, "--home", postgres.home, "--workers", 0)
    assert said.code == 2
    assert "a password stands in the job file; write ${NAME} in its place" in said.err
    assert "hush-hush" not in said.err + said.out


@pytest.mark.postgres
def test_a_missing_variable_is_told_before_a_run(postgres: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("THEIR_PASSWORD")
    with pytest.raises(ConfigError, match="environment variable THEIR_PASSWORD is not set"):
        postgres.run()
    assert not postgres.home.exists()


@pytest.mark.postgres
def test_a_database_that_goes_away_stops_the_run_which_goes_on_when_it_is_back(
    postgres: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    postgres.fill()
    monkeypatch.setattr(sql_table, "PAUSES_S", (0.01, 0.01))
    real = sql_table.engine_for
    gone = []

    def engine_for(where: str, url: str, environment: Any = None) -> Any:
        gone.append(url)
        # The look, the listing, and the first chunks are let through.
        return real(where, url.replace(f":{postgres.engine.url.port}/", ":1/") if len(gone) > 3 else url)

    monkeypatch.setattr(sql_table, "engine_for", engine_for)
    with pytest.raises(SourceAway, match=r"source 'db': the database does not answer .*run again"):
        postgres.run(set=["ingest.chunk_mb=0.01"])
    monkeypatch.setattr(sql_table, "engine_for", real)
    notes = Notes()
    done = postgres.run(notes=notes, set=["ingest.chunk_mb=0.01"])
    assert done.current
    assert same(postgres.holds(done.version_id), postgres.expected())
    assert notes.reports["fetch"].skipped, "what was fetched before is not fetched again"


def test_a_table_that_is_taken_away_stops_the_run_and_costs_no_chunk(lite: Table) -> None:
    lite.fill(12)
    notes = Notes()

    def on_task(step: str, outcome: object) -> None:
        if step == "discover":
            lite.do("ALTER TABLE articles RENAME TO hidden")

    notes.on_task = on_task
    with pytest.raises(SourceRefused, match="source 'db': the database says: no such table: articles"):
        lite.run(notes=notes)
    lite.do("ALTER TABLE hidden RENAME TO articles")
    done = lite.run()
    assert done.current
    assert same(lite.holds(done.version_id), lite.expected())


def test_a_full_version_need_not_have_what_a_day_found_emptied() -> None:
    def files(*rows: tuple[str, int, str]) -> pa.Table:
        listed = [
            {"source_id": "db", "path": p, "size": size, "mtime_ns": 0, "etag": e} for p, size, e in rows
        ]
        return pa.Table.from_pylist(listed, schema=FILES.empty_table().select(SAME_FILE).schema)

    day = files(("gone", 0, GONE), ("same", 5, "a"), ("late", 5, "b"), ("changed", 5, "c"), ("had", 0, GONE))
    full = files(("same", 5, "a"), ("changed", 5, "old"), ("had", 5, "d"))
    assert sorted(files_not_in(day, full)["path"].to_pylist()) == ["changed", "had", "late"]


def test_lineage_tells_table_and_key(lite: Table) -> None:
    lite.fill(6)
    done = lite.run()
    one = next(row for row in rows(lite, done.version_id) if row["source_record_id"] == "a-03")
    said = dataflow("lineage", one["id"], "--home", lite.home)
    assert said.code == 0
    assert "source     db: articles/" in said.out
    assert "record id  a-03" in said.out
    assert json.loads(one["metadata"]) == {"title": "About a-03", "updated": 1}
