from __future__ import annotations

from collections import Counter

import pytest

from dataflow_ops.errors import ConfigError, MalformedRecord
from dataflow_ops.samples.formats import FORMATS, format_named, format_of
from dataflow_ops.samples.turns import rows_of


def _turns(name: str, record: dict[str, object]) -> list[dict[str, object]]:
    return [dict(turn) for turn in FORMATS[name].read(record).turns]


def test_messages_keep_tools_and_empty_and_consecutive_turns() -> None:
    call = {"id": "c1", "function": {"name": "f", "arguments": "{}"}}
    record = {
        "id": "u1",
        "messages": [
            {"role": "system", "content": "be brief"},
            {"role": "user", "content": "a"},
            {"role": "user", "content": "b"},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "content": "42", "tool_call_id": "c1"},
            {"role": "assistant", "content": ""},
        ],
        "tools": [{"name": "f"}],
    }
    found = FORMATS["messages"].read(record)
    assert [t["role"] for t in found.turns] == ["system", "user", "user", "assistant", "tool", "assistant"]
    assert found.turns[3] == {"role": "assistant", "content": "", "tool_calls": [call]}
    assert found.turns[5]["content"] == ""
    assert found.own == {"id": "u1", "tools": [{"name": "f"}]}


def test_sharegpt() -> None:
    record = {
        "system": "S",
        "conversations": [{"from": "human", "value": "q"}, {"from": "gpt", "value": "a"}],
        "id": 7,
    }
    assert _turns("sharegpt", record) == [
        {"role": "system", "content": "S"},
        {"role": "user", "content": "q"},
        {"role": "assistant", "content": "a"},
    ]
    assert FORMATS["sharegpt"].read(record).own == {"id": 7}


def test_a_system_value_that_is_no_text_is_not_lost() -> None:
    record = {"system": {"a": 1}, "conversations": [{"from": "human", "value": "q"}]}
    assert FORMATS["sharegpt"].read(record).own == {"system": {"a": 1}}


def test_instruction() -> None:
    record = {
        "instruction": "Translate",
        "input": "你好",
        "output": "hello",
        "system": "S",
        "history": [["q0", "a0"]],
        "lang": "zh",
    }
    assert _turns("instruction", record) == [
        {"role": "system", "content": "S"},
        {"role": "user", "content": "q0"},
        {"role": "assistant", "content": "a0"},
        {"role": "user", "content": "Translate\n\n你好", "input": "你好"},
        {"role": "assistant", "content": "hello"},
    ]
    assert FORMATS["instruction"].read(record).own == {"lang": "zh"}


def test_an_empty_input_adds_nothing() -> None:
    assert _turns("instruction", {"prompt": "q", "context": "", "response": ""}) == [
        {"role": "user", "content": "q"},
        {"role": "assistant", "content": ""},
    ]


@pytest.mark.parametrize(
    ("name", "record", "message"),
    [
        ("messages", {"text": "x"}, "no key 'messages'"),
        ("messages", {"messages": "x"}, "array"),
        ("messages", {"messages": [{"role": "wizard", "content": "x"}]}, "wizard"),
        ("sharegpt", {"messages": []}, "no key 'conversations'"),
        ("instruction", {"instruction": "x"}, "no key 'output'"),
        ("instruction", {"output": "x"}, "no key 'instruction'"),
        ("instruction", {"instruction": 1, "output": "x"}, "'instruction' must be a text"),
        ("instruction", {"instruction": "a", "output": "b", "history": [["x"]]}, "history"),
    ],
)
def test_what_is_no_dialogue(name: str, record: dict[str, object], message: str) -> None:
    with pytest.raises(MalformedRecord, match=message):
        FORMATS[name].read(record)


def test_formats_are_told_apart() -> None:
    assert format_of({"messages": []}) == "messages"
    assert format_of({"conversations": []}) == "sharegpt"
    assert format_of({"instruction": "a", "output": "b"}) == "instruction"
    assert format_of({"text": "a"}) is None
    with pytest.raises(ConfigError, match="messages, sharegpt, instruction"):
        format_named("alpaca")


def _rows(record: dict[str, object], repaired: Counter[str] | None = None) -> list[dict[str, object]]:
    return rows_of(FORMATS["messages"].read(record), "f", 3, Counter() if repaired is None else repaired)


def test_rows_hold_what_a_database_takes() -> None:
    repaired: Counter[str] = Counter()
    rows = _rows(
        {
            "messages": [
                {"role": "user", "content": "a\0b"},
                {"role": "assistant", "content": "x\udcff", "name": "n\0"},
            ],
            "id": "u\0",
            "score": float("nan"),
        },
        repaired,
    )
    assert [(r["turn_taking"], r["data_content"], r["data_length"]) for r in rows] == [
        (0, "ab", 2),
        (1, "x�", 2),
    ]
    assert rows[0]["data_meta"] == '{"record":{"id":"u","score":null}}'
    assert rows[1]["data_meta"] == '{"name":"n"}'
    assert repaired == {"nul": 3, "nan": 1, "surrogate": 1}
    assert {r["row_identifier"] for r in rows} == {3}


@pytest.mark.parametrize(
    ("messages", "message"),
    [([], "no turns"), ([{"role": "user", "content": "x", "record": 1}], "'record'")],
)
def test_records_that_make_no_rows(messages: list[object], message: str) -> None:
    with pytest.raises(MalformedRecord, match=message):
        _rows({"messages": messages})


def test_a_refused_record_counts_no_repairs() -> None:
    repaired: Counter[str] = Counter()
    with pytest.raises(MalformedRecord):
        _rows(
            {"messages": [{"role": "user", "content": "\0"}, {"role": "user", "content": "", "record": 1}]},
            repaired,
        )
    assert not repaired
