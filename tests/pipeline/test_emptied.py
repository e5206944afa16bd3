"""A source that gave documents and gives none now: a lost mount never becomes current by itself."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from dataflow_ops.pipeline.waiting import emptied
from tests.cases.product import CASES, Product, dataflow

pytestmark = pytest.mark.xdist_group("emptied")


def product(folder: Path, *names: str) -> Product:
    """One source for each name, each with one document; drift is no reason to wait here."""
    for name, text in zip(names, ("en_prose_ok.txt", "zh_prose_ok.txt"), strict=False):
        (folder / name).mkdir()
        shutil.copyfile(CASES / "text" / text, folder / name / "text.txt")
    sources = [{"source_id": n, "path": str(folder / n), "domain": n} for n in names]
    drift = {"max_domain_shift": 1, "max_language_shift": 1}
    return Product(folder, sources, {"drift": drift})


def test_an_empty_version_never_replaces_one_that_holds_documents(tmp_path: Path) -> None:
    made = product(tmp_path, "one")
    first = made.run()
    assert (first.code, first.data["current"], first.data["waits"]) == (0, True, [])
    (tmp_path / "one/text.txt").unlink()
    second = made.run()
    assert (second.code, second.data["state"], second.data["current"]) == (4, "AWAITING_APPROVAL", False)
    assert second.data["waits"] == [
        "it holds no documents; the current version holds 1",
        "source 'one' is empty: it gave 1 file(s) to the current version and gives nothing now",
    ]
    assert "NOT current, a person must look:" in second.data["message"]
    listed = {v["version"]: v for v in made.ask("versions", "list")}
    assert listed[second.data["version"]]["state"] == "WAITING"
    assert "it holds no documents" in listed[second.data["version"]]["waits"]
    assert (listed[first.data["version"]]["state"], listed[first.data["version"]]["current"]) == (
        "PUBLISHED",
        True,
    )
    refused = dataflow("versions", "rollback", second.data["version"], "--home", made.home)
    assert refused.code == 1
    assert f"dataflow versions approve --home {made.home} {second.data['version']}" in refused.err
    assert made.run().data["current"] is False, "asked again, it still waits"

    assert made.ask("versions", "approve")["current"] == second.data["version"]
    assert made.ask("versions", "show")["state"] == "PUBLISHED"
    nothing = dataflow("versions", "approve", "--home", made.home)
    assert (nothing.code, "no version waits for approval" in nothing.err) == (2, True)
    again = dataflow("versions", "approve", second.data["version"], "--home", made.home)
    assert (again.code, "is current already" in again.err) == (2, True)
    assert made.ask("versions", "rollback", first.data["version"])["current"] == first.data["version"]
    before = dataflow("versions", "approve", second.data["version"], "--home", made.home)
    assert (before.code, "was approved before" in before.err) == (2, True)


def test_one_emptied_source_of_two_is_named(tmp_path: Path) -> None:
    made = product(tmp_path, "one", "two")
    assert made.run().data["current"]
    (tmp_path / "two/text.txt").write_text("")
    second = made.run()
    assert (second.code, second.data["current"]) == (4, False)
    assert [reason.partition(":")[0] for reason in second.data["waits"]] == ["source 'two' is empty"]


def test_a_first_version_may_be_empty_and_a_source_may_be_left_out() -> None:
    def manifest(documents: int, **sizes: int) -> dict[str, object]:
        sources = [{"source_id": k, "files": int(v > 0), "bytes": v} for k, v in sizes.items()]
        return {"totals": {"documents": documents}, "sources": sources}

    assert emptied(manifest(0, a=0), None) == []
    assert emptied(manifest(0, a=0), manifest(0, a=0)) == []
    assert emptied(manifest(1, a=5), manifest(2, a=5, b=5)) == []
    assert len(emptied(manifest(1, a=5, b=0), manifest(2, a=5, b=5))) == 1
    assert len(emptied(manifest(0, a=0), manifest(1, a=5))) == 2


def test_what_was_approved_is_not_asked_about_again(tmp_path: Path) -> None:
    made = product(tmp_path, "one")
    (tmp_path / "one/broken.jsonl").write_text('{"text": "cut\n')
    first = made.run()
    assert first.data["waits"][0].endswith("of the input records are dead, above 0.10%")
    made.ask("versions", "approve")
    again = made.run()
    assert (again.data["state"], again.data["current"], again.data["waits"]) == (
        "SUCCEEDED_WITH_DEAD",
        True,
        [],
    )
    assert "NOT current" not in again.data["message"]
