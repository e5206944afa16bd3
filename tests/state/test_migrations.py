from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory

from dataflow_ops.errors import ConfigError, StateError
from dataflow_ops.state.database import Database, create_engine
from dataflow_ops.state.migrate import HEAD, VERSION_TABLE, migrate, revision
from dataflow_ops.state.sample_tables import sample


def _differences(url: str) -> list[object]:
    engine = create_engine(url)
    with engine.connect() as connection:
        context = MigrationContext.configure(
            connection, opts={"version_table": VERSION_TABLE, "compare_type": True}
        )
        found = list(compare_metadata(context, sample.metadata))
    engine.dispose()
    return found


def test_models_equal_migrations_on_sqlite(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'deep' / 'state.db'}"
    migrate(url)
    assert _differences(url) == []


@pytest.mark.postgres
def test_models_equal_migrations_on_postgres(empty_postgres_url: str) -> None:
    migrate(empty_postgres_url)
    assert _differences(empty_postgres_url) == []


def test_a_missing_column_is_noticed(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'state.db'}"
    migrate(url)
    engine = create_engine(url)
    with engine.begin() as connection:
        connection.exec_driver_sql("ALTER TABLE run DROP COLUMN detail")
    engine.dispose()
    assert _differences(url) != []


def test_head_is_the_newest_file() -> None:
    config = Config()
    config.set_main_option("script_location", "dataflow_ops.state:migrations")
    assert ScriptDirectory.from_config(config).get_heads() == [HEAD]


def test_processes_that_migrate_at_once_on_sqlite(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'state.db'}"
    code = f"from dataflow_ops.state.store import StateStore; StateStore({url!r}).close()"
    processes = [
        subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE, text=True) for _ in range(3)
    ]
    errors = [process.communicate()[1] for process in processes]
    assert [process.returncode for process in processes] == [0] * 3, errors
    assert _differences(url) == []


@pytest.mark.postgres
def test_migrating_at_once_on_postgres(empty_postgres_url: str) -> None:
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(migrate, [empty_postgres_url] * 6))
    assert _differences(empty_postgres_url) == []


def test_sqlite_is_tuned(sqlite_url: str) -> None:
    engine = create_engine(sqlite_url)
    with engine.connect() as connection:
        got = {
            name: connection.exec_driver_sql(f"PRAGMA {name}").scalar()
            for name in ("journal_mode", "synchronous", "foreign_keys", "busy_timeout")
        }
    engine.dispose()
    assert got == {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1, "busy_timeout": 30_000}


def test_a_newer_database_is_refused(sqlite_url: str) -> None:
    engine = create_engine(sqlite_url)
    with engine.begin() as connection:
        connection.execute(sa.text(f"UPDATE {VERSION_TABLE} SET version_num = '9999'"))
    with pytest.raises(StateError, match="does not fit this version"):
        migrate(sqlite_url)
    assert revision(Database(engine)) == "9999"
    engine.dispose()


@pytest.mark.parametrize("url", ["mysql://root@localhost/x", "sqlite://", "sqlite:///:memory:", "state.db"])
def test_other_urls_are_refused(url: str) -> None:
    with pytest.raises(ConfigError):
        create_engine(url)
