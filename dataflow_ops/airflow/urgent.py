"""Makes a run urgent (or takes that back) that is already there: for the API server, which has a session."""

from __future__ import annotations

from typing import Any, Final

from dataflow_ops.airflow.steps import URGENT
from dataflow_ops.airflow.weights import is_ours, place
from dataflow_ops.errors import ConfigError

SLOTS: Final = 32
"""Of the pool, where nobody has made it. Its worker's concurrency is what bounds it in fact."""


def apply(session: Any, dag_id: str, run_id: str, urgent: bool) -> int:
    """Move what of a run has not begun yet to the urgent queue and pool, and ahead of all others, or back.

    The run's ``conf`` says so from now on, so that task instances made later follow. Running tasks stay where
    they are; those waiting in the executor keep their queue until they are tried again, and their pool, which
    counts slots by it.

    Args:
        session: Airflow's SQLAlchemy session; the caller commits.
        dag_id: id of a corpus's DAG.
        run_id: Airflow's id of the run.
        urgent: whether it goes first.

    Returns:
        Number of task instances that were moved.

    Raises:
        ConfigError: not a DAG of a corpus, or no such run.
    """
    import sqlalchemy as sa
    from airflow.models.dagrun import DagRun
    from airflow.models.taskinstance import TaskInstance
    from airflow.utils.state import TaskInstanceState

    if not is_ours(dag_id):
        raise ConfigError(f"'{dag_id}' is no DAG of a data set; only their runs can be urgent")
    found = sa.select(DagRun).where(DagRun.dag_id == dag_id, DagRun.run_id == run_id)
    run = session.scalars(found.with_for_update(of=DagRun)).one_or_none()
    if run is None:
        raise ConfigError(f"DAG '{dag_id}' has no run '{run_id}'")
    if urgent:
        ensure_pool(session)
    run.conf = {**(run.conf or {}), "priority": URGENT if urgent else "normal"}
    begun = (TaskInstanceState.QUEUED, TaskInstanceState.RUNNING, TaskInstanceState.RESTARTING)
    ended = (
        TaskInstanceState.SUCCESS,
        TaskInstanceState.FAILED,
        TaskInstanceState.SKIPPED,
        TaskInstanceState.UPSTREAM_FAILED,
        TaskInstanceState.REMOVED,
    )
    waiting = sa.select(TaskInstance).where(
        TaskInstance.dag_id == dag_id,
        TaskInstance.run_id == run_id,
        sa.or_(TaskInstance.state.is_(None), TaskInstance.state.not_in((*begun, *ended))),
    )
    moved = 0
    for instance in session.scalars(waiting.with_for_update(of=TaskInstance)):
        before = (instance.queue, instance.pool, instance.priority_weight)
        place(instance, urgent)
        moved += before != (instance.queue, instance.pool, instance.priority_weight)
    session.flush()
    return moved


def ensure_pool(session: Any) -> None:
    """Make the urgent pool where it is not there: Airflow never schedules a task of an unknown pool."""
    import sqlalchemy as sa
    from airflow.models.pool import Pool

    if session.scalar(sa.select(Pool.id).where(Pool.pool == URGENT)) is None:
        session.add(
            Pool(
                pool=URGENT,
                slots=SLOTS,
                description="Urgent runs of DataFlow",
                include_deferred=False,
            )
        )
        session.flush()
