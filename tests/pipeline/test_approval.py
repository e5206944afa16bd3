"""A version that moved too far from the one before waits for a person, and says what moved."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.cases.product import CASES, Product


def test_a_share_that_moved_is_named_and_waits(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    shutil.copyfile(CASES / "text/en_prose_ok.txt", tmp_path / "one/en.txt")
    sources = [{"source_id": n, "path": str(tmp_path / n), "domain": n} for n in ("one", "two")]
    product = Product(tmp_path, sources)
    first = product.run()
    assert (first.code, first.data["current"]) == (0, True)

    shutil.copyfile(CASES / "text/zh_prose_ok.txt", tmp_path / "two/zh.txt")
    second = product.run()
    assert (second.code, second.data["state"], second.data["current"]) == (4, "AWAITING_APPROVAL", False)
    assert "share of domain 'two' by documents moved from 0.0% to 50.0%" in second.data["message"]
    assert "share of language 'zh' by documents moved from 0.0% to 50.0%" in second.data["message"]
    assert {v["version"]: v["current"] for v in product.ask("versions", "list")} == {
        first.data["version"]: True,
        second.data["version"]: False,
    }
    assert product.ask("versions", "approve")["current"] == second.data["version"]
    assert product.run().data["current"]
