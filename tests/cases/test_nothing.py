"""An empty day is no error anywhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cases.product import CASES, Product

EMPTY_FILES = {"source_id": "a", "kind": "jsonl", "path": f"{CASES}/jsonl/empty.jsonl*"}


@pytest.mark.parametrize("kind", ["files", "folder", "both"])
def test_no_documents_give_an_empty_version(tmp_path: Path, kind: str) -> None:
    folder = tmp_path / "nothing here"
    folder.mkdir()
    empty_folder = {"source_id": "b", "path": str(folder)}
    sources = {"files": [EMPTY_FILES], "folder": [empty_folder], "both": [EMPTY_FILES, empty_folder]}[kind]
    product = Product(tmp_path, sources)
    said = product.run()
    assert said.code == 0, said.err
    assert (said.data["state"], said.data["current"]) == ("SUCCEEDED", True)
    assert product.manifest()["totals"]["documents"] == 0
    assert product.exported() == []
    product.verify()
    assert (product.version() / "report.html").stat().st_size > 1000
    assert product.ask("versions", "list")[0]["documents"] == 0
    assert product.ask("audit") == []
    assert product.run().data["version"] == said.data["version"]


def test_a_day_that_is_empty_after_one_that_was_not(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    product = Product(tmp_path, [{"source_id": "a", "path": str(folder)}])
    (folder / "one.txt").write_bytes((CASES / "text/en_prose_ok.txt").read_bytes())
    assert product.run().code == 0
    assert len(product.exported()) == 1
    (folder / "one.txt").unlink()
    assert product.run().code in (0, 4)  # the drift gate may ask a person; nothing fails
    assert product.exported() == []
    product.verify()
