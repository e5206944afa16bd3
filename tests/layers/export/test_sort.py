from __future__ import annotations

import tempfile
from pathlib import Path

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from dataflow_ops.layers.export.sort import sorted_shards

rows_ = st.lists(
    st.tuples(
        st.integers(0, 4),
        st.sampled_from([0, 1, 2**63, 2**64 - 1]) | st.integers(0, 2**64 - 1),
        st.integers(0, 5),
    ),
    max_size=60,
    unique=True,
)


@settings(max_examples=60, deadline=None)
@given(rows_, st.integers(1, 9), st.sampled_from([1, 2000, 1 << 30]))
def test_any_memory_and_any_cut_give_the_sorted_shards(
    rows: list[tuple[int, int, int]], cut: int, limit: int
) -> None:
    table = pa.table(
        {
            "shard": pa.array([s for s, _, _ in rows], pa.int32()),
            "order": pa.array([o for _, o, _ in rows], pa.uint64()),
            "id": pa.array([f"{i:02d}" for _, _, i in rows], pa.string()),
            "repetition": pa.array([0] * len(rows), pa.int32()),
        }
    )
    parts = [table.slice(i, cut) for i in range(0, len(rows), cut)]
    with tempfile.TemporaryDirectory() as folder:
        found = [
            (shard, row["order"], int(row["id"]))
            for shard, tables in sorted_shards(parts, limit, Path(folder))
            for one in tables
            for row in one.to_pylist()
        ]
        assert not list(Path(folder).iterdir())
    assert found == sorted(rows)
