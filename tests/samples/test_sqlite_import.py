from __future__ import annotations

import pytest

from tests.samples.contract_import import ImportContract


class TestSqlite(ImportContract):
    @pytest.fixture
    def url(self, sqlite_url: str) -> str:
        return sqlite_url
