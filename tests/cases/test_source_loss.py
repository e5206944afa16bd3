"""A source that loses nearly all of its documents in one step."""

from __future__ import annotations

import html
import json
import random
from pathlib import Path

import pytest

from tests.cases.conftest import NewFolder
from tests.cases.product import CASES, Product


def _pages(folder: Path, loops: int, good: int) -> dict[str, object]:
    folder.mkdir()
    draw = random.Random(1)
    words = (CASES / "text/en_prose_ok.txt").read_text("utf-8").split()
    rows = [{"text": f"the level rose by {i} again and " * 60} for i in range(loops)]
    rows += [{"text": " ".join(draw.sample(words, len(words)))} for _ in range(good)]
    path = folder / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return {"source_id": folder.name, "kind": "jsonl", "path": str(path)}


@pytest.fixture(scope="module")
def product(new_folder: NewFolder) -> Product:
    folder = new_folder("loss")
    sources = [_pages(folder / "lost", 39, 1), _pages(folder / "half", 20, 20)]
    product = Product(folder, sources)
    said = product.run()
    assert said.code == 0
    assert (
        "alarm   Source lost lost 97.5% of its documents in filter (39 of 40), most to zlib_ratio"
        in (said.data["message"])
    )
    return product


def test_the_alarm_names_source_step_and_rule(product: Product) -> None:
    (alarm,) = [a for a in product.report()["alarms"] if a["kind"] == "source_loss"]
    assert (alarm["source"], alarm["step"], alarm["rule"]) == ("lost", "filter", "zlib_ratio")
    assert (alarm["lost"], alarm["documents_in"], alarm["rule_hits"]) == (39, 40, 39)


def test_the_page_shows_it(product: Product) -> None:
    page = html.unescape((product.version() / "report.html").read_text("utf-8"))
    assert "lost" in page
    assert "97.5" in page
    assert "zlib_ratio" in page


def test_a_wider_bound_is_silent(tmp_path: Path) -> None:
    product = Product(tmp_path, [_pages(tmp_path / "lost", 39, 1)], {"run": {"max_source_loss": 0.98}})
    assert product.run().code == 0
    assert not [a for a in product.report()["alarms"] if a["kind"] == "source_loss"]
