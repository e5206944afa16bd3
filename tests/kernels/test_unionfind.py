import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from dataflow_ops.kernels.unionfind import components, join, settle


@given(
    st.integers(1, 60), st.lists(st.tuples(st.integers(0, 59), st.integers(0, 59)), max_size=80), st.randoms()
)
def test_equals_scipy_in_any_order(nodes: int, edges: list[tuple[int, int]], rng: object) -> None:
    edges = [(a % nodes, b % nodes) for a, b in edges]
    left, right = (np.array([e[k] for e in edges], np.int64) for k in (0, 1))
    got = components(nodes, left, right)
    _, label = connected_components(
        coo_array((np.ones(len(edges)), (left, right)), shape=(nodes, nodes)), directed=False
    )
    smallest = {c: int(np.flatnonzero(label == c)[0]) for c in set(label.tolist())}
    assert got.tolist() == [smallest[c] for c in label.tolist()]
    order = np.random.default_rng(rng.getrandbits(32)).permutation(len(edges))  # type: ignore[attr-defined]
    assert np.array_equal(got, components(nodes, right[order], left[order]))


@pytest.mark.parametrize("kind", [np.int32, np.int64])
@given(
    nodes=st.integers(1, 60),
    batches=st.lists(st.lists(st.tuples(st.integers(0, 59), st.integers(0, 59)), max_size=30), max_size=5),
)
def test_edges_may_come_in_batches(kind: type, nodes: int, batches: list[list[tuple[int, int]]]) -> None:
    parent = np.arange(nodes, dtype=kind)
    for batch in batches:
        left, right = (np.array([e[k] % nodes for e in batch], kind) for k in (0, 1))
        join(parent, left, right)
        if len(batch) % 2:
            settle(parent)
    settle(parent)
    edges = [(a % nodes, b % nodes) for batch in batches for a, b in batch]
    ends = [np.array([e[k] for e in edges], np.int64) for k in (0, 1)]
    assert parent.dtype == kind
    assert parent.tolist() == components(nodes, *ends).tolist()


def test_edges_must_stay_inside() -> None:
    with pytest.raises(ValueError, match="outside"):
        components(2, np.array([0], np.int64), np.array([2], np.int64))
