from __future__ import annotations

import hashlib
import io
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataflow_ops import media
from dataflow_ops.errors import SourceChanged
from dataflow_ops.ranges import cuts, part_of, range_sha256


@given(st.lists(st.integers(0, 40), max_size=60), st.integers(10, 200), st.booleans())
def test_parts_of_jsonl_join_to_the_file(widths: list[int], limit: int, final_newline: bool) -> None:
    """Every line is whole in exactly one part, and each part hashes to what fetch records."""
    data = b"".join(json.dumps("x" * w).encode() + b"\n" for w in widths)
    data = data if final_newline else data.rstrip(b"\n")
    file = io.BytesIO(data)
    starts = cuts(file, "a.jsonl", media.JSONL, len(data), limit)
    ends = [*starts[1:], -1]
    pieces = []
    for start, end in zip(starts, ends, strict=True):
        sha256, size = range_sha256(file, media.JSONL, start, end)
        part, expected = part_of(io.BytesIO(data), "a.jsonl", media.JSONL, start, end, sha256)
        piece = part.read()
        assert (hashlib.sha256(piece).hexdigest(), len(piece), expected) == (sha256, size, sha256)
        assert end < 0 or piece.endswith(b"\n")
        pieces.append(piece)
    assert b"".join(pieces) == data


def test_part_in_small_reads() -> None:
    part, _ = part_of(io.BytesIO(b"0123456789"), "a", media.JSONL, 3, 8, "")
    assert [part.read(2), part.read(2), part.read(2), part.read(2)] == [b"34", b"56", b"7", b""]


def test_parquet_part_is_checked() -> None:
    sink = io.BytesIO()
    pq.write_table(pa.table({"a": list(range(1000))}), sink, row_group_size=100)
    data = sink.getvalue()
    sha256, size = range_sha256(io.BytesIO(data), media.PARQUET, 2, 5)
    assert size < len(data)
    file, expected = part_of(io.BytesIO(data), "a", media.PARQUET, 2, 5, sha256)
    assert (file.read(), expected) == (data, "")
    with pytest.raises(SourceChanged, match="the part from 2 to 6"):
        part_of(io.BytesIO(data), "a", media.PARQUET, 2, 6, sha256)
    assert range_sha256(io.BytesIO(data), media.PARQUET)[0] == hashlib.sha256(data).hexdigest()
