from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.layers.ingest.sql_database import Database


@pytest.fixture
def theirs(tmp_path: Path) -> Iterator[Database]:
    database = Database(tmp_path / "theirs.db")
    yield database
    database.connection.close()
