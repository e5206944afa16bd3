from __future__ import annotations

import pytest

from tests.state.samples.contract import SampleStoreContract


class TestSqlite(SampleStoreContract):
    @pytest.fixture
    def url(self, sqlite_url: str) -> str:
        return sqlite_url
