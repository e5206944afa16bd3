"""The DAG run behind a run of Airflow: asked for where Airflow is up, stopped with it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dataflow_ops.clients.airflow_api import ENDED, AirflowApi, AirflowAway, AirflowRefused, find_login
from dataflow_ops.state.records import RunRecord


def why_it_stays(home_path: Path, run: RunRecord) -> str:
    """Why nothing goes on in Airflow though the run has not ended; empty where it does, or nobody knows.

    Args:
        home_path: home folder; the stack's login lies there.
        run: the run.
    """
    dag_id, name = _named(run)
    with _airflow(home_path) as api:
        if api is None or not dag_id:
            return ""
        try:
            there = api.dag_run(dag_id, name)
        except (AirflowAway, AirflowRefused) as e:
            return f"whether its DAG run is still there could not be asked: {e}"
    if there is None:
        return (
            f"its DAG run {name} of {dag_id} is gone from Airflow, so nothing of it goes on;"
            f" `dataflow cancel {run.run_id}` ends it, a new run takes what is done"
        )
    if there.state in ENDED:
        return (
            f"its DAG run has ended in Airflow ({there.state}), so nothing of it goes on; clear its task"
            f" 'start' with everything downstream there, or end it: `dataflow cancel {run.run_id}`"
        )
    return ""


def job_is_gone(home_path: Path, run: RunRecord) -> str:
    """Says that no job file makes a run's DAG any more; empty where one does, or nobody knows."""
    dag_id, _ = _named(run)
    if not dag_id:
        return ""
    with _airflow(home_path) as api:
        try:
            if api is None or not api.is_dag_gone(dag_id):
                return ""
        except (AirflowAway, AirflowRefused):
            return ""
    return f"its job file is gone: the DAG is stale; put it back, or `dataflow cancel {run.run_id}`"


def stop_dag_run(home_path: Path, run: RunRecord) -> str:
    """Stop the DAG run of a run that was cancelled, and say what became of it; empty for other runs."""
    if not _named(run)[0]:
        return ""
    with _airflow(home_path) as api:
        if api is None:
            return "Airflow is not up; its DAG run fails there when its next task begins."
        try:
            stopped = api.fail(*_named(run))
        except (AirflowAway, AirflowRefused) as e:
            return f"Its DAG run could not be stopped ({e}); it fails when its next task begins."
    return "Its DAG run is stopped too." if stopped else "Its DAG run has ended in Airflow, or is gone."


@contextmanager
def _airflow(home_path: Path) -> Iterator[AirflowApi | None]:
    """The Airflow of a home, where it is up."""
    login = find_login(home_path)
    if login is None:
        yield None
        return
    with AirflowApi(login) as api:
        yield api if api.is_healthy() else None


def _named(run: RunRecord) -> tuple[str, str]:
    """DAG and DAG run; empty for a run of the command line."""
    origin = json.loads(run.origin) if run.origin else {}
    return str(origin.get("dag_id") or ""), str(origin.get("run_id") or "")
