from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from dataflow_ops.layers.export.coding import Words, coded

words = st.none() | st.sampled_from(["", "a", "b", "中"])


@given(st.lists(words), st.integers(0, 5))
def test_coded(values: list[str | None], cut: int) -> None:
    whole = pa.array(values, pa.string())
    for column in (whole, pa.chunked_array([whole.slice(0, cut), whole.slice(cut)], pa.string())):
        codes, names = coded(column)
        assert [names[c] for c in codes] == values
        assert len(set(names)) == len(names)


@given(st.lists(st.tuples(st.integers(0, 9), st.sampled_from(["", "a", "b"])), max_size=20))
def test_words_hold_what_was_put_last(puts: list[tuple[int, str]]) -> None:
    column, expected = Words(10), [""] * 10
    for number, (row, text) in enumerate(puts):
        expected[row] = text
        at = np.array([row])
        if number % 2:
            column.put(at, text)
        else:
            column.put_each(at, pa.array([text]))
    assert column.column().to_pylist() == expected
