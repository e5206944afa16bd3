"""Which components leave ``confirm`` something to compare."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dataflow_ops.kernels.arrow import I64


def unsettled(root: I64, node: I64, best: I64, of_base: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Tell the components that are no stars.

    A star is a component in which each other node has a verified edge to the best one, and at most one node
    is of the version below: who stays, and how similar the others are to it, is known from the edges.

    Args:
        root: of each document, the number of its component's best document; shape ``(n,)``, documents in
            survivor order.
        node: of each document, the number of the first document with the same key text.
        best: first document of each verified pair of nodes, each pair once and the better end first.
        of_base: which documents are of the version below.

    Returns:
        Bool, shape ``(n,)``: true at the number of a root whose component is no star.
    """
    n = len(root)
    is_node = node == np.arange(n)
    others = np.bincount(root[is_node], minlength=n) - 1
    known = np.bincount(best[root[best] == best], minlength=n)
    settled = np.bincount(root[is_node & of_base], minlength=n)
    found: npt.NDArray[np.bool_] = (others > known) | ((settled > 1) & (others > 0))
    return found
