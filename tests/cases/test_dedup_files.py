"""Rows of dedup and norm: each file is a run of its own with the filters off."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from dataflow_ops.kernels.fold import fold_text
from dataflow_ops.kernels.similarity import similarity
from tests.cases.conftest import NewFolder
from tests.cases.product import CASES, Product

FILTERS_OFF = {
    "boilerplate_filter": {"min_text_len": 0, "max_text_len": 500_000},
    "quality_rules": {"enabled": False},
}


class Deduped:
    """What a whole run left of one file, by the ids that the file gives its rows."""

    def __init__(self, folder: Path, name: str) -> None:
        self.product = Product(
            folder,
            [{"source_id": "a", "kind": "jsonl", "path": f"{CASES}/{name}.jsonl"}],
            {"clean": FILTERS_OFF, "ingest": {"chunk_mb": 0.01}},
        )
        assert self.product.run().code == 0
        lines = (CASES / f"{name}.jsonl").read_text("utf-8").split("\n")
        self.texts = {row["id"]: row["text"] for row in (json.loads(line) for line in lines if line)}
        rows = self.product.rows("parse", "text")
        assert {r["source_record_id"]: r["text"] for r in rows} == self.texts
        self.names = {row["doc_id"]: row["source_record_id"] for row in rows}
        self.fates = {self.names[row["doc_id"]]: row for row in self.product.rows("scatter", "fates")}
        self.left = {name for name, row in self.fates.items() if row["fate"] == "exported"}
        assert {r["text"] for r in self.product.exported()} == {self.texts[name] for name in self.left}
        self.product.verify()

    def survivor(self, name: str) -> str:
        row = self.fates[name]
        return name if row["fate"] == "exported" else str(self.names[row["survivor_id"]])


DedupOf = Callable[[str], Deduped]


@pytest.fixture(scope="module")
def deduped(new_folder: NewFolder) -> DedupOf:
    return cache(lambda name: Deduped(new_folder("dedup"), name))


def test_full_width_copies_are_exact_duplicates(deduped: DedupOf) -> None:
    found = deduped("norm/fullwidth_pair")
    assert found.left == {"half"}
    row = found.fates["full"]
    assert (row["fate"], row["rule"], row["similarity"]) == ("duplicate", "exact", 1.0)
    assert "Ｌｅｖｅｌ　３．２" in found.texts["full"]  # compared with what parse stored


def test_superscripts_are_exported_as_they_are(deduped: DedupOf) -> None:
    (row,) = deduped("norm/superscript").product.exported()
    assert all(c in row["text"] for c in "²½︰")


def test_the_longest_of_a_group_survives_alone(deduped: DedupOf) -> None:
    found = deduped("dedup/pairs")
    assert found.left == {"a-long", "b-unrelated", "c-short-1", "c-short-2"}
    assert {found.survivor(n) for n in ("a-copy", "a-space", "a-title")} == {"a-long"}
    assert found.fates["a-long"]["copies"] == 3


def test_every_link_of_a_chain_was_verified_against_its_survivor(deduped: DedupOf) -> None:
    found = deduped("dedup/chain")
    removed = set(found.texts) - found.left
    assert removed
    for name in removed:
        survivor = found.survivor(name)
        assert survivor in found.left
        alike = similarity(fold_text(found.texts[name]), fold_text(found.texts[survivor]), 0.8)
        assert alike >= 0.8
        assert found.fates[name]["similarity"] == pytest.approx(alike, abs=1e-6)
    assert found.survivor("chain-00") != found.survivor("chain-39")


def test_a_shared_template_removes_nobody(deduped: DedupOf) -> None:
    found = deduped("dedup/template")
    assert len(found.left) == len(found.texts) == 40


def test_lineage_names_the_survivor_and_its_own_fate(deduped: DedupOf) -> None:
    found = deduped("dedup/pairs")
    ids = {name: doc.hex() for doc, name in found.names.items()}
    told = found.product.ask("lineage", ids["a-title"])
    assert (told["fate"], told["survivor_id"]) == ("duplicate", ids["a-long"])
    assert (told["survivor"]["fate"], told["survivor"]["copies"]) == ("exported", 3)
