"""Urgent runs go ahead of everything. Every Airflow process imports this by its local settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from dataflow_ops.airflow.steps import POOL, URGENT, queue_of

AHEAD: Final = 1_000_000
"""Added to the weight of an urgent run's tasks: above every sum of weights, and within a 32-bit integer."""
SUFFIXES: Final = ("__full", "__incremental")


def is_ours(dag_id: str) -> bool:
    """Whether a DAG is that of a corpus."""
    return dag_id.endswith(SUFFIXES)


def wants_urgent(conf: Mapping[str, Any] | None) -> bool:
    """Whether a run's configuration (the trigger form) asks to go first."""
    return (conf or {}).get("priority") == URGENT


def place(task_instance: Any, urgent: bool) -> None:
    """Give a task instance its queue, pool and weight. Doing it again changes nothing.

    Args:
        task_instance: Airflow's, or whatever has its ``task_id``, ``queue``, ``pool``, ``priority_weight``.
        urgent: whether its run goes first.
    """
    weight = task_instance.priority_weight or 1
    if urgent:
        task_instance.queue = task_instance.pool = URGENT
        task_instance.priority_weight = weight if weight >= AHEAD else weight + AHEAD
    elif task_instance.queue == URGENT or weight >= AHEAD:
        task_instance.queue, task_instance.pool = queue_of(task_instance.task_id), POOL
        task_instance.priority_weight = weight - AHEAD if weight >= AHEAD else weight


def task_instance_mutation_hook(task_instance: Any, dag_run: Any = None) -> None:
    """Airflow's cluster policy: called for every task instance as it is made, expanded or cleared.

    It follows the run's ``conf``, so that mapped tasks made after a run became urgent follow too. Airflow
    calls it first without a run, and then again with it. It must not touch the database.
    """
    if dag_run is not None and is_ours(task_instance.dag_id):
        place(task_instance, wants_urgent(dag_run.conf))
