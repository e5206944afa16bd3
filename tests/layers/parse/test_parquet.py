from __future__ import annotations

import datetime
import io
import json
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.layers.parse.harness import FakeSide, parse


def stored(table: pa.Table, rows: int = 3) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink, row_group_size=rows)
    return sink.getvalue()


ROWS = pa.table(
    {
        "text": [f"text {i}" for i in range(10)],
        "id": list(range(10)),
        "url": ["http://p.test/"] * 10,
        "when": [datetime.date(2024, 1, 1)] * 10,
        "score": [float("nan"), *[0.5] * 9],
        "blob": [b"\x00\xff"] * 10,
    }
)


def test_rows_and_metadata() -> None:
    ran = parse({"a.parquet": stored(ROWS)})
    assert ran.texts == [f"text {i}" for i in range(10)]
    assert [d["position"] for d in ran.docs] == list(range(10))
    assert json.loads(ran.docs[0]["metadata"]) == {"blob": "AP8=", "score": None, "when": "2024-01-01"}
    assert (ran.docs[0]["repairs"], ran.docs[1]["repairs"]) == ("nan", "")
    assert (ran.docs[3]["source_record_id"], ran.docs[3]["url"]) == ("3", "http://p.test/")


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ([b"text"], "bytes (binary)"),
        ([datetime.date(2024, 1, 1)], "a date"),
        ([7], "a number"),
        ([True], "true or false"),
    ],
)
def test_a_text_that_is_no_string_is_told_by_what_it_is(values: list[object], named: str) -> None:
    (dead,) = parse({"a.parquet": stored(pa.table({"text": values}))}).dead
    assert dead["message"] == f"'text' must be a string, not {named}"


def test_row_group_ranges_give_every_row_once() -> None:
    data = stored(ROWS)
    whole = parse({"a.parquet": data}).docs
    parts: list[dict[str, Any]] = []
    for start, end in ((0, 1), (1, 3), (3, -1)):
        parts += parse(FakeSide({"a.parquet": data}, extra={"a.parquet": {"start": start, "end": end}})).docs
    assert parts == whole


@pytest.mark.parametrize(
    "kind", [pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string()), pa.string_view()]
)
def test_kinds_of_string_columns(kind: pa.DataType) -> None:
    values = pa.array(["a", None, "水"], pa.string()).cast(kind)
    sink = pa.table({"text": values})
    try:
        data = stored(sink)
    except pa.ArrowNotImplementedError:
        pytest.skip("pyarrow does not write this type")
    ran = parse({"a.parquet": data})
    assert ran.texts == ["a", "水"]
    assert "null" in ran.dead[0]["message"]


def test_bad_utf8_costs_its_row_only() -> None:
    bad = pa.array([b"good", b"\xff\xfe", b"also"], pa.binary()).view(pa.string())
    ran = parse({"a.parquet": stored(pa.table({"text": bad}))})
    assert ran.texts == ["good", "also"]
    assert (ran.dead[0]["error"], ran.dead[0]["position"]) == ("UndecodableText", 1)


def test_dialogues_in_parquet() -> None:
    turns = [[{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]]
    (doc,) = parse({"a.parquet": stored(pa.table({"messages": turns}))}).docs
    assert doc["text"] == "user: q\n\nassistant: a"


def test_damage_is_a_file_level_dead_letter() -> None:
    data = stored(ROWS)
    ran = parse({"a.parquet": data[:-20], "b.parquet": b"PAR1", "c.parquet": data})
    assert [(d["path"], d["level"], d["error"]) for d in ran.dead] == [
        ("a.parquet", "file", "UnreadableFile"),
        ("b.parquet", "file", "UnreadableFile"),
    ]
    assert len(ran.docs) == 10


def test_no_rows() -> None:
    assert parse({"a.parquet": stored(ROWS.slice(0, 0))}).counts.documents_in == 0
