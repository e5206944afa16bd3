"""How patient a task is: a lost worker is replaced soon, servers away for minutes turn no run red."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dataflow_ops.job_file import load_job
from tests.pipeline import inside

pytestmark = pytest.mark.airflow
NOW = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    from dataflow_ops.airflow.dag_factory import corpus_dag

    base = tmp_path_factory.mktemp("retries")
    job = inside.sources(base / "in", files=1)
    return job, corpus_dag(job, base / "home")


def pauses(task: Any) -> list[float]:
    """Seconds before each further attempt at a task, by Airflow's own reckoning."""
    from airflow.models.taskinstance import TaskInstance

    found = []
    for tried in range(1, task.retries + 1):
        instance = SimpleNamespace(
            task=task, try_number=tried, end_date=NOW, retry_delay_override=None,
            dag_id="d", task_id=task.task_id, logical_date=None,
        )  # fmt: skip
        found.append((TaskInstance.next_retry_datetime(instance) - NOW).total_seconds())  # type: ignore[arg-type]
    return found


def test_every_task_is_tried_soon_and_for_long(made: tuple[Path, Any]) -> None:
    _, dag = made
    for task in dag.tasks:
        found = pauses(task)
        assert found[0] <= 20, f"{task.task_id}: a lost worker's task waits"
        assert max(found) <= 120, f"{task.task_id}: what came back is waited for"
        assert sum(found) >= 300, f"{task.task_id}: five minutes without a server turn the run red"


def test_a_chunk_that_kills_its_task_is_given_up_before_the_task(made: tuple[Path, Any]) -> None:
    job, dag = made
    assert all(task.retries > load_job(job).run.max_attempts for task in dag.tasks)
