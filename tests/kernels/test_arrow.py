from __future__ import annotations

from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataflow_ops.kernels.arrow import hex_strings, string_buffers

ROWS = ["", "one", "二", None, "three" * 9, "é", ""]


def rows_of(column: Any) -> list[bytes]:
    data, offsets = string_buffers(column)
    assert offsets.dtype == "int64"
    return [data[a:b].tobytes() for a, b in pairwise(offsets)]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.binary(), pa.large_binary()])
@pytest.mark.parametrize("cuts", [(), (0,), (3,), (2, 2, 5), (7,)])
def test_all_types_and_chunks_give_the_same(kind: pa.DataType, cuts: tuple[int, ...]) -> None:
    expected = [(row or "").encode() for row in ROWS]
    bounds = [0, *cuts, len(ROWS)]
    parts = [ROWS[a:b] for a, b in pairwise(bounds)]
    column = pa.chunked_array([pa.array(part, pa.string()).cast(kind) for part in parts], kind)
    assert rows_of(column) == expected
    assert rows_of(column.slice(1, 4)) == expected[1:5]
    assert rows_of(pa.array(ROWS, pa.string()).cast(kind)) == expected


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.binary()])
def test_no_rows(kind: pa.DataType) -> None:
    assert rows_of(pa.chunked_array([], kind)) == []
    assert rows_of(pa.array([], kind)) == []


class Long(pa.ChunkedArray):
    """Chunks that together are longer than 32-bit offsets reach: they can't be joined as they are."""

    def __init__(self, column: Any) -> None:
        self.column = column

    def __repr__(self) -> str:
        return f"Long({self.column})"

    type = property(lambda self: self.column.type)
    num_chunks = property(lambda self: self.column.num_chunks)

    def cast(self, target: Any = None, *_: Any, **__: Any) -> Any:
        return self.column.cast(target)

    def combine_chunks(self, *_: Any) -> Any:
        raise pa.ArrowInvalid("offset overflow while concatenating arrays")


def test_chunks_are_widened_before_they_are_joined() -> None:
    assert rows_of(Long(pa.chunked_array([["one", "two"], ["three"]], pa.string()))) == [
        b"one",
        b"two",
        b"three",
    ]


@given(st.lists(st.binary(min_size=3, max_size=3)), st.integers(0, 3))
def test_hex_strings(values: list[bytes], skip: int) -> None:
    whole = pa.array(values, pa.binary(3)).slice(skip)
    for column in (whole, pa.chunked_array([whole.slice(0, 2), whole.slice(2)], pa.binary(3))):
        found = hex_strings(column)
        assert found.type == pa.string()
        assert found.to_pylist() == [v.hex() for v in values[skip:]]
