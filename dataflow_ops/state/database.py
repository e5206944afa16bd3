"""The connection to the state database: one engine, tuned, whose faults are told in our own errors."""

from __future__ import annotations

import gc
import json
import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import DatabaseError, DBAPIError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from dataflow_ops.errors import CommitUnknown, ConfigError, DatabaseUnavailable, StateError, StorageFull

BUSY_TIMEOUT_MS = 30_000
# Keeps our advisory locks apart from those of others in the same PostgreSQL database ("dflw").
_LOCK_SPACE = 0x64666C77
LOCK_QUEUE = 1
LOCK_MIGRATE = 2
LOCK_DELIVERY = 3
LOCK_CLEAN = 4

PATIENCE_S = 300.0
"""How long work that is under way waits for a database that went away: a restart takes seconds, moving it to
another host a few minutes."""
_FIRST_PAUSE_S = 0.25
_MOST_PAUSE_S = 5.0

log = logging.getLogger(__name__)


def parse_url(url: str) -> sa.URL:
    """Check a database URL and choose the driver.

    Args:
        url: ``sqlite:///relative.db``, ``sqlite:////absolute.db`` or ``postgresql://user@host/name``.

    Raises:
        ConfigError: neither a SQLite file nor PostgreSQL.
    """
    try:
        parsed = sa.make_url(url)
    except sa.exc.ArgumentError as e:
        raise ConfigError(f"state database {url!r} is not a database URL") from e
    backend = parsed.get_backend_name()
    if backend == "postgresql":
        return parsed.set(drivername="postgresql+psycopg")
    if backend == "sqlite" and parsed.database and parsed.database != ":memory:":
        return parsed.set(drivername="sqlite+pysqlite")
    raise ConfigError(
        f"state database {parsed.render_as_string()!r}: use sqlite:///FILE or postgresql://USER@HOST/NAME"
    )


def create_engine(url: str) -> sa.Engine:
    """An engine with the settings that state needs; creates the folder of a SQLite file.

    SQLite: write-ahead log (set by the migration, it stays with the file), ``BEGIN IMMEDIATE`` except for
    reads, 30 s of patience, full synchronisation, foreign keys. PostgreSQL: psycopg 3, connections tested
    before use.
    """
    parsed = parse_url(url)
    if parsed.get_backend_name() == "postgresql":
        return sa.create_engine(
            parsed,
            pool_pre_ping=True,
            pool_size=4,
            max_overflow=28,
            connect_args={"application_name": "dataflow", "connect_timeout": 10},
        )
    Path(str(parsed.database)).absolute().parent.mkdir(parents=True, exist_ok=True)
    engine = sa.create_engine(
        parsed,
        pool_size=4,
        max_overflow=28,
        connect_args={"timeout": BUSY_TIMEOUT_MS / 1000, "check_same_thread": False},
    )

    @sa.event.listens_for(engine, "connect")
    def _configure(connection: Any, _record: object) -> None:
        connection.isolation_level = None  # transactions begin where we say so, not where the driver guesses
        for pragma in ("synchronous=FULL", "foreign_keys=ON", "cache_size=-32000"):
            connection.execute(f"PRAGMA {pragma}")

    @sa.event.listens_for(engine, "begin")
    def _begin(connection: sa.Connection) -> None:
        reads_only = connection.get_execution_options().get("dataflow_reads_only", False)
        connection.exec_driver_sql("BEGIN" if reads_only else "BEGIN IMMEDIATE")

    return engine


class Database:
    """Transactions on one engine. Safe to share between threads; every process opens its own.

    Args:
        engine: from :func:`create_engine`.
        patience_s: how long a transaction waits for a connection while the database is away. One that broke
            after it had begun is never repeated here: only its caller knows whether it may be.
    """

    def __init__(self, engine: sa.Engine, patience_s: float = 0.0) -> None:
        self.engine = engine
        self.patience_s = patience_s
        self.is_postgres = engine.dialect.name == "postgresql"
        self.now: sa.ColumnElement[float] = (
            sa.cast(sa.extract("epoch", sa.func.clock_timestamp()), sa.Double)
            if self.is_postgres
            else sa.literal_column("((julianday('now') - 2440587.5) * 86400.0)", sa.Double)
        )
        """The database's clock, so that leases don't depend on the clocks of workers."""

    @contextmanager
    def write(self) -> Iterator[sa.Connection]:
        """One transaction that writes.

        Raises:
            CommitUnknown: the connection broke during COMMIT.
            DatabaseUnavailable: it broke earlier (nothing was written), or can't be had.
            StorageFull: the disk of the database is full.
        """
        with self._connection() as connection:
            transaction = connection.begin()
            try:
                yield connection
            except BaseException:
                _roll_back(transaction)
                raise
            try:
                transaction.commit()
            except DBAPIError as e:
                raise CommitUnknown(f"the database did not say whether it committed: {e.orig}") from e

    @contextmanager
    def read(self) -> Iterator[sa.Connection]:
        """One consistent view for reading; never waits for writers."""
        with self._connection() as connection:
            connection = connection.execution_options(dataflow_reads_only=True)
            with connection.begin() as transaction:
                yield connection
                transaction.rollback()

    @contextmanager
    def _connection(self) -> Iterator[sa.Connection]:
        try:
            with self._connect() as connection:
                yield connection
        except DBAPIError as e:
            # Broken constraints and wrong statements are faults in our code and stay what they are.
            if isinstance(e, OperationalError | InterfaceError) or type(e) is DatabaseError:
                raise translate(e) from e
            raise
        except PoolTimeout as e:
            raise DatabaseUnavailable(f"no connection to the state database came free: {e}") from e

    def _connect(self) -> sa.Connection:
        began, pause = time.monotonic(), _FIRST_PAUSE_S
        while True:
            try:
                return self.engine.connect()
            except (OperationalError, InterfaceError) as e:
                if time.monotonic() + pause - began > self.patience_s:
                    raise
                if pause == _FIRST_PAUSE_S:
                    log.warning("state is away, asked for up to %g s: %s", self.patience_s, e.orig)
                time.sleep(pause)
                pause = min(_MOST_PAUSE_S, 2 * pause)

    def lock(self, connection: sa.Connection, number: int) -> None:
        """Let nobody else hold lock ``number`` until this transaction ends. SQLite has one writer anyway."""
        if self.is_postgres:
            connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_LOCK_SPACE, number)))

    def among(self, column: sa.ColumnElement[str], values: Sequence[str]) -> sa.ColumnElement[bool]:
        """``column IN values`` for any number of values, as one parameter."""
        if self.is_postgres:
            array = sa.bindparam(None, list(values), type_=sa.ARRAY(sa.Text), unique=True)
            return column == sa.any_(array)
        return column.in_(sa.select(self.listed(values).c.value))

    def listed(self, values: Sequence[str]) -> sa.TableValuedAlias:
        """The values as a table with one column ``value``, as one parameter."""
        if self.is_postgres:
            array = sa.bindparam(None, list(values), type_=sa.ARRAY(sa.Text), unique=True)
            return sa.func.unnest(array).table_valued("value", name="listed").render_derived()
        return sa.func.json_each(json.dumps(list(values))).table_valued("value")


def translate(error: DBAPIError) -> StateError | StorageFull:
    """The error of ours that says what to do about a fault of the database."""
    cause = str(error.orig)
    lowered = cause.lower()
    if "disk is full" in lowered or "no space left" in lowered:
        return StorageFull(f"the state database has no space left: {cause}")
    return DatabaseUnavailable(f"the state database can't be used: {cause}")


def _roll_back(transaction: sa.RootTransaction) -> None:
    """Roll back where the connection still lives; a dead one has nothing to roll back."""
    try:
        transaction.rollback()
    except DBAPIError:
        transaction.connection.invalidate()


@contextmanager
def no_collections() -> Iterator[None]:
    """Switch cyclic garbage collection off: for a million new objects it costs more than making them."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def dump(value: Mapping[str, object] | Sequence[object]) -> str:
    """Compact ASCII JSON with sorted keys."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"))
