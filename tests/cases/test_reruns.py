"""A changed threshold, rule version or model: exactly the steps after it run again; nothing stale is used."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import pytest
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

from dataflow_ops.layers.filter import selection
from dataflow_ops.pipeline.flow import STEP_NAMES
from dataflow_ops.pipeline.tally import StepReport
from tests.cases.conftest import NewFolder
from tests.cases.product import CASES, Product

SHORT = (
    "The keeper walked the edge of the reservoir each morning, read the gauge, and wrote the level of the"
    " water in a green notebook."
)


@pytest.fixture(scope="module")
def sources(new_folder: NewFolder) -> list[dict[str, object]]:
    """Source ``a`` holds one text that a bound of 200 characters refuses, ``b`` none."""
    folder = new_folder("sources")
    for name in "ab":
        (folder / name).mkdir()
    (folder / "a/short.txt").write_text(SHORT, encoding="utf-8")
    (folder / "a/long.txt").write_bytes((CASES / "text/en_prose_ok.txt").read_bytes())
    (folder / "b/long.txt").write_bytes((CASES / "text/zh_prose_ok.txt").read_bytes())
    (folder / "b/rows.jsonl").write_bytes((CASES / "dedup/chain.jsonl").read_bytes())
    return [
        {"source_id": "a", "path": str(folder / "a")},
        {"source_id": "b", "path": str(folder / "b"), "domain": "rows"},
    ]


@pytest.fixture
def product(sources: list[dict[str, object]], tmp_path: Path) -> Product:
    product = Product(tmp_path, sources)
    reports = product.run_steps()
    assert all(r.ran == r.tasks for r in reports.values())
    return product


def ran(reports: dict[str, StepReport]) -> dict[str, int]:
    assert tuple(reports) == STEP_NAMES
    return {name: report.ran for name, report in reports.items() if report.ran}


def contents(product: Product) -> dict[str, str]:
    """Everything that the newest version is made of."""
    folder = product.version()
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.name.startswith("report.")
    }


def same_as_fresh(
    product: Product, tmp_path: Path, sources: list[dict[str, object]], *overrides: str
) -> None:
    fresh = Product(tmp_path / "fresh", sources)
    fresh.run_steps(*overrides)
    assert fresh.version().name == product.version().name
    assert contents(fresh) == contents(product)


def test_nothing_changed(product: Product) -> None:
    before = contents(product)
    assert ran(product.run_steps()) == {}
    assert contents(product) == before


def test_a_threshold_that_refuses_a_document(
    product: Product, sources: list[dict[str, object]], tmp_path: Path
) -> None:
    first = product.version().name
    change = "clean.boilerplate_filter.min_text_len=200"
    again = ran(product.run_steps(change))
    assert not set(again) & {"discover", "fetch", "parse"}
    assert again["filter"] == 2
    # Only the chunk of source a has another verdict: the other one is signed and labelled already.
    assert {again.get(step) for step in ("sign", "label", "scatter")} == {1}
    assert product.version().name != first
    assert SHORT not in {row["text"] for row in product.exported()}
    same_as_fresh(product, tmp_path, sources, change)
    assert ran(product.run_steps()) == {}  # back again: all is there


def test_a_threshold_that_changes_no_verdict(
    product: Product, sources: list[dict[str, object]], tmp_path: Path
) -> None:
    change = "clean.quality_rules.max_control_ratio=0.02"
    assert ran(product.run_steps(change)) == {"filter": 2}
    same_as_fresh(product, tmp_path, sources, change)


def test_a_threshold_of_dedup(product: Product, sources: list[dict[str, object]], tmp_path: Path) -> None:
    change = "dedup.verify.min_similarity=0.99"
    before = len(product.exported())
    again = ran(product.run_steps(change))
    assert not set(again) & set(STEP_NAMES[: STEP_NAMES.index("verify")])
    assert again["verify"]
    assert len(product.exported()) > before
    same_as_fresh(product, tmp_path, sources, change)


@pytest.mark.parametrize("low", [0.2, 0.95], ids=["same-verdicts", "other-verdicts"])
def test_a_rule_version(
    product: Product,
    sources: list[dict[str, object]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    low: float,
) -> None:
    rules = tuple(
        replace(rule, version=rule.version + 1, low=low) if rule.name == "zlib_ratio" else rule
        for rule in selection.RULES
    )
    before = product.manifest()["rules"]["zlib_ratio"]
    monkeypatch.setattr(selection, "RULES", rules)
    again = ran(product.run_steps())
    assert not set(again) & {"discover", "fetch", "parse"}
    assert again["filter"] == 2
    # Each exported row names the rules it passed with their versions.
    assert again["scatter"] == 2
    if low == 0.2:
        assert not set(again) & set(STEP_NAMES[STEP_NAMES.index("sign") : STEP_NAMES.index("scatter")])
    else:
        assert again["sign"]
    assert product.manifest()["rules"]["zlib_ratio"] == before + 1
    same_as_fresh(product, tmp_path, sources)


def test_a_model(product: Product, sources: list[dict[str, object]], tmp_path: Path) -> None:
    """The tokenizer stands for models: its file's hash is in the fingerprint of the step that uses it."""
    path = tmp_path / "tokenizer.json"
    change = f"mixing.tokenizer={path}"
    counted = []
    for size in (300, 400):
        backend = Tokenizer(models.BPE())
        backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        alphabet = pre_tokenizers.ByteLevel.alphabet()
        trainer = trainers.BpeTrainer(vocab_size=size, initial_alphabet=alphabet, show_progress=False)
        backend.train_from_iterator([(CASES / "text/en_prose_ok.txt").read_text("utf-8")], trainer)
        backend.save(str(path))
        again = ran(product.run_steps(change))
        assert not set(again) & set(STEP_NAMES[: STEP_NAMES.index("label")])
        assert set(again) == {"label", "plan", "scatter", "export"}
        counted.append(product.manifest()["totals"]["tokens"])
    assert counted[0] > counted[1]  # the path is the same, the file is not
    same_as_fresh(product, tmp_path, sources, change)
