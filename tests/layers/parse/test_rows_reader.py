from __future__ import annotations

import hashlib
import io
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataflow_ops import media
from dataflow_ops.errors import DocumentTooCostly, UndecodableText, UnreadableFile
from dataflow_ops.layers.ingest.rowform import line_of
from dataflow_ops.layers.parse.readers import reader_of
from dataflow_ops.layers.parse.records import BadRecord, Item, RawRecord, SourceFile
from dataflow_ops.layers.parse.streams import HashedReader


def read(data: bytes, **more: int) -> list[Item]:
    # A key may end like the name of a compressed file; what is inside says nothing else.
    file = SourceFile("s", "t/slug>=a.gz/rows", media.ROWS, **more)  # type: ignore[arg-type]
    raw = HashedReader(io.BytesIO(data), file.path, hashlib.sha256(data).hexdigest())
    found = list(reader_of(media.ROWS)(file, raw))
    raw.verify()
    return found


text = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)


@given(st.lists(st.tuples(st.one_of(st.integers(0, 2**63 - 1), text), text, st.none() | text), max_size=20))
def test_what_fetch_wrote_is_read(rows: Sequence[tuple[int | str, str, str | None]]) -> None:
    names = ["key", "text", "note"]
    found = read(b"".join(line_of(names, row, (row[0],), "text") for row in rows))
    assert len(found) == len(rows)
    for item, row in zip(found, rows, strict=True):
        assert isinstance(item, RawRecord)
        assert item.payload == dict(zip(names, row, strict=True))
        assert item.record_id == str(row[0])
        if isinstance(row[0], int):
            assert item.position == row[0]


def test_one_bad_row_costs_itself() -> None:
    rows = [(1, "good"), (2, "\udcff"), (3, "too long " * 9), (4, "also good")]
    found = read(b"".join(line_of(["id", "text"], r, (r[0],), "text") for r in rows), max_document=60)
    assert [item.position for item in found if not isinstance(item, RawRecord)] == [2, 3]
    assert [item.position for item in found if isinstance(item, RawRecord)] == [1, 4]
    _, odd, long, _ = found
    assert isinstance(odd, BadRecord)
    assert isinstance(long, BadRecord)
    assert isinstance(odd.error, UndecodableText)
    assert isinstance(long.error, DocumentTooCostly)


def test_numbers_that_json_lacks() -> None:
    (item,) = read(line_of(["id", "text", "x"], (1, "a", float("nan")), (1,), "text"))
    assert isinstance(item, RawRecord)
    assert isinstance(item.payload, dict)
    assert item.payload["x"] != item.payload["x"]


def test_no_rows() -> None:
    assert read(b"") == []


@pytest.mark.parametrize("data", [b"not rows\n", b'{"text": "a"}\n', b"\tx\ty\n", b"-1\tx\t{}\n"])
def test_other_files_are_refused(data: bytes) -> None:
    with pytest.raises(UnreadableFile, match="not rows as fetch stores them"):
        read(data)
