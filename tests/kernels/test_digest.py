import hashlib

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataflow_ops.kernels.arrow import string_buffers
from dataflow_ops.kernels.digest import leading_u64, prefix_of, sha1_rows


@given(st.lists(st.binary(max_size=50), max_size=8))
def test_sha1(rows: list[bytes]) -> None:
    data, offsets = string_buffers(pa.array(rows, pa.large_binary()))
    got = sha1_rows(data, offsets)
    assert [bytes(r) for r in got] == [hashlib.sha1(r).digest() for r in rows]
    assert leading_u64(got).tolist() == [int.from_bytes(hashlib.sha1(r).digest()[:8], "big") for r in rows]


def test_prefixes_cut_the_number_line_evenly() -> None:
    hashes = np.array([0, 2**62, 2**63, 2**64 - 1], np.uint64)
    assert prefix_of(hashes, 4).tolist() == [0, 1, 2, 3]
    assert prefix_of(hashes, 1).tolist() == [0, 0, 0, 0]
    with pytest.raises(ValueError, match="power of two"):
        prefix_of(hashes, 3)
