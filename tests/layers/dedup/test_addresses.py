"""Addresses are found by chunk and row, and no other chunk is taken for a known one."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dataflow_ops.layers.dedup.addresses import Known, numbered

ADDRESSES = st.lists(st.tuples(st.integers(0, 2**64 - 1) | st.integers(0, 3), st.integers(0, 2**32 - 1)))


def arrays(addresses: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    return (
        np.array([c for c, _ in addresses], np.uint64),
        np.array([r for _, r in addresses], np.uint32),
    )


@given(ADDRESSES, ADDRESSES)
def test_what_is_known_is_found_and_nothing_else(
    known: list[tuple[int, int]], more: list[tuple[int, int]]
) -> None:
    held = Known.of(*arrays(known))
    once = sorted(set(known))
    assert len(held.ids) == len(once)
    asked = known + more
    at, there = held.find(*arrays(asked))
    for address, place, found in zip(asked, at.tolist(), there.tolist(), strict=True):
        assert found == (address in set(known))
        assert not found or once[place] == address


@given(ADDRESSES)
def test_numbers_sort_as_addresses_do(addresses: list[tuple[int, int]]) -> None:
    chunk, row = arrays(addresses)
    ids = numbered(np.unique(chunk), chunk, row)
    assert [addresses[i] for i in np.argsort(ids, kind="stable")] == sorted(addresses)
