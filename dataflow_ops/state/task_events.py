"""Events of tasks: ``task.<state>``, written in the transaction that moves the task."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import sqlalchemy as sa

from dataflow_ops.state.database import Database
from dataflow_ops.state.machine import LIVE_RUNS
from dataflow_ops.state.outbox import emit, emit_all
from dataflow_ops.state.tables import run, run_task


def tell(
    connection: sa.Connection, db: Database, topic: str, key: str, payload: Mapping[str, object]
) -> None:
    """Add the event of one task, with the live runs that want it now."""
    query = (
        sa.select(run.c.run_id)
        .join(run_task, run_task.c.run_id == run.c.run_id)
        .where(run_task.c.task_key == key, run.c.state.in_(LIVE_RUNS))
        .distinct()
        .order_by(run.c.run_id)
    )
    runs = list(connection.execute(query).scalars())
    emit(connection, db, topic, key, {**payload, "runs": runs})


def tell_all(
    connection: sa.Connection, db: Database, topic: str, run_id: str, tasks: Iterable[tuple[str, str, str]]
) -> None:
    """Add the events of many tasks of one run, each given as (key, step, partition)."""
    emit_all(
        connection,
        db,
        topic,
        [
            (key, {"step": step, "partition": partition, "runs": [run_id]})
            for key, step, partition in sorted(tasks)
        ],
    )
