"""Rows beyond a share of memory come back whole, in ranges of their key that fit."""

from pathlib import Path
from types import SimpleNamespace
from typing import cast

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dataflow_ops.layers.dedup import spill
from dataflow_ops.protocols import Side

LIMIT = 1 << 63


def rows(keys: list[int], more: list[int], first: int) -> pa.Table:
    n = len(keys)
    return pa.table(
        {
            "key": pa.array(keys, pa.uint64()),
            "more": pa.array(more, pa.uint64()),
            "at": pa.array(range(first, first + n), pa.int64()),
            "text": pa.array(["x" * (k % 50) for k in more], pa.large_string()),
        }
    )


def side(folder: Path) -> Side:
    return cast("Side", SimpleNamespace(scratch=folder, memory_budget=1500 << 20))


KEYS = st.one_of(st.integers(0, 3), st.sampled_from([0, 2**64 - 1, 2**64 - 2]), st.integers(0, 2**64 - 1))
TABLES = st.lists(st.lists(st.tuples(KEYS, st.integers(0, 200)), max_size=12), max_size=8)
WITH_FOLDER = settings(
    max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spill, "_BATCH_BYTES", 64)


def made(drawn: list[list[tuple[int, int]]]) -> list[pa.Table]:
    tables, at = [], 0
    for part in drawn:
        tables.append(rows([k for k, _ in part], [m for _, m in part], at))
        at += len(part)
    return tables


@WITH_FOLDER
@given(TABLES, st.sampled_from([1, 100, 700, 10**6]))
def test_ranges_hold_every_row_once_in_ascending_order(
    tmp_path: Path, drawn: list[list[tuple[int, int]]], share: int
) -> None:
    tables = made(drawn)
    with spill.Spill(side(tmp_path), share) as held:
        for table in tables:
            held.add(table, table["key"].to_numpy())
        found, last = [], -1
        for part in held.ranges():
            assert part.low > last
            last = part.high
            table = part.table()
            keys = table["key"].to_pylist()
            assert all(part.low <= key <= part.high for key in keys)
            if part.nbytes > share and held.spilled:
                assert part.low == part.high or table.num_rows < 2 * len(tables)
            for key in set(keys):  # equal keys in order of arrival
                of_key = [at for k, at in zip(keys, table["at"].to_pylist(), strict=True) if k == key]
                assert of_key == sorted(of_key)
            found += table.to_pylist()
        assert held.spilled == (sum(t.nbytes for t in tables) > share and bool(found))
        assert held.rows == len(found)
    whole = pa.concat_tables(tables).to_pylist() if tables else []
    assert sorted(found, key=lambda r: r["at"]) == whole
    assert not list(tmp_path.iterdir())


@WITH_FOLDER
@given(TABLES, st.sampled_from([1, 100, 700, 10**6]), KEYS, KEYS)
def test_a_range_of_ones_own_choice(
    tmp_path: Path, drawn: list[list[tuple[int, int]]], share: int, one: int, other: int
) -> None:
    low, high = min(one, other), max(one, other)
    with spill.Spill(side(tmp_path), share) as held:
        for table in made(drawn):
            held.add(table, table["key"].to_numpy())
        for _ in range(2):
            found = [row for table in held.between(low, high) for row in table.to_pylist()]
            want = [r for t in made(drawn) for r in t.to_pylist() if low <= r["key"] <= high]
            assert sorted(found, key=lambda r: r["at"]) == want


@WITH_FOLDER
@given(TABLES, st.sampled_from([1, 100, 700, 10**6]))
def test_pieces_are_in_order_of_all_keys(
    tmp_path: Path, drawn: list[list[tuple[int, int]]], share: int
) -> None:
    keys = [spill.number("key"), spill.number("more")]
    found: list[tuple[int, int]] = []
    for depth, table in spill.pieces(side(tmp_path), iter(made(drawn)), keys, share):
        got = sorted(zip(table["key"].to_pylist(), table["more"].to_pylist(), strict=True))
        assert depth == 0 or len({k for k, _ in got}) == 1
        assert not found or (found[-1] < got[0] if depth else found[-1][0] < got[0][0]) or share == 10**6
        found += got
    assert found == sorted((k, m) for part in drawn for k, m in part)


def test_rows_can_be_given_up_before_they_go_to_disk(tmp_path: Path) -> None:
    with spill.Spill(side(tmp_path), 2000, lambda t: t.slice(0, 1)) as held:
        for _ in range(20):
            held.add(rows([5] * 20, [1] * 20, 0), np.full(20, 5, np.uint64))
        assert held.spilled
        assert held.rows == 400
        assert sum(part.table().num_rows for part in held.ranges()) < 20


def test_a_row_larger_than_a_batch_stands_by_itself(tmp_path: Path) -> None:
    texts = ["y" * size for size in (1, 1, 5000, 1, 4000, 1)]
    table = pa.table({"text": pa.array(texts, pa.large_string())})
    with spill.Spill(side(tmp_path), 6000) as held:
        held.add(table, np.arange(6, dtype=np.uint64))
        sizes = [part.table().num_rows for part in held.ranges()]
    assert sum(sizes) == 6
    assert len(sizes) >= 2
