from __future__ import annotations

import pytest

from tests.state.samples.contract import SampleStoreContract


@pytest.mark.postgres
class TestPostgres(SampleStoreContract):
    @pytest.fixture
    def url(self, postgres_url: str) -> str:
        return postgres_url
