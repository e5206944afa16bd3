"""Stars are told from other components by a plain walk over each."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dataflow_ops.layers.dedup.stars import unsettled


@st.composite
def graphs(draw: st.DrawFn) -> tuple[int, list[int], list[tuple[int, int]], list[bool]]:
    """Documents, the first of each one's exact group, verified pairs of such firsts, who is of the base."""
    n = draw(st.integers(1, 12))
    node = list(range(n))
    for i in range(1, n):
        if draw(st.booleans()) and draw(st.booleans()):
            node[i] = node[draw(st.integers(0, i - 1))]
    heads = sorted(set(node))
    pairs = draw(
        st.lists(
            st.tuples(st.sampled_from(heads), st.sampled_from(heads))
            .filter(lambda p: p[0] != p[1])
            .map(lambda p: (min(p), max(p))),
            unique=True,
            max_size=14,
        )
        if len(heads) > 1
        else st.just([])
    )
    base = draw(st.integers(0, n))
    return n, node, pairs, [i < base for i in range(n)]


@given(graphs())
def test_as_a_walk_over_each_component(
    graph: tuple[int, list[int], list[tuple[int, int]], list[bool]],
) -> None:
    n, node, pairs, of_base = graph
    root = list(node)
    for _ in range(n):
        for a, b in pairs:
            least = min(root[a], root[b])
            root = [least if r in (root[a], root[b]) else r for r in root]
    found = unsettled(
        np.array(root), np.array(node), np.array([a for a, _ in pairs], np.int64), np.array(of_base, bool)
    )
    for r in range(n):
        nodes = [i for i in range(n) if node[i] == i and root[i] == r]
        star = all((r, other) in pairs for other in nodes if other != r)
        several = sum(of_base[i] for i in nodes) > 1
        assert found[r] == (bool(nodes) and len(nodes) > 1 and (not star or several)), (r, graph)
