from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from dataflow_ops.errors import ConservationError
from dataflow_ops.layers.mix.difficulty import difficulty
from dataflow_ops.layers.mix.label import LabelStep
from tests.layers.export.flow import ByFirstLetter, Words, drive, job, lean, make_chunks, run_flow
from tests.layers.fake_side import FakeSide


def labels_of(tmp_path: Path, size: int = 50, **sections: Any) -> pa.Table:
    flow = run_flow(job(**sections), make_chunks(), tmp_path, size=size)
    return pa.concat_tables([t for _, t in flow.stored[("label", "labels")]])


def test_one_row_per_survivor_with_its_labels(tmp_path: Path) -> None:
    chunks = make_chunks()
    table = labels_of(tmp_path)
    removed = sum(v.as_py() != "survivor" for c in chunks for v in c.duplicates["verdict"])
    assert table.num_rows == sum(sum(c.verdicts["kept"].to_pylist()) for c in chunks) - removed
    for row in table.to_pylist():
        assert row["domain"] == {"s-web": "web", "s-code": "code", "s-zh": "web"}[row["source_id"]]
        expected = {"s-web": "en", "s-code": "code:python", "s-zh": "zh"}[row["source_id"]]
        assert row["language"] == expected
        assert row["task_type"] == ("code" if row["kind"] == "code" else "pretrain")
        assert (row["language_score"] is None) == (row["kind"] == "code")
        assert row["quality_level"] == "unscored"
        assert row["verdict"] == ""


def test_batches_do_not_matter(tmp_path: Path) -> None:
    assert labels_of(tmp_path / "a", 80) == labels_of(tmp_path / "b", 3)


@pytest.mark.parametrize(
    ("language", "rule", "refused"),
    [({"keep": ["zh"]}, "language", {"en"}), ({"min_score": 0.8}, "language_score", {"en", "zh"})],
)
def test_languages_are_chosen_and_code_is_left_alone(
    language: dict[str, Any], rule: str, refused: set[str], tmp_path: Path
) -> None:
    flow = run_flow(job(clean={"language": language}), make_chunks(), tmp_path)
    rows = pa.concat_tables([t for _, t in flow.stored[("label", "labels")]]).to_pylist()
    assert {r["language"] for r in rows if r["verdict"] == rule} == refused
    assert {r["language"] for r in rows if not r["verdict"]} == {"en", "zh", "code:python"} - refused
    assert flow.counts["label"].rejected == sum(r["verdict"] == rule for r in rows) > 0
    assert flow.counts["plan"].documents_in == flow.counts["label"].kept


def test_a_source_that_the_job_does_not_know_has_an_unknown_domain(tmp_path: Path) -> None:
    from dataflow_ops.job_file import parse_job

    flow = run_flow(parse_job({"dataset": {"id": "t"}}), make_chunks(), tmp_path)
    domains = {d for _, t in flow.stored[("label", "labels")] for d in t["domain"].to_pylist()}
    assert domains == {"unknown"}


def test_a_survivor_that_score_forgot_is_an_error(tmp_path: Path) -> None:
    chunk = make_chunks()[0]
    stored = {
        **{("confirm", kind): [(chunk.name, table)] for kind, table in lean(chunk.duplicates).items()},
        ("score", "scores"): [(chunk.name, pa.table({"row": pa.array([], pa.uint32())}))],
    }
    aligned = chunk.text
    for name in chunk.verdicts.schema.names:
        aligned = aligned.append_column(name, chunk.verdicts[name])
    step = LabelStep(job(), Words(), ByFirstLetter())
    with pytest.raises(ConservationError, match=r"score\.scores"):
        drive(step, FakeSide(stored, chunk.name), aligned, 50)


EASY = "The cat sat on the mat. It was a big cat. The dog ran to it. They had fun in the sun. "
HARD = (
    "Notwithstanding considerable methodological heterogeneity, contemporary epidemiological investigations"
    " consistently demonstrate statistically significant associations between environmental contaminants and"
    " cardiovascular morbidity throughout industrialised metropolitan populations. "
)


@pytest.mark.parametrize(
    ("text", "kind", "script", "level"),
    [
        (EASY, "prose", "latin", "easy"),
        (HARD, "prose", "latin", "hard"),
        ("我去学校。他很高兴！你好吗？" * 9, "prose", "han", "easy"),
        ("在上述诸多因素共同作用并且相互制约的复杂条件之下" * 4 + "。", "prose", "han", "hard"),
        ("a = 1\nb = 2\nc = 3\n", "code", "latin", "easy"),
        ("if a:\n" + "            x = 1\n" * 9, "code", "latin", "hard"),
        ("", "prose", "none", "easy"),
        ("... !!! ---", "prose", "none", "easy"),
    ],
)
def test_difficulty(text: str, kind: str, script: str, level: str) -> None:
    found = difficulty(
        pa.array([text], pa.large_string()), np.array([kind], object), np.array([script], object)
    )
    assert found.tolist() == [level]
