"""A version's rules with hits, shares, histograms and reviews."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dataflow_ops.console.rules_view import rules
from dataflow_ops.pipeline.home import open_home
from dataflow_ops.state.store import StateStore
from tests.console.product_home import Product, build
from tests.pipeline import inside

RULE = {
    *("rule", "layer", "text", "low", "high", "hits", "share", "previous_share", "histogram", "reviews"),
}


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory) -> Product:
    return build(tmp_path_factory.mktemp("rules"))


@pytest.fixture
def state(product: Product) -> Iterator[StateStore]:
    with product.state() as state:
        yield state


def by_name(found: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {row["rule"]: row for row in found["rules"]}


def test_every_rule_in_force_with_its_hits(product: Product, state: StateStore) -> None:
    found = rules(product.home, state, "tiny")
    assert found["version"] == product.version
    assert found["previous"] is None
    assert found["run"].startswith("tiny-full-")
    named = by_name(found)
    assert len(named) == len(found["rules"])
    assert all(set(row) >= RULE for row in found["rules"])
    manifest = json.loads(
        (product.home.root / "versions" / product.version / "manifest.json").read_text(encoding="utf-8")
    )
    steps = {step["name"]: step for step in manifest["steps"]}
    assert set(manifest["rules"]) <= set(named)
    for rule in manifest["rules"]:
        hits = steps["filter"]["rules"].get(rule, 0)
        assert named[rule]["hits"] == hits
        assert named[rule]["share"] == pytest.approx(hits / steps["filter"]["in"])
        assert named[rule]["previous_share"] is None
        assert named[rule]["text"]["en"]
        assert named[rule]["text"]["zh"]
    assert sum(row["hits"] for row in found["rules"] if row["layer"] == "filter") == 1
    assert named["exact"]["hits"] == 1
    assert named["near"]["hits"] == 1
    assert named["near"]["layer"] == "dedup"
    assert named["length"]["low"] == 120


def test_histograms_hold_every_sampled_value(product: Product, state: StateStore) -> None:
    found = rules(product.home, state, "tiny")
    named = by_name(found)
    histogram = named["length"]["histogram"]
    assert len(histogram["edges"]) == len(histogram["counts"]) + 1
    assert sum(histogram["counts"]) == histogram["measured"] == found["sampled"]
    assert histogram["edges"] == sorted(histogram["edges"])
    # A bound far away lies on the axis, and does not press all values into one bin.
    assert histogram["edges"][-1] == 500_000
    assert histogram["edges"][-2] < 50_000
    assert sum(1 for count in histogram["counts"] if count) > 2
    for row in found["rules"]:
        if row["histogram"] is not None:
            pairs = [(row["low"], row["high"]), *row["by_kind"].values()]
            bounds = [bound for pair in pairs for bound in pair if bound is not None]
            edges = row["histogram"]["edges"]
            assert all(edges[0] <= bound <= edges[-1] for bound in bounds), row["rule"]


def test_the_share_before_and_what_people_said(tmp_path: Path) -> None:
    product = build(tmp_path)
    made = inside.run(
        product.job, product.root / "home", set=["clean.boilerplate_filter.min_text_len=1400"], promote=False
    )
    with product.state() as state:
        state.set_review("tiny", "ab" * 16, "length", made.run_id, "keep", "Li")
        state.set_review("tiny", "cd" * 16, "length", made.run_id, "drop", "Li")
        state.set_review("tiny", "ef" * 16, "near", made.run_id, "keep", "Li")
        found = rules(product.home, state, "tiny", made.version_id)
    named = by_name(found)
    assert found["previous"] == product.version
    assert named["length"]["hits"] > 0
    assert named["length"]["share"] > 0
    assert named["length"]["previous_share"] == 0
    assert named["length"]["low"] == 1400
    assert found["rules"][0]["rule"] == "length"
    edges = named["length"]["histogram"]["edges"]
    assert edges[0] < 1400 < edges[-1]
    assert named["length"]["reviews"] == {"keep": 1, "drop": 1}
    assert named["near"]["reviews"] == {"keep": 1, "drop": 0}
    assert named["entropy"]["reviews"] == {"keep": 0, "drop": 0}


def test_without_outputs_hits_stay_and_histograms_go(product: Product, tmp_path: Path) -> None:
    shutil.copytree(product.root / "home", tmp_path / "home")
    shutil.rmtree(tmp_path / "home" / "data")
    home = open_home(tmp_path / "home")
    with StateStore(home.state_url) as state:
        found = rules(home, state, "tiny")
    named = by_name(found)
    assert named["near"]["hits"] == 1
    assert named["length"]["histogram"] is None
    assert found["sampled"] == 0
