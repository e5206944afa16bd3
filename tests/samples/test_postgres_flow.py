from __future__ import annotations

import pytest

from tests.samples.contract_flow import FlowContract


@pytest.mark.postgres
class TestPostgres(FlowContract):
    @pytest.fixture
    def url(self, postgres_url: str) -> str:
        return postgres_url
