from __future__ import annotations

from collections.abc import Iterator

import pytest
import sqlalchemy as sa

from dataflow_ops.state.database import create_engine
from dataflow_ops.state.paging import bounded_pages
from dataflow_ops.state.upsert import upsert

metadata = sa.MetaData()
rows = sa.Table(
    "rows",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("odd", sa.Boolean, nullable=False),
)


@pytest.fixture
def engine(sqlite_url: str) -> Iterator[sa.Engine]:
    engine = create_engine(sqlite_url)
    metadata.create_all(engine)
    yield engine
    engine.dispose()


def _fill(engine: sa.Engine, ids: range) -> None:
    with engine.begin() as connection:
        upsert(connection, rows, [{"id": i, "odd": bool(i % 2)} for i in ids])


def _ends_while_writing(engine: sa.Engine) -> None:
    """A worker that writes a new row for each one it reads, as a task once did for five days."""
    _fill(engine, range(1, 26))
    read: list[int] = []
    for page in bounded_pages(engine, rows, "id", 10):
        read.extend(row["id"] for row in page)
        assert len(read) <= 25
        _fill(engine, range(1000 + len(read), 1000 + len(read) + len(page)))
    assert read == list(range(1, 26))


def test_a_worker_that_reads_and_writes_one_table_ends(engine: sa.Engine) -> None:
    _ends_while_writing(engine)


@pytest.mark.postgres
def test_it_ends_on_postgres_too(empty_postgres_url: str) -> None:
    engine = create_engine(empty_postgres_url)
    metadata.create_all(engine)
    _ends_while_writing(engine)
    engine.dispose()


def test_conditions_and_a_place_to_go_on_from(engine: sa.Engine) -> None:
    assert list(bounded_pages(engine, rows, "id", 10)) == []
    _fill(engine, range(20))
    pages = list(bounded_pages(engine, rows, "id", 4, rows.c.odd, after=3))
    assert [[row["id"] for row in page] for page in pages] == [[5, 7, 9, 11], [13, 15, 17, 19]]
