"""The report beside a version: what a re-run may change of it, and what it says of how the version stands."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.cases.product import CASES, Product


@pytest.fixture
def product(tmp_path: Path) -> Product:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    shutil.copyfile(CASES / "text/en_prose_ok.txt", tmp_path / "one/en.txt")
    return Product(
        tmp_path, [{"source_id": n, "path": str(tmp_path / n), "domain": n} for n in ("one", "two")]
    )


def files(product: Product, version: str) -> tuple[Path, Path]:
    page = Path(product.ask("report", version)["report"])
    return page, page.with_name("report.json")


def told(product: Product, version: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(files(product, version)[1].read_text())
    return found


def test_a_run_that_did_nothing_leaves_the_report_alone(product: Product) -> None:
    version = product.run().data["version"]
    before = [(p.read_bytes(), p.stat().st_mtime_ns) for p in files(product, version)]
    again = product.run()
    assert again.data["version"] == version
    assert [(p.read_bytes(), p.stat().st_mtime_ns) for p in files(product, version)] == before


def test_a_report_that_is_gone_is_made_again_with_the_tasks_own_times(product: Product) -> None:
    """All tasks are skipped then, and say so; times and rates are those they had when they ran."""
    version = product.run().data["version"]
    first = told(product, version)
    for path in files(product, version):
        path.unlink()
    product.run()
    second = told(product, version)
    assert sum(t["tasks_skipped"] for t in first["throughput"]) == 0
    assert all(t["tasks_skipped"] == t["tasks"] > 0 for t in second["throughput"])
    for key in ("seconds_tasks", "seconds_cpu", "documents_per_second"):
        assert [t[key] for t in second["throughput"]] == [t[key] for t in first["throughput"]]
    assert second["summary"]["seconds_tasks"] == first["summary"]["seconds_tasks"] > 0
    assert (first["summary"]["seconds"] > 0, second["summary"]["seconds"]) == (True, 0.0)


def test_the_report_says_how_the_version_stands(product: Product, tmp_path: Path) -> None:
    first = product.run().data["version"]
    stands = told(product, first)
    assert (stands["version"], stands["current"], stands["waits"]) == (first, True, [])

    shutil.copyfile(CASES / "text/zh_prose_ok.txt", tmp_path / "two/zh.txt")
    held = product.run().data["version"]
    stands = told(product, held)
    assert (stands["current"], stands["state"]) == (False, "AWAITING_APPROVAL")
    assert any("share of domain 'two'" in reason for reason in stands["waits"])
    page = files(product, held)[0].read_text()
    assert "NOT current." in page
    assert f"dataflow versions approve {held}" in page
    assert "domain &#x27;two&#x27;" in page

    product.ask("versions", "approve", held)
    product.run()
    later = told(product, held)
    assert (later["current"], later["waits"]) == (True, [])
    assert later["throughput"] == stands["throughput"]  # only how it stands is new
    assert later["made_at"] == stands["made_at"]

    (tmp_path / "two/zh.txt").touch()
    assert product.run().data["version"] == held
    touched = told(product, held)
    assert any(t["tasks_skipped"] < t["tasks"] for t in touched["throughput"])
    assert touched["drift"] == stands["drift"]  # not against itself


def test_bounds_by_kind_of_text_come_from_the_job(product: Product, tmp_path: Path) -> None:
    (tmp_path / "one/short.txt").write_text("Too short to keep.\n")
    version = product.run().data["version"]
    length = next(r for r in told(product, version)["rules"] if r["rule"] == "length")
    assert length["by_kind"]["prose"] == [120.0, 500_000.0]
    assert length["by_kind"]["code"][0] == 64.0
    assert length["setting"] == "clean.quality_rules.rules.length"
