"""Brings a state database to the newest schema, in this process, one migrator at a time."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import sqlalchemy as sa

from dataflow_ops.errors import StateError
from dataflow_ops.state.database import LOCK_MIGRATE, Database, create_engine

HEAD: Final = "0004"
"""Newest revision; a test holds it against the files under ``migrations/``."""
VERSION_TABLE: Final = "dataflow_alembic_version"


def migrate(url: str, patience_s: float = 0.0) -> None:
    """Run all migrations that the database lacks. Safe to call from many processes at once.

    Args:
        url: of the database.
        patience_s: how long to wait for one that is away.

    Raises:
        ConfigError: not a URL that we can use.
        StateError: the database was made by a newer version of the program.
        DatabaseUnavailable: it can't be reached.
    """
    engine = create_engine(url)
    try:
        migrate_database(Database(engine, patience_s))
    finally:
        engine.dispose()


def migrate_database(db: Database) -> None:
    """:func:`migrate` for a database that is open already."""
    if revision(db) == HEAD:
        return
    with _alone(db.engine), db.write() as connection:
        db.lock(connection, LOCK_MIGRATE)
        _upgrade(connection)


def revision(db: Database) -> str | None:
    """The schema's revision; ``None`` for an empty database."""
    with db.read() as connection:
        if not sa.inspect(connection).has_table(VERSION_TABLE):
            return None
        return connection.execute(sa.text(f"SELECT version_num FROM {VERSION_TABLE}")).scalar()


def _upgrade(connection: sa.Connection) -> None:
    # Alembic takes 0.2 s to import, and a worker needs it only where the schema is old.
    from alembic import command
    from alembic.config import Config
    from alembic.util import CommandError

    config = Config()
    config.set_main_option("script_location", "dataflow_ops.state:migrations")
    config.attributes["connection"] = connection
    try:
        command.upgrade(config, "head")
    except CommandError as e:
        raise StateError(f"the state database does not fit this version of the program: {e}") from e


@contextmanager
def _alone(engine: sa.Engine) -> Iterator[None]:
    """On SQLite, hold a lock file and switch on the write-ahead log, which stays with the database."""
    if engine.dialect.name != "sqlite":
        yield
        return
    path = Path(str(engine.url.database)).absolute()
    with path.with_name(path.name + ".migrate.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        # Outside any transaction: inside one, SQLite refuses to change the journal.
        raw = engine.raw_connection()
        try:
            raw.cursor().execute("PRAGMA journal_mode=WAL")
        finally:
            raw.close()
        yield
