"""Rows read by columns are what the same rows give record by record."""

from __future__ import annotations

import io
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from dataflow_ops.job_file import parse_job
from dataflow_ops.layers.parse.readers import parquet as reader
from dataflow_ops.layers.parse.records import RowBatch, SourceFile
from dataflow_ops.layers.parse.streams import HashedReader
from dataflow_ops.settings import JobSettings
from tests.layers.parse.harness import FakeSide, Ran, parse, settings

ODD = [
    *"\x00\x01\t\n\r\x0b\x1f \x7f\x80\x85\x9f\xa0\ufffd\ufeff\u2003\u3000",
    "e\u0301",
    "\u212b",
    "\u0f43",
    "\uf900",
    "\u1100\u1161",
    "\r\n",
    "“",
    "中",
    "\U0001f600",
    "a",
]
texts = (
    st.lists(st.sampled_from(ODD) | st.characters(exclude_categories=["Cs"]), max_size=6).map("".join)
    | st.text(" \n\u2003\u3000", max_size=3)
    | st.just("n\x00l")
)
values: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "id": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "url": (pa.string(), texts),
    "title": (pa.large_string(), texts),
    "score": (pa.float64(), st.floats(allow_nan=True)),
    "small": (pa.float32(), st.floats(width=32)),
    "ok": (pa.bool_(), st.booleans()),
    "none": (pa.null(), st.none()),
    'quo"te\\': (pa.uint64(), st.integers(0, 2**64 - 1)),
    "中": (pa.string(), texts),
}


@st.composite
def tables(draw: st.DrawFn) -> pa.Table:
    n = draw(st.integers(1, 12))
    # Few odd ones among plain ones, or no batch would be read by columns.
    rows = draw(st.lists(st.sampled_from(["a text", "中文", "x"]), min_size=n, max_size=n))
    for at in draw(st.lists(st.integers(0, n - 1), max_size=n // 3 + 1)):
        rows[at] = draw(st.none() | texts)
    made = {"text": pa.array(rows, draw(st.sampled_from([pa.string(), pa.large_string()])))}
    for name in draw(st.lists(st.sampled_from(sorted(values)), unique=True, max_size=3)):
        kind, of = values[name]
        usual = {pa.null(): None, pa.bool_(): True}.get(kind, "v" if of is texts else 1)
        column: list[Any] = [usual] * n
        for at in draw(st.lists(st.integers(0, n - 1), max_size=2)):
            column[at] = draw(st.none() | of)
        made[name] = pa.array(column, kind)
    return pa.table(made)


def stored(table: pa.Table) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink, row_group_size=5)
    return sink.getvalue()


def one_by_one(data: bytes, job: JobSettings) -> Ran:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reader, "_suits", lambda rows, options: False)
        return parse({"a.parquet": data}, job)


def told(ran: Ran) -> tuple[Any, ...]:
    metrics = [r.metrics for r in ran.results]
    return ran.docs, ran.rejects, ran.dead, ran.counts, metrics, ran.cursors


JOBS = [
    settings(),
    settings(clean={"boilerplate_filter": {"min_text_len": 1, "max_text_len": 4}}),
    settings(clean={"stored_text": {"unicode": "none"}}),
    settings(clean={"stored_text": {"lower_case": True}}),
    settings(clean={"normalization": {"remove_control_chars": False}}),
    parse_job(
        {
            "dataset": {"id": "t"},
            "sources": [{"source_id": "default", "path": "x", "id_field": "title", "url_field": "score"}],
        }
    ),
]


@hypothesis_settings(max_examples=300, deadline=None)
@given(tables(), st.sampled_from(JOBS))
def test_as_record_by_record(table: pa.Table, job: JobSettings) -> None:
    data = stored(table)
    assert repr(told(parse({"a.parquet": data}, job))) == repr(told(one_by_one(data, job)))


def batches(table: pa.Table) -> list[bool]:
    raw = HashedReader(io.BytesIO(stored(table)), "a.parquet", "")
    items = reader.read_parquet(SourceFile("s", "a.parquet", "application/vnd.apache.parquet"), raw)
    return [isinstance(item, RowBatch) for item in items]


def test_which_batches_are_read_by_columns() -> None:
    good = pa.table({"text": ["a", "b"], "n": [1, None]})
    assert batches(good) == [True]
    bad_utf8 = pa.array([b"good", b"\xff"], pa.binary()).view(pa.string())
    for other in (
        pa.table({"text": bad_utf8}),
        good.rename_columns(["txt", "n"]),
        good.rename_columns(["text", "text"]),
        good.append_column("list", pa.array([[1], [2]])),
        pa.table({"text": pa.array([1, 2])}),
    ):
        assert batches(other) == [False, False]


@pytest.mark.parametrize("after", range(8))
def test_goes_on_in_the_midst_of_a_batch(after: int) -> None:
    texts_ = ["one", "two", "th\x01ree", "four", "", "six", "seven"]
    side = FakeSide(
        {"a.parquet": stored(pa.table({"text": texts_})), "b.parquet": stored(pa.table({"text": ["z"]}))}
    )
    rest = parse(side, start=after)
    expected = [t.replace("\x01", "") for t in texts_[after:] if t]
    assert rest.texts == [*expected, "z"]
    assert rest.counts.documents_in == len(texts_) - after + 1
