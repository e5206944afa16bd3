from __future__ import annotations

import pytest

from tests.samples.contract_flow import FlowContract


class TestSqlite(FlowContract):
    @pytest.fixture
    def url(self, sqlite_url: str) -> str:
        return sqlite_url
