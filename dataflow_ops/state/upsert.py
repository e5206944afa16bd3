"""The one function that upserts. Payloads without their primary key are refused before any SQL.

Once, elsewhere, a payload lacked its key: updates became inserts, and a task that read by offset from the
table it wrote to never reached the end.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from dataflow_ops.errors import MissingPrimaryKey

Mode = Literal["insert_or_update", "update"]
Row = Mapping[str, Any]

# SQLite allows 32,766 parameters in a statement; PostgreSQL's parser runs out of stack at some thousand rows.
_KEYS_PER_QUERY = 1_000


@dataclass(frozen=True, slots=True)
class UpsertCounts:
    """What became of the rows of one batch: ``given = collapsed + inserted + updated + missing``.

    Attributes:
        given: rows handed in.
        collapsed: rows that a later row of the same batch with the same key replaced.
        inserted: rows that were new when the batch began.
        updated: rows that were there.
        missing: rows that mode ``update`` did not find; nothing was written for them.
    """

    given: int = 0
    collapsed: int = 0
    inserted: int = 0
    updated: int = 0
    missing: int = 0


def upsert(
    connection: sa.Connection, table: sa.Table, rows: Sequence[Row], mode: Mode = "insert_or_update"
) -> UpsertCounts:
    """Write rows by primary key, inside the caller's transaction.

    Args:
        connection: in a transaction.
        table: with a primary key.
        rows: column name → value. Columns left out are not touched in rows that exist. Where a key comes
            twice, the rows act as if written one after the other, in one write.
        mode: ``update`` never turns an update into an insert.

    Raises:
        MissingPrimaryKey: a row has no value for a key column; nothing was written.
    """
    key = tuple(column.name for column in table.primary_key.columns)
    merged = _by_key(table.name, key, rows)
    # One order for all writers: two batches with keys in common can't wait for each other.
    ordered = [merged[k] for k in sorted(merged)]
    existing = _existing(connection, table, key, sorted(merged))
    found = [row for row in ordered if tuple(row[c] for c in key) in existing]
    inserted = 0
    if mode == "update":
        _update(connection, table, key, found)
    else:
        inserted = len(ordered) - len(found)
        for columns, group in _by_columns(ordered):
            changed = tuple(c for c in columns if c not in key)
            _insert_or_update(connection, table, key, columns, changed, group)
    return UpsertCounts(
        given=len(rows),
        collapsed=len(rows) - len(ordered),
        inserted=inserted,
        updated=len(found),
        missing=len(ordered) - len(found) if mode == "update" else 0,
    )


def _by_key(table: str, key: tuple[str, ...], rows: Sequence[Row]) -> dict[tuple[Any, ...], dict[str, Any]]:
    merged: dict[tuple[Any, ...], dict[str, Any]] = {}
    for i, row in enumerate(rows):
        lacking = [c for c in key if row.get(c) is None]
        if lacking or not key:
            raise MissingPrimaryKey(
                f"table {table}: row {i} of the payload has no value for {', '.join(lacking) or 'any key'}"
                f" (primary key: {', '.join(key) or 'none'}); nothing was written"
            )
        merged.setdefault(tuple(row[c] for c in key), {}).update(row)
    return merged


def _by_columns(rows: Sequence[dict[str, Any]]) -> Iterator[tuple[tuple[str, ...], list[dict[str, Any]]]]:
    groups: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault(tuple(row), []).append(row)
    yield from groups.items()


def _existing(
    connection: sa.Connection, table: sa.Table, key: tuple[str, ...], keys: Sequence[tuple[Any, ...]]
) -> set[tuple[Any, ...]]:
    columns = [table.c[c] for c in key]
    found: set[tuple[Any, ...]] = set()
    if keys and connection.dialect.name == "postgresql":
        wanted = _as_rows(table, key, keys)
        joined = sa.select(*columns).join(wanted, sa.and_(*(table.c[c] == wanted.c[c] for c in key)))
        query = joined.order_by(*columns).with_for_update(of=table)
        return {tuple(row) for row in connection.execute(query)}
    for start in range(0, len(keys), _KEYS_PER_QUERY):
        part = keys[start : start + _KEYS_PER_QUERY]
        clause = columns[0].in_([k[0] for k in part]) if len(key) == 1 else sa.tuple_(*columns).in_(part)
        query = sa.select(*columns).where(clause).order_by(*columns).with_for_update()
        found.update(tuple(row) for row in connection.execute(query))
    return found


def insert_missing(connection: sa.Connection, table: sa.Table, rows: Sequence[Row]) -> None:
    """Insert the rows whose key is not there yet; leave the others as they are. All rows have one shape.

    Raises:
        MissingPrimaryKey: a row has no value for a key column; nothing was written.
    """
    key = tuple(column.name for column in table.primary_key.columns)
    merged = _by_key(table.name, key, rows)
    for columns, group in _by_columns([merged[k] for k in sorted(merged)]):
        _insert_or_update(connection, table, key, columns, (), group)


def insert_staged(connection: sa.Connection, table: sa.Table, rows: Sequence[Row]) -> None:
    """:func:`insert_missing` for many rows at once; on PostgreSQL they come by COPY.

    Rows that any unique constraint of the table knows already are left as they are. Where there are none,
    which is the rule, the rows go straight into the table; where there are some, by way of a temporary table.
    Measured on PostgreSQL 15 with fsync and 10,000 turns of 350 characters, side by side on a busy machine:
    0.36 s straight, 0.60 s by way of the temporary table; of CPU time here 0.03 s, 0.2 s with arrays.

    Args:
        connection: in a transaction.
        table: with a primary key.
        rows: all with the same columns.

    Raises:
        MissingPrimaryKey: a row has no value for a key column; nothing was written.
    """
    if connection.dialect.name != "postgresql":
        insert_missing(connection, table, rows)
        return
    key = tuple(column.name for column in table.primary_key.columns)
    merged = _by_key(table.name, key, rows)
    for columns, group in _by_columns([merged[k] for k in sorted(merged)]):
        try:
            with connection.begin_nested():
                _copy(connection, table, f'"{table.name}"', columns, group)
        except sa.exc.IntegrityError:
            _by_way_of_staging(connection, table, columns, group)


def _by_way_of_staging(
    connection: sa.Connection, table: sa.Table, columns: tuple[str, ...], rows: list[dict[str, Any]]
) -> None:
    quoted = ", ".join(f'"{c}"' for c in columns)
    staged = f'"staged_{table.name}"'
    connection.exec_driver_sql(
        f'CREATE TEMPORARY TABLE IF NOT EXISTS {staged} (LIKE "{table.name}" INCLUDING DEFAULTS)'
        " ON COMMIT DELETE ROWS"
    )
    connection.exec_driver_sql(f"DELETE FROM {staged}")  # of an earlier call in this transaction
    _copy(connection, table, staged, columns, rows)
    connection.exec_driver_sql(
        f'INSERT INTO "{table.name}" ({quoted}) SELECT {quoted} FROM {staged} ON CONFLICT DO NOTHING'
    )


def _copy(
    connection: sa.Connection,
    table: sa.Table,
    into: str,
    columns: tuple[str, ...],
    rows: list[dict[str, Any]],
) -> None:
    dialect = connection.dialect
    bind = [table.c[c].type.dialect_impl(dialect).bind_processor(dialect) for c in columns]
    quoted = ", ".join(f'"{c}"' for c in columns)
    driver: Any = connection.connection.driver_connection
    try:
        with driver.cursor() as cursor, cursor.copy(f"COPY {into} ({quoted}) FROM STDIN") as copy:
            for row in rows:
                copy.write_row(
                    [row[c] if b is None else b(row[c]) for c, b in zip(columns, bind, strict=True)]
                )
    except dialect.loaded_dbapi.Error as e:
        # The driver's own faults are told as SQLAlchemy tells those of statements.
        raise sa.exc.DBAPIError.instance("COPY", None, e, dialect.loaded_dbapi.Error, dialect=dialect) from e


def _insert_or_update(
    connection: sa.Connection,
    table: sa.Table,
    key: tuple[str, ...],
    columns: tuple[str, ...],
    changed: tuple[str, ...],
    rows: list[dict[str, Any]],
) -> None:
    if connection.dialect.name == "postgresql":
        given = _as_rows(table, columns, [tuple(row[c] for c in columns) for row in rows])
        pg = postgresql.insert(table).from_select(list(columns), sa.select(given))
        connection.execute(
            pg.on_conflict_do_update(index_elements=list(key), set_={c: pg.excluded[c] for c in changed})
            if changed
            else pg.on_conflict_do_nothing()
        )
        return
    lite = sqlite.insert(table)
    connection.execute(
        lite.on_conflict_do_update(index_elements=list(key), set_={c: lite.excluded[c] for c in changed})
        if changed
        else lite.on_conflict_do_nothing(),
        rows,
    )


def _as_rows(
    table: sa.Table, columns: tuple[str, ...], rows: Sequence[tuple[Any, ...]]
) -> sa.TableValuedAlias:
    """Rows as something to select from on PostgreSQL.

    One array per column: a statement with a hundred thousand rows costs one round trip and no parsing.
    """
    return (
        sa.func.unnest(
            *(
                sa.bindparam(None, list(values), sa.ARRAY(table.c[c].type), unique=True)
                for c, values in zip(columns, zip(*rows, strict=True), strict=True)
            )
        )
        .table_valued(*columns, name="given")
        .render_derived()
    )


def _update(
    connection: sa.Connection, table: sa.Table, key: tuple[str, ...], rows: Sequence[dict[str, Any]]
) -> None:
    for columns, group in _by_columns(rows):
        changed = [c for c in columns if c not in key]
        if not changed:
            continue
        if connection.dialect.name == "postgresql":
            given = _as_rows(table, columns, [tuple(row[c] for c in columns) for row in group])
            connection.execute(
                sa.update(table)
                .where(*(table.c[c] == given.c[c] for c in key))
                .values({c: given.c[c] for c in changed})
            )
            continue
        # Bound names must differ from column names, or SQLAlchemy takes them for values to set.
        statement = (
            sa.update(table)
            .where(*(table.c[c] == sa.bindparam(f"key_{c}") for c in key))
            .values({c: sa.bindparam(f"new_{c}", type_=table.c[c].type) for c in changed})
        )
        connection.execute(
            statement,
            [{**{f"key_{c}": r[c] for c in key}, **{f"new_{c}": r[c] for c in changed}} for r in group],
        )
