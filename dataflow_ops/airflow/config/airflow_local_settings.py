"""Airflow's hook file, found on PYTHONPATH by every process of the stack."""

from __future__ import annotations

import gc
import importlib
import importlib.util
import os
import sys

__all__ = ["task_instance_mutation_hook"]

# Tasks are forked from the Celery worker: what is imported here is not imported once per task. Never Polars,
# numba or pyarrow: forked children that then use them hang.
_PRELOADED = (
    "airflow.sdk.execution_time.supervisor",
    "airflow.sdk.execution_time.task_runner",
    "airflow.providers.standard.operators.hitl",
    "dataflow_ops.airflow.operators",
    "dataflow_ops.airflow.dag_factory",
    "redis",
    "psycopg",
    "sqlalchemy.dialects.postgresql.psycopg",
    "dataflow_ops.state.store",
    "dataflow_ops.pipeline.home",
)

if sys.argv[1:3] == ["celery", "worker"]:
    for _name in _PRELOADED:
        importlib.import_module(_name)
    # What a child inherits lives as long as it does. Without this each one walks all of it at the first full
    # garbage collection, amid its imports, and so gets a copy of every page.
    os.register_at_fork(after_in_child=gc.freeze)

if importlib.util.find_spec("dataflow_ops.airflow.weights") is not None:
    from dataflow_ops.airflow.weights import task_instance_mutation_hook
else:
    __all__ = []
