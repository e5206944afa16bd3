from __future__ import annotations

import pytest
import sqlalchemy as sa

from dataflow_ops.errors import DatabaseUnavailable
from dataflow_ops.state.store import StateStore
from tests.state.contract import StateStoreContract
from tests.state.store_case import spec


@pytest.mark.postgres
class TestPostgres(StateStoreContract):
    @pytest.fixture
    def url(self, postgres_url: str) -> str:
        return postgres_url

    def test_a_connection_lost_before_commit_wrote_nothing(self, store: StateStore) -> None:
        store.enqueue("r1", [spec("t")])

        def write_and_be_cut_off() -> None:
            with store.db.write() as connection:
                pid = connection.execute(sa.select(sa.func.pg_backend_pid())).scalar_one()
                connection.exec_driver_sql("UPDATE task SET state = 'DEAD'")
                with store.engine.connect() as other:
                    other.execute(sa.select(sa.func.pg_terminate_backend(pid)))
                connection.execute(sa.select(sa.literal(1)))

        with pytest.raises(DatabaseUnavailable):
            write_and_be_cut_off()
        assert store.records([spec("t").key])[spec("t").key].state == "PENDING"

    def test_a_server_that_is_not_there(self) -> None:
        with pytest.raises(DatabaseUnavailable):
            StateStore("postgresql://nobody@127.0.0.1:1/none")
