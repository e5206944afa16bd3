"""Rows of text: the rule that a whole run names."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cases.product import CASES, Product, Ran

TEXT = [{"source_id": "text", "path": f"{CASES}/text"}]


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        ("loop", "zlib_ratio"),
        ("loop_zh", "zlib_ratio"),
        ("control", "control_ratio"),
        ("punct", "meaningful_ratio"),
        ("seo", "zlib_ratio"),
        ("short", "length"),
        ("zh_prose_ok", ""),
        ("en_prose_ok", ""),
    ],
)
def test_rule(ran: Ran, name: str, rule: str) -> None:
    assert ran.rule("text", f"{name}.txt") == rule


def test_control_characters_are_judged_before_they_go(ran: Ran) -> None:
    doc = ran.doc("text", "control.txt")
    assert ran.rules[doc["doc_id"]]["value"] == pytest.approx(0.025, abs=0.001)
    assert ran.rules[doc["doc_id"]]["bound"] == 0.01
    assert "\x07" not in doc["text"]


@pytest.mark.parametrize(
    ("off", "left"),
    [
        (["zlib_ratio"], {"seo.txt": "stop_words"}),
        (
            ["zlib_ratio", "stop_words"],
            {"loop.txt": "top_ngram_coverage", "loop_zh.txt": "top_ngram_coverage"},
        ),
    ],
    ids=["without-zlib", "without-zlib-and-stop-words"],
)
def test_the_next_rule_finds_it_too(tmp_path: Path, off: list[str], left: dict[str, str]) -> None:
    product = Product(tmp_path, TEXT, {"clean": {"quality_rules": {"disable": off}}})
    assert product.run("--until", "filter").code == 0
    paths = {row["doc_id"]: row["path"] for row in product.rows("parse", "text")}
    rules = {paths[row["doc_id"]]: row["rule"] for row in product.rows("filter", "rejects")}
    assert left.items() <= rules.items()
