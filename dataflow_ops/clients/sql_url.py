"""Database URLs whose secrets stand in the environment, and engines that only read."""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import sqlalchemy as sa

from dataflow_ops.errors import SourceRefused

_PLACEHOLDER: Final = re.compile(r"\$\{(\w+)\}|\$(\w+)")
_CONNECT_TIMEOUT_S: Final = 10
BUSY_S = 30.0
"""How long one statement waits for a writer of a SQLite file."""


def resolved(where: str, url: str, environment: Mapping[str, str] | None = None) -> tuple[sa.URL, list[str]]:
    """A URL with the environment's values in it, and those values: they must never be told.

    Values are put into the parts of the URL, so a password may hold any character. A URL that is nothing but
    ``${NAME}`` is the value itself.

    Raises:
        SourceRefused: a variable is not set, or it is no URL. Never shows a value.
    """
    known = os.environ if environment is None else environment
    used: list[str] = []

    def value(match: re.Match[str]) -> str:
        name = match[1] or match[2]
        if not known.get(name):
            raise SourceRefused(f"{where}: the environment variable {name} is not set; its url names it")
        used.append(known[name])
        return known[name]

    def filled(text: Any) -> Any:
        return _PLACEHOLDER.sub(value, text) if isinstance(text, str) else text

    whole = filled(url) if _PLACEHOLDER.fullmatch(url) else url
    try:
        parsed = sa.make_url(whole)
    except (sa.exc.ArgumentError, ValueError):
        # Their own messages show what was given.
        raise SourceRefused(
            f"{where}: its url is no database URL; write it as postgresql://USER@HOST/NAME or"
            " sqlite:////FOLDER/FILE"
        ) from None
    if whole == url:
        parsed = parsed.set(
            username=filled(parsed.username),
            password=filled(parsed.password),
            host=filled(parsed.host),
            database=filled(parsed.database),
            query={name: filled(text) for name, text in parsed.query.items()},
        )
    elif parsed.password:
        used.append(str(parsed.password))
    if parsed.drivername in ("postgresql", "postgres"):
        parsed = parsed.set(drivername="postgresql+psycopg")
    return parsed, used


def engine_for(
    where: str, url: str, environment: Mapping[str, str] | None = None
) -> tuple[sa.Engine, list[str]]:
    """An engine that reads from somebody else's database, and the secrets in its URL.

    Text that is not UTF-8 comes with its odd bytes as lone surrogates (Python's ``surrogateescape``).

    Raises:
        SourceRefused: a variable is not set, no driver is installed, or there is no such SQLite file.
    """
    parsed, secrets = resolved(where, url, environment)
    backend = parsed.get_backend_name()
    if backend == "sqlite":
        return _sqlite(where, parsed), secrets
    options: dict[str, Any] = {}
    if parsed.drivername == "postgresql+psycopg":
        options["connect_args"] = {"connect_timeout": _CONNECT_TIMEOUT_S, "application_name": "dataflow"}
    try:
        engine = sa.create_engine(
            parsed, pool_size=1, max_overflow=1, pool_pre_ping=True, hide_parameters=True, **options
        )
    except (sa.exc.NoSuchModuleError, ImportError) as e:
        raise SourceRefused(
            f"{where}: no driver for {parsed.drivername} is installed here ({e}); install it beside dataflow"
        ) from None
    if parsed.drivername == "postgresql+psycopg":
        _read_any_text(engine)
        return engine.execution_options(postgresql_readonly=True), secrets
    return engine, secrets


def _sqlite(where: str, url: sa.URL) -> sa.Engine:
    path = Path(url.database or "").absolute()
    if not path.is_file():
        raise SourceRefused(
            f"{where}: there is no SQLite file {url.database or '(none named)'} (relative paths count from"
            " the folder the command was started in)"
        )

    def connect() -> sqlite3.Connection:
        # Opened by name alone, SQLite would make a new file of a name that is wrong.
        uri = f"file:{quote(str(path))}?mode=ro"
        connection = sqlite3.connect(uri, uri=True, timeout=BUSY_S, check_same_thread=False)
        connection.text_factory = lambda data: data.decode("utf-8", "surrogateescape")
        return connection

    return sa.create_engine(
        "sqlite+pysqlite://", creator=connect, poolclass=sa.NullPool, hide_parameters=True
    )


def _read_any_text(engine: sa.Engine) -> None:
    """Let text of a PostgreSQL database without an encoding (SQL_ASCII) come through, whatever it holds."""
    from psycopg.adapt import Loader

    class AnyText(Loader):
        def load(self, data: Any) -> str:
            return bytes(data).decode("utf-8", "surrogateescape")

    # Before SQLAlchemy asks the server for its version, which would come as bytes.
    @sa.event.listens_for(engine, "connect", insert=True)
    def _register(connection: Any, _record: object) -> None:
        if connection.info.parameter_status("server_encoding") == "SQL_ASCII":
            for name in ("text", "varchar", "bpchar"):
                connection.adapters.register_loader(name, AnyText)
