from __future__ import annotations

import pytest

from tests.samples.contract_running import RunningContract


@pytest.mark.postgres
class TestPostgres(RunningContract):
    @pytest.fixture
    def url(self, postgres_url: str) -> str:
        return postgres_url
