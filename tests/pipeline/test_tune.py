"""``tune-dedup`` on a small run: whose documents it takes, what it counts, what it advises."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dataflow_ops.pipeline.tune import recommend
from tests.cases.product import Product, dataflow
from tests.pipeline import prose
from tests.pipeline.test_damage import cut, flip


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory) -> Product:
    folder = tmp_path_factory.mktemp("tune")
    pool = prose.sentences()
    rows = [{"id": f"r{i}", "text": prose.note(i, pool)} for i in range(50)]
    rows += [{"id": f"c{i}", "text": rows[i]["text"].replace(" the ", " any ", 2)} for i in range(10)]
    rows += [{"id": "refused", "text": "too short"}, {"id": "twice", "text": rows[3]["text"]}]
    for part in range(3):
        path = folder / f"in/{part}.jsonl"
        path.parent.mkdir(exist_ok=True)
        path.write_text("".join(json.dumps(row) + "\n" for row in rows[part::3]), encoding="utf-8")
    (folder / "more").mkdir()
    more = json.dumps({"id": "twice", "text": prose.note(99, pool)})
    (folder / "more/x.jsonl").write_text(more + "\n", encoding="utf-8")
    sources = [
        {"source_id": name, "kind": "jsonl", "path": str(folder / name), "domain": "web"}
        for name in ("in", "more")
    ]
    product = Product(folder, sources, {"ingest": {"chunk_mb": 0.02}})
    said = product.run("--until", "filter")
    assert said.code == 0, said.err
    return product


def tuned(product: Product, *options: object) -> dict[str, Any]:
    found: dict[str, Any] = product.ask("tune-dedup", product.job, *options)
    return found


def counted(found: dict[str, Any]) -> list[dict[str, Any]]:
    """Rows of settings without what a clock says."""
    return [{k: v for k, v in row.items() if not k.endswith("_us")} for row in found["settings"]]


def test_it_measures_made_copies_of_kept_documents(product: Product) -> None:
    found = tuned(product)
    assert found["notes"] == [
        "62 documents are few: a share found here may be off by 12 points, and times by more; --run RUN takes"
        " a larger run"
    ]
    assert found["documents"] == 62  # all but the refused one
    rows = {row["name"]: row for row in found["settings"]}
    own = rows["16 x 8"]
    assert [row["own"] for row in found["settings"]].count(True) == 1
    assert own["own"]
    assert own["recall"]["width"] == own["recall"]["case"] == 1.0
    assert own["recall"]["edit 1 %"] > own["recall"]["edit 10 %"]
    assert rows["8 x 16"]["recall"]["edit 5 %"] < rows["32 x 4"]["recall"]["edit 5 %"]
    assert (
        own["verified"] == 10
    )  # the near copies among the documents; the exact copy is one with its original
    assert found["documents_of_run"] == 62
    for row in found["settings"]:
        assert min(row["sign_us"], row["match_us"], row["verify_us"]) > 0
        assert row["estimated_us"] == pytest.approx(row["sign_us"] + row["match_us"] + row["verify_us"])
    curve = {point["jaccard"]: point["probability"]["16 x 8"] for point in found["curve"]}
    assert curve[0.8] == pytest.approx(1 - (1 - 0.8**8) ** 16)
    assert found["recommendation"]["name"] in rows


def test_an_experiment_and_a_day_are_passed_over_and_named(product: Product, tmp_path: Path) -> None:
    home = tmp_path / "home"
    shutil.copytree(product.home, home)
    first = tuned(product)["run"]
    strict = ("--set", "clean.boilerplate_filter.min_text_len=200", "--workers", 0, "--json")
    for more in (("--until", "filter"), ("--mode", "incremental", "--date", "2026-11-02")):
        ran = dataflow("run", product.job, "--home", home, *strict, *more).data["run"]
        for command in (("whatif",), ("tune-dedup", "--sample", 10)):
            found = dataflow(*command, product.job, "--home", home, "--json").data
            assert found["run"] == first != ran
            [note] = [note for note in found["notes"] if "not asked" in note]
            assert note.startswith(f"newer, but not asked: {ran} (")
            assert note.endswith(f"; --run {ran} takes it")
    named = dataflow("whatif", product.job, "--home", home, "--run", ran, "--json").data
    assert (named["run"], named["notes"]) == (ran, [])
    assert f"{ran} (incremental of 2026-11-02)" in dataflow("whatif", product.job, "--home", home).out


def test_the_same_documents_are_drawn_each_time(product: Product) -> None:
    first = tuned(product, "--sample", 20)
    assert (first["documents"], first["documents_of_run"]) == (20, 62)
    row = first["settings"][0]
    assert row["estimated_us"] == pytest.approx(row["sign_us"] + row["match_us"] + row["verify_us"] * 62 / 20)
    assert counted(first) == counted(tuned(product, "--sample", 20))


LABELS = [("c1", "r1"), ("c2", "r2"), ("c3", "r4"), ("r5", ""), ("refused", "r6"), ("twice", "r3")]


def written(folder: Path, ending: str) -> Path:
    path = folder / f"labels{ending}"
    if ending == ".parquet":
        ids, of = zip(*LABELS, strict=True)
        pq.write_table(pa.table({"id": ids, "dup_of": [v or None for v in of]}), path)
    elif ending == ".csv":
        path.write_text("id,dup_of\n" + "".join(f"{a},{b}\n" for a, b in LABELS), encoding="utf-8")
    else:
        lines = [json.dumps({"id": a, "dup_of": b or None}) for a, b in LABELS]
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.mark.parametrize("ending", [".csv", ".jsonl", ".parquet"])
def test_labels_are_measured_instead(product: Product, tmp_path: Path, ending: str) -> None:
    found = tuned(product, "--labels", written(tmp_path, ending))
    own = next(row for row in found["settings"] if row["own"])
    assert (found["pairs"], found["documents"]) == (3, 6)
    # c3 is a copy of r3, not of r4: a wrong label can't be found.
    assert own["recall"] == {"labelled": pytest.approx(2 / 3)}
    assert found["notes"] == [
        f"2 of 5 labelled pairs were left out: an id names no document that the filter of run {found['run']}"
        " kept, or several"
    ]
    assert "labelled pairs" in found["recommendation"]["sentence"]


def test_labels_may_name_document_ids(product: Product, tmp_path: Path) -> None:
    ids = {row["source_record_id"]: row["doc_id"].hex() for row in product.rows("parse", "text")}
    path = tmp_path / "labels.csv"
    path.write_text(f"id,dup_of\n{ids['c1']},{ids['r1']}\n", encoding="utf-8")
    assert tuned(product, "--labels", path)["settings"][0]["recall"] == {"labelled": 1.0}


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("l.csv", "id,other\n1,2\n", "dup_of"),
        ("l.csv", "id,dup_of\nnobody,r1\n", "left out"),
        ("l.csv", "id,dup_of\n", "no pair"),
        ("l.jsonl", "{", "dup_of"),
        ("l.jsonl", "[1]\n", "dup_of"),
        ("l.parquet", "no parquet", "dup_of"),
        ("l.txt", "", ".jsonl"),
        (None, "", "can't be read"),
    ],
)
def test_labels_that_can_not_be_used(
    product: Product, tmp_path: Path, name: str | None, text: str, told: str
) -> None:
    path = tmp_path / (name or "missing.csv")
    if name is not None:
        path.write_text(text, encoding="utf-8")
    said = dataflow("tune-dedup", product.job, "--home", product.home, "--labels", path)
    assert (said.code, "--labels" in said.err, told in said.err) == (2, True, True), said.err


def test_a_job_without_near_duplicates_has_nothing_to_tune(product: Product, tmp_path: Path) -> None:
    job = tmp_path / "job.yaml"
    job.write_text(product.job.read_text("utf-8") + "dedup: {near: false}\n", encoding="utf-8")
    said = dataflow("tune-dedup", job, "--home", product.home)
    assert (said.code, "dedup.near is off" in said.err) == (2, True)


@pytest.mark.parametrize("hurt", [flip, cut, Path.unlink], ids=["flip", "cut", "gone"])
def test_damaged_texts_give_a_typed_error(
    product: Product, tmp_path: Path, hurt: Callable[[Path], None]
) -> None:
    home = tmp_path / "home"
    shutil.copytree(product.home, home)
    hurt(max(home.glob("data/parse/*/*.text.parquet"), key=lambda path: path.stat().st_size))
    said = dataflow("tune-dedup", product.job, "--home", home)
    assert (said.code, "CorruptOutput" in said.err, "Traceback" in said.err) == (1, True, False), said.err


def test_for_people(product: Product) -> None:
    said = dataflow("tune-dedup", product.job, "--home", product.home, "--sample", 10)
    assert said.code == 0, said.err
    assert "16 x 8 (job)" in said.out
    assert "█" in said.out
    heads = next(line for line in said.out.splitlines() if line.startswith("      16 x 8")).split("  ")
    assert heads[-1] == "job: 16 x 8"
    assert len({head for head in heads if head}) == len([head for head in heads if head])
    assert said.out.rstrip().splitlines()[-1].startswith(("Keep ", "Take "))


def row(name: str, recall: float, cost: float, own: bool = False) -> dict[str, Any]:
    changes = [] if own else [f"dedup.minhash.band={name}"]
    return {
        "name": name,
        "own": own,
        "set": changes,
        "recall": {"k": recall},
        "estimated_us": cost,
    }


def test_the_advice() -> None:
    own = row("own", 0.95, 50, own=True)
    assert recommend([own, row("a", 0.96, 49)], ("k",))["set"] == []  # within 2 points, hardly cheaper
    assert recommend([own, row("a", 0.96, 40)], ("k",))["name"] == "a"  # as good and a tenth cheaper
    assert (
        recommend([own, row("a", 0.99, 90), row("b", 0.98, 80)], ("k",))["name"] == "b"
    )  # the cheaper of two
    assert recommend([own, row("a", 0.98, 80), row("b", 0.99, 85)], ("k",))["name"] == "b"  # costs are equal
    assert recommend([own, row("a", 0.5, 1)], ("k",))["name"] == "own"  # cheap and blind
