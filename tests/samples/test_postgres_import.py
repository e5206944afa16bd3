from __future__ import annotations

import pytest

from tests.samples.contract_import import ImportContract


@pytest.mark.postgres
class TestPostgres(ImportContract):
    @pytest.fixture
    def url(self, postgres_url: str) -> str:
        return postgres_url
