"""Rows of any database that SQLAlchemy reaches, read by ranges of their key.

Pages are found by key, never by OFFSET: each statement begins behind the last row that came, so a table that
changes meanwhile gives no row twice, and a broken connection is taken up where it broke.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeVar

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError

from dataflow_ops.clients.sql_url import engine_for
from dataflow_ops.errors import SourceAway, SourceRefused

PAGE_ROWS: Final = 10_000
"""Most rows of one statement: no transaction on somebody else's database stays open for long."""
_BUFFERED_ROWS: Final = 100
PAUSES_S: Final = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0)
"""Waits before the database is asked again; about a minute in all, as long as a restart takes."""

_REFUSED: Final = ("22", "28", "3D", "3F", "42")
"""SQLSTATE classes that no repeat mends: data, login, no such database, schema, table or column."""
_REFUSED_LOGIN: Final = re.compile(
    r"FATAL:\s+(password authentication failed|(database|role|user) .*does not exist|no pg_hba\.conf entry)"
)
"""What PostgreSQL says to who may not come in; its driver has no SQLSTATE for it."""
_SQLITE_PASSING: Final = frozenset((5, 6, 10, 14, 15))
"""SQLite's BUSY, LOCKED, IOERR, CANTOPEN and PROTOCOL."""

log = logging.getLogger(__name__)

Key = tuple[object, ...]
T = TypeVar("T")


class SqlTable:
    """Reads one table, view or query of a database.

    Args:
        where: what to blame in messages: the source.
        url: SQLAlchemy's, with ``${NAME}`` for what the environment holds.
        key: columns that tell rows apart.
        table: its name, with its schema in front where it needs one.
        query: a SELECT, instead.
        environment: holds passwords.
        sleep: waits.
    """

    def __init__(
        self,
        where: str,
        url: str,
        key: Sequence[str],
        *,
        table: str = "",
        query: str = "",
        environment: Mapping[str, str] | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._where = where
        self._engine, self._secrets = engine_for(where, url, environment)
        self._keys: list[sa.ColumnClause[Any]] = [sa.column(name) for name in key]
        self._from = _from(table, query)
        self._sleep = sleep
        self._names: list[str] | None = None

    def close(self) -> None:
        """Give the connection back."""
        self._engine.dispose()

    def names(self) -> list[str]:
        """See :class:`~dataflow_ops.layers.ingest.outside.Table`."""
        if self._names is None:
            nothing = sa.select(sa.text("*")).select_from(self._from).where(sa.false())
            self._names = self._asked(lambda c: list(c.execute(nothing).keys()))
        return self._names

    def highest(self) -> Key | None:
        """See :class:`~dataflow_ops.layers.ingest.outside.Table`."""
        top = self._select().order_by(*(k.desc() for k in self._keys)).limit(1)
        found = self._asked(lambda c: c.execute(top).first())
        return None if found is None else tuple(found)

    def without_key(self) -> int:
        """See :class:`~dataflow_ops.layers.ingest.outside.Table`."""
        missing = sa.or_(*(k.is_(None) for k in self._keys))
        count = sa.select(sa.func.count()).select_from(self._from).where(missing)
        return int(self._asked(lambda c: c.execute(count).scalar_one()))

    def repeated_key(self, last: Key) -> Key | None:
        """See :class:`~dataflow_ops.layers.ingest.outside.Table`."""
        groups = self._select().where(self._compared("<=", last)).group_by(*self._keys)
        found = self._asked(lambda c: c.execute(groups.having(sa.func.count() > 1).limit(1)).first())
        return None if found is None else tuple(found)

    def rows(self, columns: Sequence[str], first: Key | None, last: Key) -> Iterator[Sequence[object]]:
        """See :class:`~dataflow_ops.layers.ingest.outside.Table`."""
        places = [list(columns).index(key.name) for key in self._keys]
        chosen: list[sa.ColumnClause[Any]] = [sa.column(name) for name in columns]
        wanted: sa.Select[Any] = sa.select(*chosen).select_from(self._from).order_by(*self._keys)
        wanted = wanted.where(self._has_key(), self._compared("<=", last)).limit(PAGE_ROWS)
        sign, at, failures = ">=", first, 0
        while True:
            page = wanted if at is None else wanted.where(self._compared(sign, at))
            came = 0
            try:
                with self._engine.connect() as connection:
                    for row in connection.execution_options(yield_per=_BUFFERED_ROWS).execute(page):
                        came, failures = came + 1, 0
                        sign, at = ">", tuple(row[i] for i in places)
                        yield tuple(row)
            except DBAPIError as e:
                self._wait(e, failures)
                failures += 1
                continue
            if came < PAGE_ROWS:
                return

    def _select(self) -> sa.Select[Any]:
        return sa.select(*self._keys).select_from(self._from).where(self._has_key())

    def _has_key(self) -> sa.ColumnElement[bool]:
        return sa.and_(*(k.is_not(None) for k in self._keys))

    def _compared(self, sign: str, value: Key) -> sa.ColumnElement[bool]:
        """Whether a row's key is so to a value; column by column: not every database compares tuples."""
        binds = [_bind(part) for part in value]
        strict = sign.rstrip("=")
        found: sa.ColumnElement[bool] = self._keys[-1].op(sign, is_comparison=True)(binds[-1])
        for key, bind in zip(self._keys[-2::-1], binds[-2::-1], strict=True):
            further = key.op(strict, is_comparison=True)(bind)
            # The first condition is all that an index of the leading column needs.
            found = sa.and_(key.op(f"{strict}=", is_comparison=True)(bind), sa.or_(further, found))
        return found

    def _asked(self, ask: Callable[[sa.Connection], T]) -> T:
        """The answer to one question, asked again where the connection breaks."""
        failures = 0
        while True:
            try:
                with self._engine.connect() as connection:
                    return ask(connection)
            except DBAPIError as e:
                self._wait(e, failures)
                failures += 1

    def _wait(self, error: DBAPIError, failures: int) -> None:
        """Return when the database may be asked again.

        Raises:
            SourceRefused: it would say the same again.
            SourceAway: it was asked often enough.
        """
        said = str(error.orig).strip().split("\n", 1)[0]
        for secret in self._secrets:
            said = said.replace(secret, "***")
        if not is_passing(error):
            raise SourceRefused(f"{self._where}: the database says: {said}") from None
        if failures >= len(PAUSES_S):
            raise SourceAway(
                f"{self._where}: the database does not answer ({said}), asked {failures + 1} times in"
                f" {sum(PAUSES_S):.0f} s; run again when it is back"
            ) from None
        if not failures:
            log.warning("%s: the database does not answer, asked again: %s", self._where, said)
        self._sleep(PAUSES_S[failures])


def is_passing(error: DBAPIError) -> bool:
    """Whether a database may answer the same question otherwise a little later."""
    cause: Any = error.orig
    code = getattr(cause, "sqlite_errorcode", None)
    if code is not None:
        return (int(code) & 0xFF) in _SQLITE_PASSING
    state = str(getattr(cause, "sqlstate", None) or "")
    if state.startswith(_REFUSED) or _REFUSED_LOGIN.search(str(cause)):
        return False
    return error.connection_invalidated or isinstance(error, OperationalError | InterfaceError)


def _bind(value: object) -> sa.BindParameter[Any]:
    """A value that is sent as the driver sends it, without a cast: the column says how it is compared."""
    return sa.bindparam(None, value, type_=sa.types.NullType(), unique=True)


def _from(table: str, query: str) -> sa.FromClause:
    if query:
        # Colons would be taken for parameters; a comment at the end must not swallow the bracket.
        escaped = query.strip().rstrip(";").replace(":", "\\:")
        return sa.text(f"(\n{escaped}\n) AS queried")  # type: ignore[return-value]
    schema, _, name = table.rpartition(".")
    return sa.table(name, schema=schema or None)
