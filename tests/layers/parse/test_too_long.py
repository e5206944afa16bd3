from __future__ import annotations

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataflow_ops.layers.parse.too_long import cut_text, split_text
from tests.layers.parse.harness import parse, settings

TEXTS = st.text(st.sampled_from("ab 。.\n\u0301水é "), max_size=300)


@given(TEXTS, st.integers(1, 60))
def test_parts_joined_are_the_text(text: str, limit: int) -> None:
    parts = split_text(text, limit)
    assert "".join(parts) == text
    assert all(len(p) <= limit for p in parts)
    assert all(parts) or text == ""


@given(TEXTS, st.integers(1, 60))
def test_cut_is_a_beginning(text: str, limit: int) -> None:
    cut = cut_text(text, limit)
    assert text.startswith(cut)
    assert len(cut) <= limit
    assert cut or not text


def test_paragraphs_before_lines_before_sentences() -> None:
    text = "One. Two.\nThree.\n\nFour. Five.\nSix."
    assert split_text(text, 20) == ["One. Two.\nThree.\n\n", "Four. Five.\nSix."]
    assert split_text("第一句话。第二句话。第三句话。第四句话。", 12) == [
        "第一句话。第二句话。",
        "第三句话。第四句话。",
    ]


def test_no_stub_is_left() -> None:
    parts = split_text("word " * 1001, 5000)
    assert min(map(len, parts)) > 1000


def job(how: str) -> object:
    return settings(clean={"on_too_long": how, "boilerplate_filter": {"min_text_len": 1, "max_text_len": 40}})


def test_split_is_marked_and_counted() -> None:
    text = "First paragraph here.\n\nSecond paragraph here.\n\nThird."
    ran = parse({"a.txt": text.encode()}, job("split"))  # type: ignore[arg-type]
    assert "".join(ran.texts) == text
    assert [d["part"] for d in ran.docs] == list(range(len(ran.docs)))
    assert {d["repairs"] for d in ran.docs} == {"split"}
    assert len({d["doc_id"] for d in ran.docs}) == len(ran.docs) > 1
    assert (ran.counts.kept, ran.counts.documents_out) == (1, len(ran.docs))
    assert ran.results[0].metrics == {"repaired.split": 1.0}


def test_truncate_and_reject() -> None:
    data = {"a.txt": b"word " * 20}
    (doc,) = parse(data, job("truncate")).docs  # type: ignore[arg-type]
    assert len(doc["text"]) <= 40
    assert doc["repairs"] == "truncated"
    ran = parse(data, job("reject"))  # type: ignore[arg-type]
    assert ran.docs == []
    assert (ran.rejects[0]["rule"], ran.rejects[0]["value"], ran.rejects[0]["bound"]) == ("too_long", 100, 40)
    assert ran.results[0].rule_hits == {"too_long": 1}


def test_dialogues_are_split_between_turns() -> None:
    turns = [{"role": "user", "content": f"number {i}"} for i in range(6)]
    data = {"a.jsonl": json.dumps({"messages": turns}).encode()}
    ran = parse(data, job("split"))  # type: ignore[arg-type]
    assert [t for d in ran.docs for t in json.loads(d["messages"])] == turns
    assert all(len(d["text"]) <= 40 for d in ran.docs)


@pytest.mark.parametrize("how", ["split", "truncate"])
def test_a_turn_above_the_limit_is_rejected(how: str) -> None:
    data = {"a.jsonl": json.dumps({"messages": [{"role": "user", "content": "x" * 50}]}).encode()}
    assert parse(data, job(how)).rejects[0]["rule"] == "too_long"  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "text",
    ["." * 300_000, "?!" * 150_000, "\n" + " " * 300_000, "\n \n" * 100_000, "。" * 300_000, "a'" * 150_000],
)
def test_no_text_costs_its_square(text: str) -> None:
    began = time.process_time()
    assert "".join(split_text(text, 40_000)) == text
    assert time.process_time() - began < 2
