from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from dataflow_ops.samples.augment.render import render
from dataflow_ops.samples.augment.requests import body_of, request_key, retry_key
from dataflow_ops.samples.augment.templates import PLACEHOLDERS
from dataflow_ops.state.samples.targets import Turn
from tests.samples.augment.augment_case import template

CALL = [{"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]
DIALOGUE = [
    Turn(1, "f", 0, 0, "system", "Be kind.", {"record": {"id": "u1"}}),
    Turn(2, "f", 0, 1, "user", "你好", {}),
    Turn(3, "f", 0, 2, "assistant", "", {"tool_calls": CALL, "weight": 0}),
    Turn(4, "f", 0, 3, "tool", "42", {"tool_call_id": "c1"}),
    Turn(5, "f", 0, 4, "assistant", "It is 42.", {}),
]


def say(content: str, target: int = 4, draw: int = 0) -> str:
    wanted = template(messages=[{"role": "user", "content": content + "{{turn}}"}])
    (message,) = render(wanted, DIALOGUE, DIALOGUE[target], draw)
    text: str = message["content"]
    return text.removesuffix(DIALOGUE[target].content)


def test_placeholders() -> None:
    assert say("<{{role}}> {{ draw }}", draw=2) == "<assistant> 3"
    assert say("{{before}}|", 1) == "system: Be kind.|"
    assert say("{{after}}|", 2) == "tool: 42\n\nassistant: It is 42.|"
    whole = "system: Be kind.\n\nuser: 你好\n\nassistant: \n\ntool: 42\n\nassistant: It is 42."
    assert say("{{dialogue}}|") == f"{whole}|"
    assert say('{"a": {"b": {}}} { {turn} } {{}}|') == '{"a": {"b": {}}} { {turn} } {{}}|'


def test_a_dialogue_as_messages_of_its_own() -> None:
    def sent(which: str, target: int) -> list[dict[str, Any]]:
        return render(template(messages=[{"dialogue": which}]), DIALOGUE, DIALOGUE[target], 0)

    assert sent("through", 3) == [
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": "你好"},
        {"role": "assistant", "content": "", "tool_calls": CALL},
        {"role": "tool", "content": "42", "tool_call_id": "c1"},
    ]
    assert [m["content"] for m in sent("before", 1)] == ["Be kind."]
    assert len(sent("whole", 0)) == 5


@given(st.text(), st.text())
def test_text_of_samples_is_never_a_template(before: str, turn: str) -> None:
    marks = "".join(f"{{{{{name}}}}}" for name in PLACEHOLDERS)
    turns = [
        Turn(1, "f", 0, 0, "user", f"{before}{marks}\\1\\g<0>", {}),
        Turn(2, "f", 0, 1, "assistant", f"{turn}{marks}", {}),
    ]
    wanted = template(messages=[{"role": "user", "content": "[{{before}}][{{turn}}]"}])
    (message,) = render(wanted, turns, turns[1], 0)
    assert message["content"] == f"[user: {turns[0].content}][{turns[1].content}]"


@given(
    st.tuples(
        st.integers(0, 9), st.integers(0, 3), st.integers(0, 3), st.text(max_size=3), st.integers(0, 2)
    ),
    st.tuples(
        st.integers(0, 9), st.integers(0, 3), st.integers(0, 3), st.text(max_size=3), st.integers(0, 2)
    ),
)
def test_keys_are_equal_where_all_is_equal(
    one: tuple[int, int, int, str, int], other: tuple[int, int, int, str, int]
) -> None:
    def key(parts: tuple[int, int, int, str, int]) -> str:
        sample_id, turn, draw, text, temperature = parts
        body = {"model": "m", "temperature": temperature, "messages": [{"role": "user", "content": text}]}
        return request_key(sample_id, turn, draw, body)

    assert (key(one) == key(other)) == (one == other)


def test_a_retry_has_a_key_of_its_own_that_follows_from_the_old() -> None:
    body = body_of(template(seed=5), [{"role": "user", "content": "x"}], 1)
    assert body == {
        "temperature": 0.7,
        "max_tokens": 50,
        "seed": 6,
        "model": "test-model",
        "messages": [{"role": "user", "content": "x"}],
    }
    first = request_key(1, 1, 1, body)
    second = retry_key(first, body)
    assert len({first, second, retry_key(second, body)}) == 3
    assert retry_key(first, dict(reversed(body.items()))) == second
