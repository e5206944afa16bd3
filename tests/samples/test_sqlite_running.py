from __future__ import annotations

import pytest

from tests.samples.contract_running import RunningContract


class TestSqlite(RunningContract):
    @pytest.fixture
    def url(self, sqlite_url: str) -> str:
        return sqlite_url
