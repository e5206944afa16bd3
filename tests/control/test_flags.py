from __future__ import annotations

import pytest

from tests.control.contract_flags import FlagsContract
from tests.control.redis_server import redis_server  # noqa: F401 - a fixture


class TestOnSqlite(FlagsContract):
    @pytest.fixture
    def url(self, sqlite_url: str) -> str:
        return sqlite_url


@pytest.mark.postgres
class TestOnPostgres(FlagsContract):
    @pytest.fixture
    def url(self, postgres_url: str) -> str:
        return postgres_url
