"""Airflow's hook file, found on PYTHONPATH by every process of the stack."""

from __future__ import annotations

import gc
import importlib
import importlib.util
import os
import sys

__all__ = ["task_instance_mutation_hook"]

# Tasks are forked from the Celery worker: what is imported here is not imported once per task.
_PRELOADED = (
    "airflow.sdk.execution_time.supervisor",
    "airflow.sdk.execution_time.task_runner",
    "airflow.providers.standard.operators.hitl",
    "dataflow_ops.airflow.operators",
    "dataflow_ops.airflow.dag_factory",
    "redis",
    "psycopg",
    "sqlalchemy.dialects.postgresql.psycopg",
    "pyarrow.compute",
    "pyarrow.parquet",
    "dataflow_ops.pipeline.bundles",
    "dataflow_ops.pipeline.driver",
)
# A process with one thread may be forked at any moment: no other can hold a lock that the child would wait
# for. So what is imported must start none, or tasks hang. Polars has no such switch, and is not imported.
_NO_THREADS = {"OPENBLAS_NUM_THREADS": "1", "JE_ARROW_MALLOC_CONF": "background_thread:false"}

if sys.argv[1:3] == ["celery", "worker"]:
    os.environ.update(_NO_THREADS)
    for _name in _PRELOADED:
        importlib.import_module(_name)
    importlib.import_module("dataflow_ops.kernels.warm").load()
    # What a child inherits lives as long as it does. Without this each one walks all of it at the first full
    # garbage collection, amid its imports, and so gets a copy of every page.
    os.register_at_fork(after_in_child=gc.freeze)

if importlib.util.find_spec("dataflow_ops.airflow.weights") is not None:
    from dataflow_ops.airflow.weights import task_instance_mutation_hook
else:
    __all__ = []
