from __future__ import annotations

import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dataflow_ops.kernels.windows import _LAST_CASED, lower_lines, sample_lines, sample_text

EVERY = [chr(c) for c in range(sys.maxunicode + 1) if not 0xD800 <= c < 0xE000]
spaces = st.sampled_from(" \t\n\r\v\f\x1c\x1d\x1e\x1f\x85\xa0\u1680\u2003\u2028\u2029\u202f\u205f\u3000\0")
letters = st.sampled_from("aAzZéÉßẞİıǅΣσςЖжⅣⓐºª中文あ한ا😀𐐀𐐨1.-<>")
anything = st.characters(exclude_categories=["Cs"])
text = st.one_of(
    st.text(anything, max_size=60),
    st.text(st.one_of(spaces, letters), max_size=60),
    st.text(st.sampled_from("ABC É\u3000中"), max_size=200),
    st.tuples(st.text(st.one_of(spaces, letters, anything), max_size=40), st.integers(0, 12)).map(
        lambda x: x[0] * x[1]
    ),
)


def sampled(texts: list[str], window: int) -> list[str]:
    bodies = [t.encode() for t in texts]
    offsets = np.concatenate([[0], np.cumsum([len(b) for b in bodies])]).astype(np.int64)
    lines, capital = sample_lines(np.frombuffer(b"".join(bodies), np.uint8), offsets, window)
    assert lines.data.size >= lines.offsets[-1] + 8
    found = [lines.data[a:b].tobytes() for a, b in zip(lines.offsets, lines.offsets[1:], strict=False)]
    rows = np.flatnonzero(capital)
    lowered = lower_lines(lines, rows)
    for i, a, b in zip(rows, lowered.offsets, lowered.offsets[1:], strict=False):
        found[i] = lowered.data[a:b].tobytes()
    assert all(line[:1] == line[-1:] == b" " and len(line) >= 2 for line in found)
    return [line[1:-1].decode() for line in found]


@settings(max_examples=400)
@given(st.lists(text, max_size=5), st.sampled_from([1, 2, 7, 33, 100]))
def test_equals_the_definition(texts: list[str], window: int) -> None:
    assert sampled(texts, window) == [sample_text(t, window) for t in texts]


@pytest.mark.parametrize("frame", ["{}", "A{}", "a{}b", "{} {}", " {}"])
def test_every_code_point(frame: str) -> None:
    texts = [frame.format(c, c) for c in EVERY]
    assert sampled(texts, 100) == [sample_text(t, 100) for t in texts]


def test_no_character_is_cased_beyond_the_table() -> None:
    beyond = [c for c in EVERY if ord(c) >= _LAST_CASED]
    assert not any(c.isspace() or c.isupper() or c.islower() or c.istitle() or c.lower() != c for c in beyond)


@pytest.mark.parametrize("unit", ["a", "é", "中", "😀", "aé中😀", "a" * 63 + "é", "中" * 21 + "a"])
@pytest.mark.parametrize("characters", [399, 400, 401, 402, 403, 464, 1000, 5003])
def test_windows_stand_where_the_definition_says(unit: str, characters: int) -> None:
    body = (unit * characters)[:characters]
    assert sampled([body, "x", body], 100) == [sample_text(t, 100) for t in [body, "x", body]]


def test_the_sample_is_bounded_and_reaches_the_end() -> None:
    sample = sample_text("a" * 5000 + "b" * 5000, 100)
    assert len(sample) == 403
    assert sample.endswith("b" * 100)
    assert sample_text("short", 100) == "short"
    assert sample_text("ALL CAPITALS\n\tÉTÉ", 100) == "all capitals été"
