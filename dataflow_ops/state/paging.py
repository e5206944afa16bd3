"""Reading a table page by page, up to the highest key it had at the start.

A worker that writes to the table it reads would otherwise chase its own rows and never end.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import sqlalchemy as sa


def bounded_pages(
    engine: sa.Engine, table: sa.Table, key: str, page: int, *where: sa.ColumnElement[bool], after: Any = None
) -> Iterator[list[sa.RowMapping]]:
    """Yield the rows of a table in ascending order of a unique key.

    Args:
        engine: each page is one short reading transaction.
        table: what to read.
        key: name of a unique, ordered column that only grows for new rows.
        page: rows per page.
        where: further conditions.
        after: go on after this key.
    """
    column = table.c[key]
    reading = engine.execution_options(dataflow_reads_only=True)
    with reading.connect() as connection:
        highest = connection.execute(sa.select(sa.func.max(column))).scalar()
    if highest is None:
        return
    while True:
        query = sa.select(table).where(column <= highest, *where).order_by(column).limit(page)
        if after is not None:
            query = query.where(column > after)
        with reading.connect() as connection:
            rows = list(connection.execute(query).mappings())
        if rows:
            yield rows
        if len(rows) < page:
            return
        after = rows[-1][key]
