"""A PostgreSQL server with its usual durability, for as long as a measurement takes."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests.state.postgres_server import find_binaries, shared_server, stop_server

DURABLE: Final = {
    "fsync": "on",
    "synchronous_commit": "on",
    "full_page_writes": "on",
    "autovacuum": "on",
    "shared_buffers": "256MB",
    "max_wal_size": "2GB",
}
"""A server as one would run it."""


@contextmanager
def durable_database() -> Iterator[str]:
    """The URL of a migrated database; the program ends where PostgreSQL is not installed."""
    binaries = find_binaries()
    if binaries is None:
        sys.exit("PostgreSQL is not installed")
    folder = Path(tempfile.mkdtemp(prefix="bench-samples-pg-"))
    server = shared_server(folder, binaries, DURABLE)
    try:
        with server.database(migrated=True) as url:
            yield url
    finally:
        stop_server(folder)
