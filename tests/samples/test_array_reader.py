from __future__ import annotations

import gzip
import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataflow_ops.errors import FileError, TruncatedFile, UnreadableFile
from dataflow_ops.layers.parse.records import BadRecord, RawRecord, SourceFile
from dataflow_ops.layers.parse.streams import HashedReader
from dataflow_ops.samples.array_reader import _elements, read_array

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=12,
)


def _read(data: bytes, name: str = "a.json", limit: int = 1 << 20) -> tuple[list[object], FileError | None]:
    found: list[object] = []
    raw = HashedReader(io.BytesIO(data), name, "")
    try:
        for item in read_array(SourceFile("", name, "x", max_document=limit), raw):
            assert isinstance(item, RawRecord | BadRecord)
            assert item.position == len(found)
            found.append(item.payload if isinstance(item, RawRecord) else type(item.error).__name__)
    except FileError as e:
        return found, e
    return found, None


@given(
    st.lists(st.dictionaries(st.text(max_size=5), JSON, max_size=4), max_size=6),
    st.integers(1, 30),
    st.booleans(),
)
def test_any_array_in_any_pieces(value: list[object], piece: int, indent: bool) -> None:
    data = json.dumps(value, indent=2 if indent else None, ensure_ascii=piece % 2 == 0).encode()
    pieces = iter([data[i : i + piece] for i in range(0, len(data), piece)])
    assert [json.loads(e) for e in _elements(pieces, 1 << 20)] == value


@given(st.lists(st.dictionaries(st.text(max_size=5), JSON, max_size=4), min_size=1, max_size=4), st.data())
def test_a_cut_array_gives_what_is_whole(value: list[object], data: st.DataObject) -> None:
    whole = json.dumps(value).encode()
    cut = data.draw(st.integers(1, len(whole) - 1))
    found, error = _read(whole[:cut])
    assert isinstance(error, TruncatedFile)
    assert found == value[: len(found)]


def test_elements_that_are_no_objects_are_isolated() -> None:
    found, error = _read(b'\xef\xbb\xbf [ {"a": "}]"}, 5, {"a": 1,}, "x", {"b": [1, {"c": 2}]}, ]\n')
    assert error is None
    assert found == [{"a": "}]"}, *["MalformedRecord"] * 3, {"b": [1, {"c": 2}]}, "MalformedRecord"]


@pytest.mark.parametrize("data", [b"[]", b" [ ] ", b"[\n]\n"])
def test_an_empty_array(data: bytes) -> None:
    assert _read(data) == ([], None)


@pytest.mark.parametrize(
    ("data", "kind", "message", "whole"),
    [
        (b'{"a": 1}', UnreadableFile, "no JSON array", 0),
        (b"", UnreadableFile, "no JSON array", 0),
        (b"   ", UnreadableFile, "no JSON array", 0),
        (b'[{"a": 1}] x', UnreadableFile, "behind the end", 1),
        (b'[{"a": 1}, {"b": "', TruncatedFile, "no end", 1),
    ],
)
def test_what_is_no_array(data: bytes, kind: type[FileError], message: str, whole: int) -> None:
    found, error = _read(data)
    assert type(error) is kind
    assert message in str(error)
    assert len(found) == whole


def test_an_element_above_the_limit_ends_the_file() -> None:
    found, error = _read(b'[{"a": 1}, {"b": "' + b"x" * (5 << 20) + b'"}]')
    assert found == [{"a": 1}]
    assert isinstance(error, UnreadableFile)
    assert "more than 1 MB" in str(error)


def test_a_compressed_array_that_breaks_off_gives_what_came_before() -> None:
    value = [{"n": n, "text": f"{n * 7919 % 10007}" * 40} for n in range(3000)]
    data = gzip.compress(json.dumps(value).encode())
    found, error = _read(data[: len(data) // 2], "a.json.gz")
    assert isinstance(error, TruncatedFile)
    assert 500 < len(found) < 3000
    assert found == value[: len(found)]
