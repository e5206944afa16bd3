"""Connected components by union-find."""

from __future__ import annotations

import numba
import numpy as np
import numpy.typing as npt

from dataflow_ops.kernels.arrow import I64

Parents = npt.NDArray[np.int32] | npt.NDArray[np.int64]


def components(nodes: int, left: I64, right: I64) -> I64:
    """Smallest node of each node's component.

    Args:
        nodes: number of nodes.
        left: int64, shape ``(e,)``: one end of each edge.
        right: int64, shape ``(e,)``: the other.

    Returns:
        int64, shape ``(nodes,)``. Whatever the order of the edges, the result is the same.

    Raises:
        ValueError: an edge names a node that isn't there.
    """
    if len(left) and (min(left.min(), right.min()) < 0 or max(left.max(), right.max()) >= nodes):
        raise ValueError(f"an edge leads outside 0 … {nodes - 1}")
    parent = np.arange(nodes, dtype=np.int64)
    join(parent, left, right)
    settle(parent)
    return parent


def join(parent: Parents, left: Parents, right: Parents) -> None:
    """Join the components of the two ends of each edge, in place.

    Args:
        parent: int32 or int64, shape ``(nodes,)``: a forest in which no node's parent is greater than the
            node, such as ``arange(nodes)``, or what :func:`settle` left.
        left: of the same type, shape ``(e,)``: one end of each edge; not checked.
        right: the other.
    """
    _join(parent, left, right)


def settle(parent: Parents) -> None:
    """Make each node's parent the smallest node of its component, in place."""
    _settle(parent)


@numba.njit(cache=True)
def _find(parent, i):  # type: ignore[no-untyped-def]
    while parent[i] != i:
        parent[i] = parent[parent[i]]
        i = parent[i]
    return i


@numba.njit(cache=True)
def _join(parent, left, right):  # type: ignore[no-untyped-def]
    for e in range(len(left)):
        a = _find(parent, left[e])
        b = _find(parent, right[e])
        # The smaller root wins, so that the answer doesn't depend on the order of edges.
        if a < b:
            parent[b] = a
        elif b < a:
            parent[a] = b


@numba.njit(cache=True)
def _settle(parent):  # type: ignore[no-untyped-def]
    for i in range(len(parent)):
        parent[i] = _find(parent, i)


def warm() -> None:
    """Compile the kernels of this module."""
    components(2, np.array([0], np.int64), np.array([1], np.int64))
    parent = np.arange(2, dtype=np.int32)
    join(parent, parent[:1], parent[1:])
    settle(parent)
