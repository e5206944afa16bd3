"""State databases for tests: a SQLite file, or a database on a private PostgreSQL server."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest

# Shared contract suites are imported as tests.…, from whatever folder pytest was started.
sys.path.insert(0, str(Path(__file__).parents[1]))

from dataflow_ops.state.migrate import migrate
from dataflow_ops.state.store import StateStore
from tests.state.postgres_server import PostgresServer, find_binaries, shared_server, stop_server

# Nothing here asserts a time: a machine that stalls for a second is no fault of what is tested.
hypothesis.settings.register_profile("dataflow", deadline=None)
hypothesis.settings.load_profile("dataflow")

_FOLDER = "DATAFLOW_TEST_POSTGRES_FOLDER"


def _is_worker(config: pytest.Config) -> bool:
    return hasattr(config, "workerinput")


def pytest_configure(config: pytest.Config) -> None:
    if not _is_worker(config):
        # Workers of pytest-xdist inherit the environment, and so share one server.
        os.environ[_FOLDER] = tempfile.mkdtemp(prefix="dataflow-pg-")


def pytest_xdist_auto_num_workers() -> int:
    """One more than there are cores: the tests on a live stack mostly wait for other processes."""
    mine = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else range(os.cpu_count() or 1)
    return len(mine) + 1


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Groups that take minutes begin first, or all other workers would wait for them at the end."""
    items.sort(key=lambda item: -_weight(item))


def pytest_collection_finish(session: pytest.Session) -> None:
    """Groups hold: else every worker starts a whole stack of its own, and CI takes twice its time."""
    if _is_worker(session.config) and session.config.getoption("loadgroup", False):
        loose = [
            i.nodeid for i in session.items if i.get_closest_marker("xdist_group") and "@" not in i.nodeid
        ]
        if loose:
            raise pytest.UsageError(f"pytest-xdist groups nothing under this pytest: {loose[0]}, …")


def _weight(item: pytest.Item) -> int:
    if item.get_closest_marker("stack"):
        return 3
    if item.get_closest_marker("airflow"):
        return 2
    return 1 if item.get_closest_marker("xdist_group") else 0


def pytest_unconfigure(config: pytest.Config) -> None:
    if not _is_worker(config):
        stop_server(Path(os.environ.pop(_FOLDER)))


@pytest.fixture(scope="session")
def postgres_server() -> PostgresServer:
    """A running server, one for the whole session. Skips where PostgreSQL is not installed."""
    binaries = find_binaries()
    if binaries is None:
        line = "PostgreSQL is not installed (no initdb under /usr/lib/postgresql/*/bin or on PATH)"
        if os.environ.get("DATAFLOW_REQUIRE_POSTGRES") == "1":
            pytest.fail(line)
        pytest.skip(line)
    return shared_server(Path(os.environ[_FOLDER]), binaries)


@pytest.fixture
def postgres_url(postgres_server: PostgresServer) -> Iterator[str]:
    """A fresh PostgreSQL database with the schema in place."""
    with postgres_server.database(migrated=True) as url:
        yield url


@pytest.fixture
def empty_postgres_url(postgres_server: PostgresServer) -> Iterator[str]:
    """A fresh PostgreSQL database without any tables."""
    with postgres_server.database(migrated=False) as url:
        yield url


@pytest.fixture(scope="session")
def _sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("state-template") / "state.db"
    migrate(f"sqlite:///{path}")
    return path


@pytest.fixture
def sqlite_url(_sqlite_template: Path, tmp_path: Path) -> str:
    """A fresh SQLite file with the schema in place."""
    path = tmp_path / "state" / "state.db"
    path.parent.mkdir()
    shutil.copyfile(_sqlite_template, path)
    return f"sqlite:///{path}"


@pytest.fixture
def sqlite_store(sqlite_url: str) -> Iterator[StateStore]:
    """A state store on a fresh SQLite file."""
    with StateStore(sqlite_url) as store:
        yield store


@pytest.fixture
def postgres_store(postgres_url: str) -> Iterator[StateStore]:
    """A state store on a fresh PostgreSQL database."""
    with StateStore(postgres_url) as store:
        yield store
