from __future__ import annotations

import hashlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dataflow_ops.errors import ConfigError
from dataflow_ops.layers.ingest.numbers import numbers_for
from dataflow_ops.layers.ingest.tree import file_chunk, leaf_chunk, leaves

LIMIT = 100
FILES = st.dictionaries(st.integers(0, 500).map(lambda i: f"f/{i}.txt"), st.integers(0, 99), max_size=80)


def bits(path: str) -> str:
    return f"{int.from_bytes(hashlib.sha256(path.encode()).digest()[:8], 'big'):064b}"


def cut(files: dict[str, int]) -> dict[str, dict[str, int]]:
    paths, weights = list(files), list(files.values())
    return {
        leaf.prefix: {paths[i]: weights[i] for i in leaf.members} for leaf in leaves(paths, weights, LIMIT)
    }


@given(FILES)
def test_each_file_in_exactly_one_leaf_that_fits(files: dict[str, int]) -> None:
    found = cut(files)
    assert sorted(p for members in found.values() for p in members) == sorted(files)
    for prefix, members in found.items():
        assert all(bits(p).startswith(prefix) for p in members)
        assert sum(members.values()) <= LIMIT or len(members) == 1
        if prefix:
            family = [p for p in files if bits(p).startswith(prefix[:-1])]
            assert sum(files[p] for p in family) > LIMIT


@given(FILES, st.randoms())
def test_order_does_not_matter(files: dict[str, int], random: object) -> None:
    items = list(files.items())
    random.shuffle(items)  # type: ignore[attr-defined]
    assert cut(dict(items)) == cut(files)


@settings(max_examples=200)
@given(FILES, st.integers(0, 500), st.one_of(st.none(), st.integers(0, 99)))
def test_a_change_moves_its_own_leaf_only(files: dict[str, int], number: int, weight: int | None) -> None:
    """Add, change or remove one file: leaves off its own path through the tree stay as they are."""
    path = f"f/{number}.txt"
    changed = {k: v for k, v in files.items() if k != path}
    if weight is not None:
        changed[path] = weight
    before, after = cut(files), cut(changed)
    differing = [p for p in before.keys() | after.keys() if before.get(p) != after.get(p)]
    own = [p for p in differing if bits(path).startswith(p)]
    if differing:
        top = min(own, key=len)
        assert all(p.startswith(top) for p in differing)
    # Without a split or a merge it is one leaf.
    if before.keys() == after.keys():
        assert len(differing) <= 1


def test_ids_are_stable() -> None:
    """Golden: ids enter keys and names for good."""
    assert leaf_chunk("web", "") == int.from_bytes(hashlib.sha256(b"leaf\0web\0").digest()[:8], "big")
    ids = {
        leaf_chunk("a", "0"),
        leaf_chunk("a", "1"),
        leaf_chunk("b", "0"),
        file_chunk("a", "0", 0),
        file_chunk("a", "0", 1),
    }
    assert len(ids) == 5
    assert f"{leaf_chunk('web', '01'):016x}" == "63a654598c92c2ff"


def test_empty() -> None:
    assert leaves([], [], 10) == []


@pytest.mark.parametrize(
    ("size", "n"), [(0, 4), (1 << 30, 4), ((1 << 30) + 1, 8), (100 << 30, 512), (1 << 50, 1024)]
)
def test_numbers(size: int, n: int) -> None:
    found = numbers_for(size)
    assert {
        found.key_prefixes,
        found.band_prefixes,
        found.blocks,
        found.root_prefixes,
        found.shard_groups,
    } == {n}


def test_numbers_overridden() -> None:
    assert numbers_for(0, {"blocks": 32}).blocks == 32
    with pytest.raises(ConfigError, match="power of two"):
        numbers_for(0, {"blocks": 3})
    with pytest.raises(ConfigError, match="there are key_prefixes"):
        numbers_for(0, {"block": 4})
