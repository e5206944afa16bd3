"""Tells our state when a run ends in Airflow while ours has not: nobody works on it any more.

Somebody marks a run there, as failed or as done, and its tasks are killed without a word; or a task dies for
good while others wait. The gate, which judges all other endings, does not run then.
"""

from __future__ import annotations

import logging
from typing import Any

from airflow.listeners import hookimpl  # noqa: TID253 - this package is where Airflow belongs

from dataflow_ops.airflow.object_store import use_connection
from dataflow_ops.airflow.places import home
from dataflow_ops.airflow.weights import is_ours

log = logging.getLogger(__name__)


MARKED = "its DAG run was marked success in Airflow before it was done; trigger it again"


@hookimpl
def on_dag_run_success(dag_run: Any, msg: str) -> None:
    """Called in the API server where somebody marks a run, in the scheduler where it ends by itself."""
    from dataflow_ops.errors import DataFlowError
    from dataflow_ops.pipeline.given_up import cancel_if_live

    if not is_ours(dag_run.dag_id) or not home().is_dir():
        return
    run_id = f"airflow-{dag_run.dag_id}-{dag_run.run_id}"
    try:
        use_connection()
        cancel_if_live(home(), run_id, MARKED)
    except DataFlowError as e:
        log.warning("run %s has ended, but that could not be recorded: %s", run_id, e)


@hookimpl
def on_dag_run_failed(dag_run: Any, msg: str) -> None:
    """Called in the API server where somebody marks a run, in the scheduler where its tasks failed."""
    from dataflow_ops.errors import DataFlowError
    from dataflow_ops.pipeline.given_up import give_up_run
    from dataflow_ops.pipeline.refusals import Refusal, lost
    from dataflow_ops.state.machine import LIVE_RUNS

    if not is_ours(dag_run.dag_id) or not home().is_dir():
        return
    run_id = f"airflow-{dag_run.dag_id}-{dag_run.run_id}"
    try:
        use_connection()
        why = "its run in Airflow ended as failed; clear it there to go on"
        give_up_run(home(), run_id, why, LIVE_RUNS)
        dataset, _, mode = dag_run.dag_id.rpartition("__")
        dry = bool((getattr(dag_run, "conf", None) or {}).get("dry_run"))
        lost(home(), Refusal(run_id, dataset, dataset, mode, dag_run.dag_id, dag_run.run_id, dry))
    except DataFlowError as e:
        log.warning("run %s has ended, but that could not be recorded: %s", run_id, e)
