from __future__ import annotations

import threading
from pathlib import Path

import pytest
import sqlalchemy as sa

from dataflow_ops.samples.importing import ImportStep, plan_import
from dataflow_ops.samples.running import run_task
from dataflow_ops.state.sample_tables import sample
from dataflow_ops.state.samples.store import SampleStore
from tests.samples.contract_import import ImportContract, write_lines
from tests.state.gate import Gate


@pytest.mark.postgres
class TestPostgres(ImportContract):
    @pytest.fixture
    def url(self, postgres_url: str) -> str:
        return postgres_url

    def test_a_database_that_goes_away_again_and_again(self, postgres_url: str, tmp_path: Path) -> None:
        """Cut off at any moment, twelve times: the import waits, and every turn is there once."""
        path = write_lines(tmp_path / "a.jsonl", 3000)
        over = threading.Event()
        cuts = []
        with Gate(postgres_url) as gate, SampleStore(gate.url, 30.0) as store:
            wanted = plan_import(store, "chat", [str(path)], "ann")

            def cut() -> None:
                for number in range(12):
                    if over.wait(0.02 + 0.03 * number):
                        return
                    gate.shut()
                    cuts.append(number)
                    gate.open_after(0.05).join()

            thread = threading.Thread(target=cut)
            thread.start()
            try:
                task = run_task(store, str(wanted.task_id), ImportStep(store, batch_rows=60))
            finally:
                over.set()
                thread.join()
        with SampleStore(postgres_url) as store:
            (file,) = store.sample_files()
            with store.read() as connection:
                rows = connection.execute(sa.select(sa.func.count()).select_from(sample)).scalar_one()
        assert len(cuts) > 3
        assert (task.state, task.attempt) == ("SUCCESS", 1)
        assert (task.counts["records"], task.counts["rows"]) == (3000, rows) == (file.records, file.rows)
