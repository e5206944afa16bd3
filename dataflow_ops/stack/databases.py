"""The stack's databases on its PostgreSQL server."""

from __future__ import annotations

from collections.abc import Sequence


def create_databases(url: str, names: Sequence[str]) -> list[str]:
    """Create those that are missing.

    Args:
        url: of any database on the server, ``postgresql+psycopg://USER:PASSWORD@HOST:PORT/NAME``.
        names: databases that must be there.

    Returns:
        Those that were made.
    """
    import psycopg
    from psycopg import errors, sql

    made = []
    plain = url.replace("postgresql+psycopg://", "postgresql://")
    with psycopg.connect(plain, dbname="postgres", autocommit=True) as connection:
        for name in names:
            known = connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [name]).fetchone()
            if known is not None:
                continue
            try:
                connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
            except errors.DuplicateDatabase:
                continue  # another call made it meanwhile
            made.append(name)
    return made
