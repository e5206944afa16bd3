"""``whatif`` against real runs with the same ``--set``."""

from __future__ import annotations

import json
import random
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cases.product import CASES, Product, dataflow
from tests.pipeline import prose
from tests.pipeline.test_damage import cut, flip


def _rows() -> list[dict[str, Any]]:
    """Records on both sides of many rules, of every kind of text."""
    rng, pool = random.Random(3), prose.sentences()
    rows: list[dict[str, Any]] = []
    for i in range(60):
        text = prose.note(i, pool, rng.choice((1, 3, 8)))
        if i % 6 == 0:
            text = text[: rng.randint(20, 110)]  # L1 refuses it: too short
        if i % 6 == 1:
            text = (text[:50] + "\n") * rng.choice((4, 12, 40))
        if i % 6 == 2:
            text += "!!! --- ### " * rng.choice((5, 40))
        if i % 6 == 3:
            text += " zap word fuck" * rng.choice((1, 6))
        if i % 6 == 4:
            text += "\n".join(text.splitlines()[:1] * 2)  # repeats itself a little
        rows.append({"id": f"r{i}", "text": text})
    rows.append({"id": "zh", "text": (CASES / "text/zh_prose_ok.txt").read_text(encoding="utf-8")})
    for i in range(4):
        turns = [{"role": "user", "content": "Yes?"}, {"role": "assistant", "content": "no " * (3 + 20 * i)}]
        rows.append({"id": f"d{i}", "messages": turns})
    return rows


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory) -> Product:
    folder = tmp_path_factory.mktemp("whatif")
    for name in ("rows", "code", "text"):
        (folder / name).mkdir()
    lines = [json.dumps(row) for row in _rows()]
    for part in range(2):
        (folder / f"rows/{part}.jsonl").write_text("\n".join(lines[part::2]) + "\n", encoding="utf-8")
    for path in sorted(Path(prose.__file__).parent.glob("test_d*.py")):
        shutil.copyfile(path, folder / "code" / path.name)
    shutil.copyfile(CASES / "text/loop.txt", folder / "text/loop.txt")
    shutil.copyfile(CASES / "text/en_prose_ok.txt", folder / "text/en.txt")
    kinds = {"rows": "jsonl", "code": "files", "text": "files"}
    sources = [{"source_id": n, "kind": k, "path": str(folder / n), "domain": n} for n, k in kinds.items()]
    product = Product(folder, sources, {"ingest": {"chunk_mb": 0.01}})
    assert product.run().code in (0, 4)
    return product


def ran(product: Product, *sets: str) -> tuple[dict[str, int], dict[str, str]]:
    """Of a real run: counts of the filter with hits by rule, and the rule that refuses each document."""
    options = [word for pair in sets for word in ("--set", pair)]
    said = product.run("--until", "filter", *options)
    assert said.code == 0, said.err
    counts = product.metrics()["filter"].counts
    rules = {row["doc_id"].hex(): row["rule"] for row in product.rows("filter", "rejects")}
    hits = Counter(rules.values())
    return {"documents": counts.documents_in, "kept": counts.kept, **hits}, rules


def asked(product: Product, *sets: str, run: str = "") -> dict[str, Any]:
    options = [word for pair in sets for word in ("--set", pair)]
    found: dict[str, Any] = product.ask("whatif", product.job, *options, *(("--run", run) if run else ()))
    return found


QUALITY = "clean.quality_rules"
SETS = [
    [],
    ["clean.boilerplate_filter.min_text_len=0"],
    ["clean.boilerplate_filter.min_text_len=400"],
    [f"{QUALITY}.min_meaningful_ratio=0.9", f"{QUALITY}.max_repetition_ratio=0.2"],
    [f"{QUALITY}.min_zlib_ratio=0.05"],
    [f"{QUALITY}.min_zlib_ratio=0.5"],
    [f"{QUALITY}.rules.zlib_ratio.code.low=0.4", f"{QUALITY}.rules.zlib_window={{low: 0.3}}"],
    [f"{QUALITY}.rules.length.dialogue.low=100", f"{QUALITY}.rules.digit_share={{high: 0.01}}"],
    [f"{QUALITY}.presets=[gopher, c4, fineweb]", "clean.boilerplate_filter.min_text_len=30"],
    [f"{QUALITY}.bad_words=[zap word]"],
    [f"{QUALITY}.enable=[han_share]", f"{QUALITY}.disable=[length, zlib_ratio]"],
    [f"{QUALITY}.enabled=false"],
]


@pytest.mark.parametrize("sets", SETS, ids=" ".join)
def test_counts_are_those_of_the_real_run(product: Product, sets: list[str]) -> None:
    base, before = ran(product)
    told = asked(product, *sets)
    real, after = ran(product, *sets)
    assert told["documents"] == real["documents"] == base["documents"]
    assert (told["kept_before"], told["kept_after"]) == (base["kept"], real["kept"])
    by_rule = {row["rule"]: (row["before"], row["after"]) for row in told["rules"]}
    names = {*base, *real} - {"documents", "kept"}
    assert by_rule == {name: (base.get(name, 0), real.get(name, 0)) for name in names}
    gained, lost = before.keys() - after.keys(), after.keys() - before.keys()
    assert (told["gained"], told["lost"]) == (len(gained), len(lost))
    moves = Counter((before.get(d), after.get(d)) for d in {*before, *after})
    assert {(m["from"], m["to"]): m["documents"] for m in told["moves"]} == {
        pair: count for pair, count in moves.items() if pair[0] != pair[1]
    }
    for key in ("documents", "kept_before", "kept_after", "gained", "lost"):
        assert sum(group[key] for group in told["groups"]) == told[key]
    examples = {(row["change"], row["doc_id"], row["rule"]) for row in told["examples"]}
    assert len(examples) == len(told["examples"]) == min(20, len(gained) + len(lost))
    assert examples <= {("gained", d, before[d]) for d in gained} | {("lost", d, after[d]) for d in lost}


def test_a_run_that_is_named_is_asked_also_back_to_where_it_came_from(product: Product) -> None:
    tight = [f"{QUALITY}.min_zlib_ratio=0.5", "clean.boilerplate_filter.min_text_len=400"]
    real, _ = ran(product, *tight)
    with product.state() as state:
        run = state.list_runs("cases", 1)[0].run_id
    base, _ = ran(product)
    told = asked(product, run=run)
    assert (told["run"], told["kept_before"], told["kept_after"]) == (run, real["kept"], base["kept"])
    assert {row["key"] for row in told["settings"]} == {
        f"{QUALITY}.min_zlib_ratio",
        "clean.boilerplate_filter.min_text_len",
    }
    assert told["gained"] > 0
    assert told["measured_anew"] > 0


def test_examples_say_where_and_why(product: Product) -> None:
    assert product.run().code in (0, 4)
    told = asked(product, f"{QUALITY}.max_repetition_ratio=0.2", "clean.boilerplate_filter.min_text_len=20")
    lost = [row for row in told["examples"] if row["rule"] == "repetition_ratio"]
    assert lost
    assert all(row["change"] == "lost" for row in lost)
    for row in lost:
        assert row["old_bound"] == 0.9
        assert row["new_bound"] == 0.2 < row["value"]
        assert row["side"] == "high"
        assert 0 < len(row["text"]) <= 120
        assert row["source_id"] in ("rows", "text")
    gained = [row for row in told["examples"] if row["change"] == "gained"]
    assert gained
    assert all(row["rule"] == "length" and row["new_bound"] == 20 for row in gained)
    languages = {(row["domain"], row["language"], row["by"]) for row in told["groups"]}
    assert {("code", "code:python", "label"), ("rows", "latin", "script")} <= languages
    assert "Dedup" in told["downstream"]


def test_statistics_of_other_code_are_not_trusted(product: Product, monkeypatch: pytest.MonkeyPatch) -> None:
    from dataflow_ops.kernels import lines

    real, _ = ran(product, f"{QUALITY}.max_repetition_ratio=0.2")
    ran(product)
    monkeypatch.setattr(lines, "VERSION", lines.VERSION + 1000)
    told = asked(product, f"{QUALITY}.max_repetition_ratio=0.2")
    assert told["measured_anew"] == told["documents"]
    assert told["kept_after"] == real["kept"]
    assert any("other code" in note for note in told["notes"])


@pytest.mark.parametrize(
    "key", ["dedup.minhash.band=8", "clean.normalization.lower_case=false", "clean={}", "sources=[]",
            "clean.boilerplate_filter.max_text_len=10"]
)  # fmt: skip
def test_other_settings_are_refused_with_what_can_be_asked(product: Product, key: str) -> None:
    said = dataflow("whatif", product.job, "--home", product.home, "--set", key)
    assert said.code == 2
    assert "clean.quality_rules" in said.err
    assert "min_text_len" in said.err


def test_unknown_rules_and_runs_are_refused(product: Product) -> None:
    said = dataflow("whatif", product.job, "--home", product.home, "--set", f"{QUALITY}.disable=[lenght]")
    assert (said.code, "did you mean length" in said.err) == (2, True)
    said = dataflow("whatif", product.job, "--home", product.home, "--run", "nothing")
    assert (said.code, "dataflow runs" in said.err) == (2, True)


def test_a_job_file_that_moved_on_before_the_filter_is_told(product: Product, tmp_path: Path) -> None:
    ran(product)
    text = product.job.read_text(encoding="utf-8")
    (tmp_path / "job.yaml").write_text(text + "clean: {on_too_long: reject}\n", encoding="utf-8")
    told = product.ask("whatif", tmp_path / "job.yaml")
    assert [note for note in told["notes"] if "clean" in note and "before the filter" in note]
    assert told["moves"] == []


@pytest.mark.parametrize("hurt", [flip, cut, Path.unlink], ids=["flip", "cut", "gone"])
@pytest.mark.parametrize("kind", ["verdicts", "rejects", "stats", "text"])
def test_damaged_outputs_give_a_typed_error(
    product: Product, tmp_path: Path, kind: str, hurt: Callable[[Path], None]
) -> None:
    ran(product)
    home = tmp_path / "home"
    shutil.copytree(product.home, home)
    step = "parse" if kind == "text" else "filter"
    with product.state() as state:
        mine = state.outputs_of_step(state.list_runs("cases", 1)[0].run_id, step, kind).values()
    hurt(max((home / output.uri for output in mine), key=lambda path: path.stat().st_size))
    asks = f"{QUALITY}.rules.gopher_stop_words.code.low=1"  # not stored; and code is the largest
    said = dataflow("whatif", product.job, "--home", home, "--set", asks)
    assert said.code == 1
    assert "CorruptOutput" in said.err
    assert "run the job again" in said.err
    assert "Traceback" not in said.err


def test_for_people(product: Product) -> None:
    ran(product)
    said = dataflow(
        "whatif", product.job, "--home", product.home, "--set", f"{QUALITY}.max_repetition_ratio=0.2"
    )
    assert said.code == 0, said.err
    assert f"{QUALITY}.max_repetition_ratio: not set -> 0.2" in said.out
    assert "(kept)" in said.out
    assert "repetition_ratio" in said.out
    assert "Dedup, score and mix" in said.out
