from __future__ import annotations

from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataflow_ops.clients.openai_answers import Completion
from dataflow_ops.samples.augment.templates import Check
from dataflow_ops.samples.augment.validate import AnswerRefused, accept

SCHEMA = {
    "type": "object",
    "properties": {"score": {"type": "integer"}, "why": {"type": "string", "minLength": 2}},
    "required": ["score", "why"],
}


def completion(text: str, finish: str = "stop", refusal: str = "") -> Completion:
    return Completion(text, finish, refusal, 1, 1, b"", 1, 0, 0.0)


def taken(text: str, source: str = "the turn", finish: str = "stop", refusal: str = "", **check: Any) -> Any:
    return accept(Check(**check), completion(text, finish, refusal), source)


@pytest.mark.parametrize(
    ("name", "text", "options"),
    [
        ("EmptyAnswer", "", {}),
        ("EmptyAnswer", " \t\n\u3000", {}),
        ("EmptyAnswer", "\u200b\ufeff\u200d", {}),
        ("CutShort", "half", {"finish": "length"}),
        ("Refused", "half", {"finish": "content_filter"}),
        ("Refused", "text", {"refusal": "no"}),
        ("Refused", "I'm sorry, but I can't help with that.", {}),
        ("WrongLength", "abc", {"min_chars": 4}),
        ("WrongLength", "  abcde  ", {"max_chars": 4}),
        ("Unchanged", " the turn\n", {"must_differ": True}),
        ("BrokenText", "a\0b", {}),
        ("BrokenText", f"a{chr(0xD800)}b", {}),
        ("BrokenText", "a\ufffdb", {}),
        ("NotJson", "score: 5", {"json_schema": SCHEMA}),
        ("NotJson", '{"score": NaN, "why": "ok"}', {"json_schema": SCHEMA}),
        ("NotJson", "[" * 100_000, {"json_schema": SCHEMA}),
        ("WrongShape", '{"score": 5}', {"json_schema": SCHEMA}),
        ("WrongShape", '{"score": "5", "why": "ok"}', {"json_schema": SCHEMA}),
        ("NoScore", "Score: 5", {"score": {"low": 1, "high": 5}}),
        ("NoScore", "5/5", {"score": {"low": 1, "high": 5}}),
        ("NoScore", "1e3", {"score": {"low": 1, "high": 5}}),
        ("NoScore", '{"score": true}', {"score": {"low": 1, "high": 5, "field": "score"}}),
        ("NoScore", "[5]", {"score": {"low": 1, "high": 5, "field": "score"}}),
        ("ScoreOutOfRange", "6", {"score": {"low": 1, "high": 5}}),
        ("ScoreOutOfRange", "0.99", {"score": {"low": 1, "high": 5}}),
        ("ScoreOutOfRange", "4.5", {"score": {"low": 1, "high": 5, "whole": True}}),
    ],
)
def test_what_is_no_result(name: str, text: str, options: dict[str, Any]) -> None:
    with pytest.raises(AnswerRefused) as caught:
        taken(text, **options)
    assert caught.value.name == name


@pytest.mark.parametrize(
    ("text", "score", "options"),
    [
        ("5", 5.0, {"low": 1, "high": 5}),
        (" 4.5.\n", 4.5, {"low": 1, "high": 5}),
        ("４。", 4.0, {"low": 1, "high": 5}),
        ("-1", -1.0, {"low": -2, "high": 5}),
        ('{"score": 3, "why": "x"}', 3.0, {"low": 1, "high": 5, "field": "score"}),
        ('```json\n{"score": 3}\n```', 3.0, {"low": 1, "high": 5, "field": "score"}),
        ("5.0", 5.0, {"low": 1, "high": 5, "whole": True}),
    ],
)
def test_scores(text: str, score: float, options: dict[str, Any]) -> None:
    assert taken(text, score=options).score == score


def test_results_are_kept_as_they_came() -> None:
    assert taken("  两个空格 \n").text == "  两个空格 \n"
    assert taken("half", finish="length", cut_short="keep").text == "half"
    assert taken("I'm sorry, but I can't help with that.", refusals="keep").text.startswith("I'm")
    assert taken("a\ufffdb", source="what is \ufffd?").text == "a\ufffdb"
    assert taken('```json\n{"score": 5, "why": "ok"}\n```\n', json_schema=SCHEMA).text == (
        '{"score": 5, "why": "ok"}'
    )
    assert taken("```python\nprint()\n```").text == "```python\nprint()\n```"


def test_a_message_says_what_and_where() -> None:
    with pytest.raises(AnswerRefused, match=r"at \$\.why: 'x' is too short"):
        taken('{"score": 5, "why": "x"}', json_schema=SCHEMA)
    with pytest.raises(AnswerRefused, match="5 characters, not 1 to 4"):
        taken("abcde", max_chars=4)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["score", "why", "x"]), inner)
    ),
    max_leaves=5,
)


@given(JSON)
def test_the_schema_decides_as_the_library_does(value: Any) -> None:
    import json

    text = json.dumps(value, ensure_ascii=False)
    fits = jsonschema.Draft202012Validator(SCHEMA).is_valid(value)
    broken = any(c == "\0" or c == "\ufffd" or "\ud800" <= c <= "\udfff" for c in text)
    if fits and not broken:
        assert taken(text, json_schema=SCHEMA).text == text
    else:
        with pytest.raises(AnswerRefused):
            taken(text, json_schema=SCHEMA)
