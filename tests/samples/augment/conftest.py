from __future__ import annotations

from collections.abc import Iterator

import pytest

from dataflow_ops.state.samples.store import SampleStore


@pytest.fixture
def store(sqlite_url: str) -> Iterator[SampleStore]:
    with SampleStore(sqlite_url, 5.0) as store:
        yield store
