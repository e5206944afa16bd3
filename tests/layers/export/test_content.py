"""The hashes of rows: whatever way they are cut, and for no other rows and no other order."""

from __future__ import annotations

import itertools
import random
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from dataflow_ops.layers.export.columns import EXPORTED
from dataflow_ops.layers.export.content import Content, content_of, content_of_all

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)


@st.composite
def rows(draw: Any, least: int = 0) -> list[dict[str, Any]]:
    found = draw(st.lists(st.tuples(texts, st.integers(0, 9), st.sampled_from(["a", "b"])), min_size=least))
    return [
        {
            **{f.name: "" if pa.types.is_string(f.type) else 0 for f in EXPORTED},
            "id": f"{number:032x}",
            "text": text,
            "tokens": tokens,
            "domain": domain,
            "quality_score": None if tokens % 2 else tokens / 10,
        }
        for number, (text, tokens, domain) in enumerate(found)
    ]


def table(found: list[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist(found, schema=EXPORTED)


@given(rows(), st.lists(st.integers(0, 20), max_size=4))
def test_cuts_change_nothing(found: list[dict[str, Any]], cuts: list[int]) -> None:
    whole = table(found)
    places = sorted({0, whole.num_rows, *(cut for cut in cuts if cut < whole.num_rows)})
    pieces = [whole.slice(a, b - a) for a, b in itertools.pairwise(places)]
    assert content_of_all(pieces) == content_of_all([whole])
    assert sum(map(content_of, pieces), Content()) == content_of_all([whole])
    assert Content.from_json(content_of(whole).as_json()) == content_of(whole)


@given(rows(least=2), st.randoms())
def test_another_order_is_told_from_other_rows(found: list[dict[str, Any]], chance: random.Random) -> None:
    other = found[:]
    chance.shuffle(other)
    one, two = content_of(table(found)), content_of(table(other))
    assert one.ids == two.ids
    assert (one.order == two.order) == (found == other)


@given(rows(least=1), st.data())
def test_any_other_value_is_other_rows(found: list[dict[str, Any]], data: Any) -> None:
    at = data.draw(st.integers(0, len(found) - 1))
    name = data.draw(st.sampled_from(["text", "path", "tokens", "copies", "metadata", "quality_score"]))
    was = found[at][name]
    new = f"{was}x" if isinstance(was, str) else (was or 0) + 1
    other = [{**row, name: new} if place == at else row for place, row in enumerate(found)]
    one, two = content_of(table(found)), content_of(table(other))
    assert one.ids != two.ids
    assert one.order != two.order


@given(rows(least=1))
def test_sums_are_those_of_a_plain_loop(found: list[dict[str, Any]]) -> None:
    content = content_of(table(found))
    assert content.rows == content.documents == len(found)
    assert content.tokens == sum(row["tokens"] for row in found)
    assert content.text_bytes == sum(len(row["text"].encode()) for row in found)
    assert {key: cell[0] for key, cell in content.cells.items()} == {
        (domain, ""): sum(row["domain"] == domain for row in found)
        for domain in {row["domain"] for row in found}
    }


def test_bytes_can_not_move_between_two_columns() -> None:
    blank = {f.name: "" if pa.types.is_string(f.type) else 0 for f in EXPORTED}
    one = {**blank, "id": "0", "messages": "ab", "text": "c", "quality_score": None}
    two = {**blank, "id": "0", "messages": "a", "text": "bc", "quality_score": None}
    assert content_of(table([one])).ids != content_of(table([two])).ids
