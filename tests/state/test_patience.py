"""A database that goes away for a while: who waits for it, and who says so at once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from dataflow_ops.errors import DatabaseUnavailable
from dataflow_ops.state.database import PATIENCE_S
from dataflow_ops.state.store import StateStore
from tests.state.gate import Gate

pytestmark = pytest.mark.postgres


@pytest.fixture
def gate(postgres_url: str) -> Iterator[Gate]:
    with Gate(postgres_url) as found:
        yield found


def test_who_is_patient_reads_and_writes_when_it_is_back(gate: Gate) -> None:
    with StateStore(gate.url, PATIENCE_S) as store:
        gate.shut()
        timer = gate.open_after(1.0)
        store.create_run("r", "d", "j", "full", "{}", None)
        timer.join()
        assert [run.run_id for run in store.list_runs()] == ["r"]
        gate.shut()
        timer = gate.open_after(1.0)
        assert store.get_run("r") is not None
        timer.join()


def test_it_may_be_away_at_first(gate: Gate) -> None:
    gate.shut()
    timer = gate.open_after(1.0)
    with StateStore(gate.url, PATIENCE_S) as store:
        timer.join()
        assert store.list_runs() == []


def test_patience_ends(gate: Gate) -> None:
    with StateStore(gate.url, 0.6) as store:
        gate.shut()
        with pytest.raises(DatabaseUnavailable):
            store.list_runs()
        gate.open()
        assert store.list_runs() == []


def test_without_patience_it_is_said_at_once(gate: Gate) -> None:
    with StateStore(gate.url) as store:
        patient = StateStore(gate.url, PATIENCE_S)
        gate.shut()
        with pytest.raises(DatabaseUnavailable):
            store.list_runs()
        # Nobody opens it: a store that waited here would wait for minutes.
        with pytest.raises(DatabaseUnavailable):
            patient.hasty().list_runs()
        gate.open()
        assert patient.list_runs() == []
        patient.close()


def test_what_breaks_in_the_midst_is_not_repeated_by_the_store(gate: Gate) -> None:
    def broken(store: StateStore) -> None:
        with store.db.write() as connection:
            connection.exec_driver_sql("SELECT 1")
            gate.cut()
            connection.exec_driver_sql("SELECT 1")

    with StateStore(gate.url, PATIENCE_S) as store:
        with pytest.raises(DatabaseUnavailable):
            broken(store)
        assert store.list_runs() == []
