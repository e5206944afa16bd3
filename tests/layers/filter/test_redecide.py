"""Deciding from stored statistics against running the filter step itself."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dataflow_ops.job_file import parse_job
from dataflow_ops.kernels.arrow import I64
from dataflow_ops.layers.filter.redecide import Decided, Stored, decide, measured_then, wanted
from dataflow_ops.layers.filter.rule import KINDS
from dataflow_ops.layers.filter.selection import known_rules, select
from dataflow_ops.layers.filter.step import FilterStep, context_of
from dataflow_ops.settings import CleanSettings, JobSettings
from tests.layers.filter.documents import batch

DATA = Path(__file__).parents[2] / "cases" / "data" / "text"
CODE = Path(__file__).read_text(encoding="utf-8")


def _documents() -> pa.Table:
    """Good, bad and middling texts of every kind, so that each rule has something on both sides."""
    rng = random.Random(5)
    prose = [path.read_text(encoding="utf-8") for path in sorted(DATA.glob("*.txt"))]
    words = " ".join(prose).split()
    texts = ["", "short", CODE, CODE[:90], "a\x00" * 300, "�" * 4 + "x y z. " * 40, *prose]
    texts += ["\n".join(f"{i}\t{i * 7}\tname{i}" for i in range(60)), "a|b|c\n" * 50]
    for _ in range(120):
        piece = " ".join(rng.choices(words, k=rng.choice((5, 30, 80, 200))))
        loop = (piece[:40] + rng.choice(" \n.")) * rng.choice((0, 0, 2, 5, 20))
        extra = rng.choice(("", "{ } lorem ipsum ...\n", "zap word. ", "fuck ", "\x01\x02", "!!!---### " * 9))
        texts.append(loop + extra * rng.randint(0, 3) + piece)
    hints = [rng.choice(("", "", "", "code", "dialogue")) for _ in texts]
    table = batch(texts, hints)
    unknown = pa.array(
        [None if i % 11 == 3 else v.as_py() for i, v in enumerate(table["raw_chars"])], pa.int32()
    )
    return table.set_column(table.schema.get_field_index("raw_chars"), "raw_chars", unknown)


DOCUMENTS = _documents()


def job(quality: dict[str, Any]) -> JobSettings:
    length = quality.get("min_text_len")
    quality = {key: value for key, value in quality.items() if key != "min_text_len"}
    clean: dict[str, Any] = {"quality_rules": quality}
    if length is not None:
        clean["boilerplate_filter"] = {"min_text_len": length}
    return parse_job({"dataset": {"id": "t"}, "clean": clean})


def ran(settings: JobSettings) -> dict[str, pa.Table]:
    step = FilterStep(settings)
    return dict(step.process(DOCUMENTS, 0, step.open(None)).outputs)  # type: ignore[arg-type]


def answered(before: JobSettings, after: CleanSettings) -> Decided:
    outputs, old, new = ran(before), select(before.clean), select(after)
    then = measured_then(old, before.clean.quality_rules.bad_words != after.quality_rules.bad_words)
    kinds = [KINDS.index(kind) for kind in outputs["verdicts"]["kind"].to_pylist()]
    stopped = np.zeros(DOCUMENTS.num_rows, np.bool_)
    rejects = outputs["rejects"].to_pylist()
    stopped[[r["row"] for r in rejects if r["gate"] == "L1"]] = True
    stats = {name: outputs["stats"][name].to_numpy() for name in wanted(new, then)}

    def texts(rows: I64) -> Iterator[tuple[I64, pa.Table]]:
        for start in range(0, rows.size, 13):
            piece = rows[start : start + 13]
            yield piece, DOCUMENTS.take(pa.array(piece))

    return decide(new, Stored(np.array(kinds), stopped, then, stats), texts, context_of(after, new))


def check(before: dict[str, Any], after: dict[str, Any]) -> Decided:
    target = job(after)
    decided = answered(job(before), target.clean)
    names = [active.rule.name for active in select(target.clean)]
    rejects = ran(target)["rejects"]
    expected = dict(
        zip(
            rejects["row"].to_pylist(),
            zip(rejects["rule"].to_pylist(), rejects["value"].to_pylist(), strict=True),
            strict=True,
        )
    )
    found = {
        int(row): (names[decided.rule[row]], None if np.isnan(decided.value[row]) else decided.value[row])
        for row in np.flatnonzero(decided.rule >= 0)
    }
    assert found == expected
    return decided


CHANGES: list[dict[str, Any]] = [
    {},
    {"min_text_len": 0},
    {"min_text_len": 900},
    {"max_control_ratio": 0.5},
    {"min_meaningful_ratio": 0.0},
    {"min_meaningful_ratio": 0.9},
    {"max_repetition_ratio": 0.05},
    {"min_zlib_ratio": 0.05},
    {"min_zlib_ratio": 0.45},
    {"rules": {"zlib_ratio": {"high": 0.6}}},
    {"rules": {"zlib_ratio.code": {"low": 0.4}, "zlib_window": {"low": 0.3}}},
    {"rules": {"digit_share": {"high": 0.01}, "word_count": {"low": 40}}},
    {"rules": {"entropy.dialogue": {"low": 4.0}}},
    {"enable": ["han_share"]},
    {"disable": ["length", "zlib_ratio", "stop_words"]},
    {"enabled": False},
    {"bad_words": ["zap word", "the"]},
    {"presets": ["gopher"]},
    {"presets": ["gopher", "c4", "fineweb"], "bad_words": ["zap word"]},
    {"presets": ["c4"], "min_text_len": 10, "min_entropy": 4.2},
]


@pytest.mark.parametrize("after", CHANGES, ids=str)
@pytest.mark.parametrize("before", [{}, CHANGES[8], CHANGES[15], CHANGES[18]], ids=str)
def test_every_change_is_answered_as_the_step_decides(before: dict[str, Any], after: dict[str, Any]) -> None:
    check(before, after)


RULES = sorted(known_rules())
BOUND = st.one_of(st.none(), st.sampled_from([0.0, 0.01, 0.1, 0.2, 0.35, 0.5, 0.9, 2.0, 4.0, 60.0, 300.0]))


@st.composite
def qualities(draw: st.DrawFn) -> dict[str, Any]:
    rules = {}
    for name in draw(st.lists(st.sampled_from(RULES), max_size=4, unique=True)):
        kind = draw(st.sampled_from(["", "", *KINDS]))
        # One side at a time: a low bound above the high one is refused, which is another test's business.
        low = draw(st.booleans())
        value = draw(BOUND)
        rules[f"{name}.{kind}" if kind else name] = {"low": value} if low else {"high": value}
    return {
        "rules": rules,
        "presets": draw(st.lists(st.sampled_from(["gopher", "c4", "fineweb"]), max_size=2, unique=True)),
        "disable": draw(st.lists(st.sampled_from(RULES), max_size=3, unique=True)),
        "bad_words": draw(st.sampled_from([[], ["zap word"], ["of the"]])),
    }


@settings(max_examples=60, deadline=None)
@given(qualities(), qualities())
def test_any_two_settings(before: dict[str, Any], after: dict[str, Any]) -> None:
    from dataflow_ops.errors import ConfigError

    try:
        select(job(before).clean), select(job(after).clean)
    except ConfigError:
        return
    check(before, after)


def test_only_what_is_not_settled_is_measured() -> None:
    assert not check({}, {}).measured.any()
    assert not check({}, {"max_repetition_ratio": 0.05}).measured.any()
    assert not check({}, {"disable": ["zlib_ratio"]}).measured.any()
    looser = check({}, {"min_text_len": 0})
    outputs = ran(job({}))
    short = {r["row"] for r in outputs["rejects"].to_pylist() if r["rule"] == "length"}
    assert set(np.flatnonzero(looser.measured).tolist()) == short - {
        r["row"] for r in ran(job({"min_text_len": 0}))["rejects"].to_pylist() if r["gate"] == "L1"
    }
    tighter = check({}, {"min_zlib_ratio": 0.45})
    assert 0 < tighter.measured.sum() < DOCUMENTS.num_rows
