"""Links and members of components, which come side by side."""

import pyarrow as pa
import pytest

from dataflow_ops.errors import ConservationError
from dataflow_ops.layers.dedup import columns
from dataflow_ops.layers.dedup.confirm import _LinksByRoot


def _links(*roots: int) -> pa.Table:
    rows = [(1, root, 1, root, 1, root + 1, 0.9) for root in roots]
    arrays = [pa.array(values) for values in zip(*rows, strict=True)]
    return pa.table(arrays, names=columns.LINKS.names).cast(columns.LINKS)


def _members(*roots: int) -> pa.Table:
    return pa.table(
        {"root_chunk": pa.array([1] * len(roots), pa.uint64()), "root_row": pa.array(roots, pa.uint32())}
    )


def test_each_component_gets_its_links() -> None:
    links = _LinksByRoot(iter([_links(2, 2, 5), _links(5, 9)]))
    assert links.of(_members(2, 3)).num_rows == 2
    assert links.of(_members(5, 9)).num_rows == 3
    links.check_all_given()


@pytest.mark.parametrize("left", [(2, 7), (2, 1, 5)])
def test_links_without_members_are_told(left: tuple[int, ...]) -> None:
    links = _LinksByRoot(iter([_links(*left)]))
    links.of(_members(2, 5))
    with pytest.raises(ConservationError, match="not its members"):
        links.check_all_given()
