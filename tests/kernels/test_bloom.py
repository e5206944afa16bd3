"""The filter against a plain set: nothing that was added is ever denied, and few strangers are let in."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dataflow_ops.kernels.bloom import BITS_PER_KEY, MAX_BLOCKS, Bloom, blocks_for

KEYS = st.lists(st.integers(0, 2**64 - 1), max_size=300)


@settings(deadline=None)  # the first call may compile
@given(KEYS, KEYS, st.integers(0, 500))
def test_whatever_was_added_is_there(added: list[int], asked: list[int], capacity: int) -> None:
    made = Bloom.sized(capacity)
    made.add(np.array(added, np.uint64))
    said = made.may_contain(np.array(added + asked, np.uint64))
    known = set(added)
    for key, answer in zip(added + asked, said.tolist(), strict=True):
        assert answer or key not in known
    if not added:
        assert not said.any(), "an empty filter knows nothing"
    again = Bloom.of_bytes(made.to_bytes())
    assert np.array_equal(again.may_contain(np.array(added + asked, np.uint64)), said)


@pytest.mark.parametrize("kind", ["random", "one slice", "counted"])
def test_few_strangers_are_let_in_and_no_key_is_lost(kind: str) -> None:
    n = 100_000
    if kind == "counted":
        keys = np.arange(2 * n, dtype=np.uint64)
    else:
        keys = np.unique(np.random.default_rng(5).integers(0, 2**64, 2 * n + 100, np.uint64))[: 2 * n]
        np.random.default_rng(6).shuffle(keys)
    if kind == "one slice":  # all with the same first ten bits
        keys = keys >> np.uint64(10) | np.uint64(5) << np.uint64(54)
    made = Bloom.sized(n)
    made.add(keys[:n])
    assert made.may_contain(keys[:n]).all()
    strangers = keys[n:][~np.isin(keys[n:], keys[:n])]
    assert made.may_contain(strangers).mean() <= 0.011


def test_sizes_go_beyond_32_bits() -> None:
    assert blocks_for(0) == 1
    capacity = 1_200_000_000
    assert blocks_for(capacity) * 512 > 2**32
    assert blocks_for(capacity) * 64 <= 1.7e9, "1.2e9 keys in 1.7 GB"
    assert Bloom.sized(10_000).capacity >= 10_000
    with pytest.raises(ValueError, match="slice it"):
        blocks_for(MAX_BLOCKS * 512 // BITS_PER_KEY + 1000)
    with pytest.raises(ValueError, match="whole number of blocks"):
        Bloom.of_bytes(b"abc")


def test_bits_beyond_the_first_four_gigabits_are_used() -> None:
    """The same arithmetic as for a filter of 2**33 bits, of which only the places are looked at."""
    from dataflow_ops.kernels import bloom

    blocks = np.uint64(2**24)  # times 512: 2**33 bits
    keys = np.random.default_rng(1).integers(0, 2**64, 20_000, np.uint64)
    first = np.array([bloom._place(k, blocks)[0] for k in keys]) // 8
    assert first.max() < 2**24
    assert (first > 2**23).mean() == pytest.approx(0.5, abs=0.02)
