"""Where is this in our data: every kind of query, every kind of fate."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from dataflow_ops.cli.app import app
from dataflow_ops.console.search import kind_of, search, search_home, urls_of
from dataflow_ops.errors import ConfigError
from dataflow_ops.job_file import load_job
from dataflow_ops.pipeline.run import run_job
from dataflow_ops.state.store import StateStore
from tests.console.product_home import LOOP, Product, build
from tests.pipeline import by_day, inside, prose

RESULT = {
    *("dataset", "version", "doc_id", "source", "path", "url", "domain", "language", "status", "rule"),
    *("layer", "survivor", "similarity", "enough", "exact", "shard", "snippet"),
}


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory) -> Product:
    return build(tmp_path_factory.mktemp("search"))


@pytest.fixture(scope="module")
def state(product: Product) -> Iterator[StateStore]:
    with product.state() as state:
        yield state


def by_path(found: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {row["path"]: row for row in found["results"]}


def id_of(product: Product, state: StateStore, path: str) -> str:
    found = by_path(search(product.home, state, path, by="url"))
    return str(found[path]["doc_id"])


def test_a_pasted_text_is_found_however_it_is_laid_out(product: Product, state: StateStore) -> None:
    pasted = "  " + product.texts["note-0.txt"].replace("\n", "\r\n\t").lower()
    found = search(product.home, state, pasted)
    assert set(found) == {"by", "query", "results", "complete", "searched", "cli"}
    assert found["by"] == "text"
    assert found["complete"]
    assert len(found["query"]["sha1"]) == 40
    [row] = found["results"]
    assert set(row) == RESULT
    assert (row["dataset"], row["version"]) == ("tiny", product.version)
    assert (row["status"], row["exact"], row["similarity"]) == ("kept", True, 1.0)
    assert (row["domain"], row["language"], row["path"]) == ("notes", "en", "note-0.txt")
    assert row["rule"] is row["layer"] is row["survivor"] is None
    shard = product.home.root / "versions" / product.version / row["shard"]
    assert shard.is_file()
    assert product.texts["note-0.txt"].startswith(row["snippet"][:40])
    assert found["searched"]["versions"] == 1
    assert found["searched"]["chunks"] > 1


def test_copies_are_removed_in_favour_of_a_survivor(product: Product, state: StateStore) -> None:
    found = by_path(search(product.home, state, product.texts["note-1.txt"]))
    assert set(found) == {"note-1.txt", "copy.txt"}
    assert found["note-1.txt"]["exact"]
    assert found["copy.txt"]["exact"]
    removed = [row for row in found.values() if row["status"] == "removed"]
    kept = [row for row in found.values() if row["status"] == "kept"]
    assert [row["survivor"] for row in removed] == [kept[0]["doc_id"]]
    assert (removed[0]["layer"], removed[0]["rule"], removed[0]["shard"]) == ("dedup", "exact", None)


def test_near_copies_come_with_their_similarity(product: Product, state: StateStore) -> None:
    found = search(product.home, state, product.texts["note-2.txt"].replace("that", "which", 1))
    rows = by_path(found)
    assert set(rows) == {"note-2.txt", "near.txt"}
    assert all(0.8 <= row["similarity"] < 1.0 and not row["exact"] for row in rows.values())
    assert {row["rule"] for row in rows.values()} == {None, "near"}
    order = [row["similarity"] for row in found["results"]]
    assert order == sorted(order, reverse=True)


def test_a_refused_text_is_found_with_its_rule(product: Product, state: StateStore) -> None:
    [row] = search(product.home, state, LOOP)["results"]
    assert (row["path"], row["status"], row["layer"], row["exact"]) == ("loop.txt", "removed", "filter", True)
    assert row["rule"]
    by_id = search(product.home, state, row["doc_id"])["results"]
    assert [(r["rule"], r["status"]) for r in by_id] == [(row["rule"], "removed")]


def test_a_text_that_is_nowhere_is_not_found(product: Product, state: StateStore) -> None:
    found = search(product.home, state, prose.note(999, prose.sentences()))
    assert found["results"] == []
    assert found["complete"]


def test_an_exact_text_needs_no_text_of_the_corpus(product: Product, tmp_path: Path) -> None:
    shutil.copytree(product.root / "home", tmp_path / "home")
    shutil.rmtree(tmp_path / "home" / "data" / "parse")
    [row] = search_home(tmp_path / "home", product.texts["note-3.txt"])["results"]
    assert (row["path"], row["exact"], row["snippet"]) == ("note-3.txt", True, None)


def test_what_the_mix_left_out_says_so(product: Product, state: StateStore) -> None:
    found = [
        search(product.home, state, prose.note(100 + i, prose.sentences()))["results"][0] for i in range(6)
    ]
    left_out = [row for row in found if row["status"] == "not_sampled"]
    assert left_out
    assert len(left_out) < 6
    assert all((row["layer"], row["shard"]) == ("mix", None) for row in left_out)


@pytest.mark.parametrize(
    "written",
    ["https://example.org/p/2", "http://example.org/p/2/", "https://example.org/p/2#top"],
)
def test_urls_are_found_as_people_write_them(product: Product, state: StateStore, written: str) -> None:
    found = search(product.home, state, written)
    assert found["by"] == "url"
    assert [row["url"] for row in found["results"]] == ["https://example.org/p/2"]


def test_ids_by_their_start_and_dead_letters(product: Product, state: StateStore) -> None:
    doc_id = id_of(product, state, "note-4.txt")
    assert search(product.home, state, doc_id[:12])["results"][0]["doc_id"] == doc_id
    rows = search(product.home, state, "rows.jsonl", by="url")["results"]
    dead = [row for row in rows if row["status"] == "dead"]
    assert [(row["rule"], row["layer"]) for row in dead] == [("MalformedRecord", "parse")]
    assert len(rows) == 5
    if dead[0]["doc_id"]:
        assert search(product.home, state, dead[0]["doc_id"])["results"] == dead


def test_rights_bound_what_is_shown(product: Product, state: StateStore) -> None:
    text = product.texts["note-0.txt"]
    [row] = search(product.home, state, text, with_text=lambda dataset: dataset != "tiny")["results"]
    assert row["snippet"] is None
    hidden = search(product.home, state, text, readable=lambda dataset: dataset != "tiny")
    assert hidden["results"] == []
    assert hidden["searched"] == {"versions": 0, "chunks": 0}


def test_cleared_outputs_leave_ids_and_urls(product: Product, tmp_path: Path) -> None:
    shutil.copytree(product.root / "home", tmp_path / "home")
    shutil.rmtree(tmp_path / "home" / "data")
    by_url = search_home(tmp_path / "home", "https://example.org/p/1")
    [row] = by_url["results"]
    assert row["status"] == "kept"
    by_text = search_home(tmp_path / "home", product.texts["note-0.txt"])
    assert by_text["results"] == []
    assert not by_text["complete"]


def test_what_a_query_is(product: Product, state: StateStore) -> None:
    kinds = {
        "0123abcd": "id",
        "https://example.org/a b": "text",
        "https://example.org/a": "url",
        "www.example.org": "url",
        "notes/one.md": "url",
        "note-1.txt": "url",
        "one two": "text",
        "你好，世界": "text",
        "word": "text",
    }
    assert {query: kind_of(query) for query in kinds} == kinds
    assert "https://example.org/p/2" in urls_of("http://example.org/p/2/#x")
    assert urls_of(" notes/one.md ")[0] == "notes/one.md"
    for query, by in (("  ", "auto"), ("xyz", "id"), ("text", "somehow")):
        with pytest.raises(ConfigError):
            search(product.home, state, query, by=by)


def test_versions_below_the_current_one_are_looked_into(tmp_path: Path) -> None:
    job, home = by_day.build(tmp_path / "sources"), tmp_path / "home"
    full = inside.run(job, home)
    day = run_job(
        load_job(job), home, mode="incremental", workers=0, reporter=inside.Notes(), data_date=by_day.DAYS[2]
    )
    assert (full.current, day.current) == (True, True)
    rows = search_home(home, "note-2-00.md", by="url")
    assert day.version_id in {row["version"] for row in rows["results"]}
    assert rows["searched"]["versions"] == 2
    text = (tmp_path / "sources" / "notes" / by_day.DAYS[2] / "note-2-04.md").read_text(encoding="utf-8")
    assert day.version_id in {row["version"] for row in search_home(home, text)["results"] if row["exact"]}
    one = search_home(home, text, version=full.version_id)
    assert {row["version"] for row in one["results"]} == {full.version_id}


def test_the_command_says_the_same(product: Product, tmp_path: Path) -> None:
    home = str(product.root / "home")
    runner = CliRunner()
    pasted = tmp_path / "pasted.txt"
    pasted.write_text(product.texts["copy.txt"], encoding="utf-8")
    done = runner.invoke(app, ["find", "--file", str(pasted), "--home", home])
    assert done.exit_code == 0, done.output
    assert "the same text, removed in dedup by exact, in favour of" in done.output
    assert "2 found by text in 1 version(s)" in done.output
    done = runner.invoke(app, ["find", "https://example.org/p/3", "--home", home, "--json"])
    assert [row["path"] for row in json.loads(done.output)["results"]] == ["rows.jsonl"]
    done = runner.invoke(app, ["find", "--home", home])
    assert isinstance(done.exception, ConfigError)
