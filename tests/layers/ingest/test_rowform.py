from __future__ import annotations

import datetime as dt
import decimal
import json
import uuid
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataflow_ops.errors import ConfigError
from dataflow_ops.layers.ingest import rowform

text = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
part = st.one_of(
    st.integers(-(2**70), 2**70),
    text,
    st.uuids(),
    st.decimals(allow_nan=False, allow_infinity=False),
    st.datetimes(),
    st.datetimes(timezones=st.just(dt.UTC)),
    st.dates(),
)
keys = st.lists(part, min_size=1, max_size=3).map(tuple)


@given(keys)
def test_a_key_comes_back_from_json(key: rowform.Key) -> None:
    found = rowform.key_of(json.loads(json.dumps(rowform.key_json(key, "here"))))
    assert found == key
    assert list(map(type, found)) == list(map(type, key))


@pytest.mark.parametrize("odd", [1.5, True, b"x", None, [1]])
def test_types_that_are_no_keys(odd: object) -> None:
    with pytest.raises(
        ConfigError, match=f"here: a key of type {type(odd).__name__} can't be read by ranges"
    ):
        rowform.key_json((1, odd), "here")


def test_a_key_that_is_not_utf8() -> None:
    with pytest.raises(ConfigError, match=r"here: a key is not UTF-8 \('a\\udcff'\)"):
        rowform.key_json(("a\udcff",), "here")


@given(st.lists(st.lists(text, min_size=2, max_size=2).map(tuple), unique=True, min_size=2, max_size=2))
def test_names_of_keys_are_their_own_and_fit_a_path(two: list[tuple[str, str]]) -> None:
    first, second = map(rowform.key_name, two)
    assert first != second
    assert not set(first) & set("/\n\r\t\x00")
    first.encode("utf-8")


def test_names_are_readable() -> None:
    assert rowform.key_name((12,)) == "12"
    assert rowform.key_name(("中文", 3)) == "中文,3"
    assert rowform.key_name(("a/b,c%", dt.date(2026, 11, 30))) == "a%2Fb%2Cc%25,2026-11-30"
    long = [rowform.key_name(("x" * 500 + end,)) for end in "ab"]
    assert long[0] != long[1]
    assert max(map(len, long)) < 140
    assert rowform.key_text((12,)) == "12"
    assert rowform.key_text(("中", 3)) == '["中", 3]'


@given(keys)
def test_a_whole_number_is_its_own_place(key: rowform.Key) -> None:
    place = rowform.position_of(key)
    assert 0 <= place < 2**63
    if len(key) == 1 and type(key[0]) is int and 0 <= key[0] < 2**63:
        assert place == key[0]


def parsed(line: bytes) -> tuple[int, str, dict[str, Any]]:
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    number, record_id, fields = line[:-1].split(b"\t")
    return int(number), json.loads(record_id), json.loads(fields)


def test_a_line_holds_every_value() -> None:
    row = {
        "id": 7,
        "text": "tab\there, line\nthere, NUL\x00, 中",
        "when": dt.datetime(2026, 11, 30, 12, tzinfo=dt.UTC),
        "day": dt.date(2026, 11, 30),
        "price": decimal.Decimal("1.50"),
        "blob": memoryview(b"\xff\x00"),
        "tags": ["a", {"b": uuid.UUID(int=1)}],
        "nothing": None,
        "yes": True,
        "span": dt.timedelta(hours=1),
    }
    line = rowform.line_of(list(row), list(row.values()), (7,), "text")
    assert parsed(line) == (
        7,
        "7",
        {
            **{name: row[name] for name in ("id", "text", "nothing", "yes")},
            "when": "2026-11-30T12:00:00+00:00",
            "day": "2026-11-30",
            "price": "1.50",
            "blob": "/wA=",
            "tags": ["a", {"b": "00000000-0000-0000-0000-000000000001"}],
            "span": "1:00:00",
        },
    )
    assert line == rowform.line_of(list(row)[::-1], list(row.values())[::-1], (7,), "text")


def test_text_that_comes_as_bytes_is_text() -> None:
    line = rowform.line_of(["id", "text"], ["a", "中".encode()], ("a",), "text")
    assert parsed(line)[1:] == ("a", {"id": "a", "text": "中"})
    odd = rowform.line_of(["id", "text"], ["a", b"\xe4\xb8"], ("a",), "text")
    assert b'"text":"\xe4\xb8"' in odd
