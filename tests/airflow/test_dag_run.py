"""A whole run by Airflow itself, on SQLite, gives the bytes that the command line gives."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dataflow_ops.cli import airflow_process
from tests.pipeline import corpus
from tests.pipeline.harness import ROOT, once, published

DAG = """
from pathlib import Path
from dataflow_ops.airflow.dag_factory import corpus_dag
made = corpus_dag(Path({job!r}), home=Path({home!r}), cores=2, retries=0)
"""


@pytest.mark.airflow
@pytest.mark.timeout(280)
def test_a_dag_run_and_a_local_run_give_the_same_bytes(tmp_path: Path) -> None:
    job = corpus.build(tmp_path / "in", code=12, docs=24)
    once(job, tmp_path / "local")  # of 2026-01-01
    (tmp_path / "dags").mkdir()
    home = tmp_path / "home"
    (tmp_path / "dags" / "tiny.py").write_text(DAG.format(job=str(job), home=str(home)))
    env = airflow_process.environment(tmp_path / "airflow", tmp_path / "dags", {"PYTHONPATH": str(ROOT)})
    log = tmp_path / "airflow.log"
    notes: list[str] = []
    with airflow_process.only_one(tmp_path / "airflow") as lock:
        # As a process killed in the middle of the migration leaves it: a file, and no mark beside it.
        (tmp_path / "airflow" / "airflow.db").write_bytes(b"not a database at all, " * 100)
        assert airflow_process.migrate(env, log, lock, notes.append) == 0, log.read_text()[-3000:]
        assert len(notes) == 2, notes
        assert airflow_process.migrate(env, log, lock, notes.append) == 0
        assert len(notes) == 2, "a database that was marked as ready is left alone"
        code = airflow_process.run_airflow(["dags", "test", "tiny__full", "2026-01-01"], env, log, lock)
        assert code == 0, "\n".join(airflow_process.last_lines(log, 40))
    assert published(home) == published(tmp_path / "local")
    assert os.listdir(home / "data")
