"""One document's way through a version, for people: every fate, with and without the right to read text."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dataflow_ops.console.document import document
from dataflow_ops.console.search import search
from dataflow_ops.errors import ConfigError
from dataflow_ops.pipeline.home import open_home
from dataflow_ops.state.store import StateStore
from tests.console.product_home import LOOP, Product, build

CONTRACT = {
    *("doc_id", "status", "steps", "source", "file", "record", "url", "duplicates", "survivor", "text"),
}
STEP = {"step", "verdict", "rule", "value", "low", "high", "version", "detail"}


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory) -> Product:
    return build(tmp_path_factory.mktemp("document"))


@pytest.fixture(scope="module")
def state(product: Product) -> Iterator[StateStore]:
    with product.state() as state:
        yield state


@pytest.fixture(scope="module")
def rows(product: Product, state: StateStore) -> dict[str, dict[str, Any]]:
    """Search results by path."""
    found = {}
    for name in (*product.texts, *(f"pool-{i}.txt" for i in range(6))):
        found[name] = search(product.home, state, name, by="url")["results"][0]
    return found


def verdicts(found: dict[str, Any]) -> list[tuple[str, str]]:
    return [(step["step"], step["verdict"]) for step in found["steps"]]


def test_a_kept_document_passed_every_rule(
    product: Product, state: StateStore, rows: dict[str, dict[str, Any]]
) -> None:
    found = document(product.home, state, rows["note-0.txt"]["doc_id"], with_text=True)
    assert set(found) >= CONTRACT
    assert all(set(step) == STEP for step in found["steps"])
    assert (found["status"], found["source"], found["file"], found["record"]) == (
        "kept",
        "notes",
        "note-0.txt",
        0,
    )
    steps = verdicts(found)
    assert [step for step, _ in steps if step != "filter"] == ["parse", "confirm", "label", "plan", "export"]
    assert {verdict for _, verdict in steps} == {"kept"}
    assert found["steps"][-1]["detail"] == rows["note-0.txt"]["shard"]
    assert found["steps"][-3]["detail"].startswith("domain notes, language en, kind prose")
    length = next(step for step in found["steps"] if step["rule"] == "length")
    assert (length["verdict"], length["low"], length["version"]) == ("kept", 120, "1")
    assert length["value"] == len(found["text"])
    assert found["text"].split() == product.texts["note-0.txt"].split()
    assert found["survivor"] is None
    assert found["shard"] == rows["note-0.txt"]["shard"]


def test_text_needs_its_right(product: Product, state: StateStore, rows: dict[str, dict[str, Any]]) -> None:
    assert document(product.home, state, rows["note-0.txt"]["doc_id"])["text"] is None


def test_a_refused_document_ends_at_its_rule(
    product: Product, state: StateStore, rows: dict[str, dict[str, Any]]
) -> None:
    found = document(product.home, state, rows["loop.txt"]["doc_id"], with_text=True)
    assert found["status"] == "removed"
    last = found["steps"][-1]
    assert (last["step"], last["verdict"], last["rule"]) == ("filter", "rejected", rows["loop.txt"]["rule"])
    assert (last["low"] is None) != (last["high"] is None)
    broken = last["value"] < last["low"] if last["low"] is not None else last["value"] > last["high"]
    assert broken
    assert found["text"].strip() == LOOP.strip()


def test_a_copy_names_its_survivor_and_the_survivor_counts_it(
    product: Product, state: StateStore, rows: dict[str, dict[str, Any]]
) -> None:
    pair = [rows["note-2.txt"], rows["near.txt"]]
    removed = next(row for row in pair if row["status"] == "removed")
    kept = next(row for row in pair if row["status"] == "kept")
    found = document(product.home, state, removed["doc_id"])
    assert found["survivor"] == kept["doc_id"]
    assert found["survivor_detail"]["shard"] == kept["shard"]
    assert 0.8 <= found["survivor_detail"]["similarity"] < 1.0
    assert (verdicts(found)[-1], found["steps"][-1]["rule"]) == (("confirm", "removed"), "near")
    other = document(product.home, state, kept["doc_id"])
    assert other["duplicates"] == 1
    assert "stands for 1 removed duplicate(s)" in [step["detail"] for step in other["steps"]]


def test_not_drawn_and_dead(product: Product, state: StateStore, rows: dict[str, dict[str, Any]]) -> None:
    left_out = next(row for row in rows.values() if row["status"] == "not_sampled")
    found = document(product.home, state, left_out["doc_id"])
    assert found["status"] == "not_sampled"
    assert verdicts(found)[-1] == ("plan", "not_sampled")
    assert "the mixing plan drew" in found["detail"]
    dead = search(product.home, state, "rows.jsonl", by="url")["results"]
    letter = next(row for row in dead if row["status"] == "dead")
    found = document(product.home, state, letter["doc_id"])
    assert (found["status"], verdicts(found)) == ("dead", [("parse", "dead")])
    assert found["record"] > 0


def test_an_unknown_document_is_an_error_that_helps(product: Product, state: StateStore) -> None:
    with pytest.raises(ConfigError, match="no document of this run"):
        document(product.home, state, "0" * 32)


def test_after_outputs_are_cleared_lineage_still_tells(
    product: Product, rows: dict[str, dict[str, Any]], tmp_path: Path
) -> None:
    shutil.copytree(product.root / "home", tmp_path / "home")
    shutil.rmtree(tmp_path / "home" / "data")
    home = open_home(tmp_path / "home")
    with StateStore(home.state_url) as state:
        found = document(home, state, rows["near.txt"]["doc_id"], with_text=True)
        kept = document(home, state, rows["note-0.txt"]["doc_id"], with_text=True)
    assert {found["status"], kept["status"]} <= {"kept", "removed"}
    assert kept["text"] is None
    assert "no longer kept" in kept["detail"]
    assert kept["shard"] == rows["note-0.txt"]["shard"]
