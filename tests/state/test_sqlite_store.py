from __future__ import annotations

import hashlib
import time

import pytest
import sqlalchemy as sa

from dataflow_ops.errors import DatabaseUnavailable, StorageFull
from dataflow_ops.state.store import StateStore
from dataflow_ops.state.tables import task, task_output
from dataflow_ops.values import TaskSpec
from tests.state.contract import StateStoreContract


class TestSqlite(StateStoreContract):
    @pytest.fixture
    def url(self, sqlite_url: str) -> str:
        return sqlite_url

    def test_many_tasks(self, store: StateStore) -> None:
        """A fifth of the 100,000 tasks that must take below 3 s to enqueue and 4 s to look up.

        The bounds leave twice the share of that, so that a busy machine does not fail the suite.
        """
        specs = [
            TaskSpec(hashlib.sha256(b"%d" % i).hexdigest(), "parse", "parse", f"{i:016x}")
            for i in range(20_000)
        ]
        start = time.process_time()
        store.enqueue("r1", specs)
        enqueued = time.process_time()
        assert enqueued - start < 1.2
        with store.db.write() as connection:
            connection.execute(
                sa.insert(task_output),
                [
                    {
                        "task_key": s.key,
                        "kind": k,
                        "uri": "u",
                        "size": 1,
                        "mtime_ns": 1,
                        "sha256": "a",
                        "rows": 1,
                    }
                    for s in specs
                    for k in ("a", "b", "c")
                ],
            )
            connection.execute(
                sa.update(task).values(
                    documents_in=1, kept=1, rejected=0, dead=0, documents_out=1, bytes_in=1, tokens_out=1
                )
            )
        start = time.process_time()
        records = store.records([s.key for s in specs])
        assert time.process_time() - start < 1.6
        assert len(records) == 20_000
        assert all(len(r.outputs) == 3 and r.counts is not None for r in records.values())
        assert list(store.records_of_step("r1", "parse").values()) == list(records.values())

    def test_a_full_disk_is_told_as_such(self, store: StateStore) -> None:
        pages = 0
        with store.db.read() as connection:
            pages = connection.exec_driver_sql("PRAGMA page_count").scalar_one()
        store.engine.dispose()

        @sa.event.listens_for(store.engine, "connect")
        def _shrink(connection: object, _record: object) -> None:
            connection.execute(f"PRAGMA max_page_count={pages + 2}")  # type: ignore[attr-defined]

        with pytest.raises(StorageFull):
            store.enqueue("r1", [TaskSpec(f"{i:064}", "parse", "parse", str(i)) for i in range(5000)])

    def test_a_file_that_is_no_database(self, tmp_path: object) -> None:
        path = f"{tmp_path}/x.db"
        with open(path, "w") as file:
            file.write("this is certainly not a database file" * 100)
        with pytest.raises(DatabaseUnavailable):
            StateStore(f"sqlite:///{path}")
