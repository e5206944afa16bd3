"""A file is found by its path, however much of it somebody typed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from dataflow_ops.console.search import search
from dataflow_ops.state.store import StateStore
from tests.console.product_home import Product
from tests.pipeline import inside, prose


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory) -> Product:
    root = tmp_path_factory.mktemp("paths")
    pool = prose.sentences()
    texts = {f"{folder}{name}.md": prose.note(i, pool) for i, (folder, name) in enumerate(PLACES)}
    for path, text in texts.items():
        (root / "docs" / path).parent.mkdir(parents=True, exist_ok=True)
        (root / "docs" / path).write_text(text, encoding="utf-8")
    (root / "sources").mkdir()
    job = root / "sources" / "job.yaml"
    job.write_text(
        "dataset: {id: tiny}\nsources:\n"
        f"  - {{source_id: docs, kind: files, path: {root}/docs, domain: docs}}\n"
        "output: {version: t, shards: 1}\n",
        encoding="utf-8",
    )
    return Product(root, inside.run(job, root / "home").version_id, texts)


PLACES = (("", "versions"), ("adr/", "versions"), ("adr/old/", "first"), ("", "old_versions"))


@pytest.fixture(scope="module")
def state(product: Product) -> Iterator[StateStore]:
    with product.state() as state:
        yield state


@pytest.mark.parametrize(
    ("typed", "paths"),
    [
        ("versions.md", ["adr/versions.md", "versions.md"]),
        ("adr/versions.md", ["adr/versions.md"]),
        ("old/first.md", ["adr/old/first.md"]),
        ("./old/first.md", ["adr/old/first.md"]),
        # With the source's folder, and with all that stands before it.
        ("docs/versions.md", ["versions.md"]),
        ("/data/docs/versions.md", ["versions.md"]),
        ("/data/docs/adr/old/first.md", ["adr/old/first.md"]),
        ("C:\\data\\docs\\adr\\old\\first.md", ["adr/old/first.md"]),
        # Whole names only, and nothing that lies elsewhere.
        ("/data/docs/first.md", []),
        ("sions.md", []),
        ("file:///data/docs/versions.md", []),
    ],
)
def test_a_path_finds_its_document(product: Product, state: StateStore, typed: str, paths: list[str]) -> None:
    found = search(product.home, state, typed)
    assert found["by"] == "url"
    assert sorted(row["path"] for row in found["results"]) == paths


def test_how_alike_is_enough_is_told_beside_every_document(product: Product, state: StateStore) -> None:
    [row] = search(product.home, state, "adr/versions.md")["results"]
    assert row["enough"] == 0.8
    assert Path(row["path"]).name == "versions.md"
