"""The fence around a claim: a move happens only while the claim's epoch is still the task's.

Each move is one ``UPDATE … WHERE key, state, epoch … RETURNING``. A row comes back, or another attempt owns
the task. Row counts of drivers are never asked.
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from dataflow_ops.errors import LeaseLost
from dataflow_ops.state.database import Database
from dataflow_ops.state.machine import move
from dataflow_ops.state.tables import task
from dataflow_ops.values import Claim


def renew(connection: sa.Connection, db: Database, claim: Claim, **values: object) -> str:
    """Prolong the lease inside the caller's transaction; return the task's step.

    Raises:
        LeaseLost: the claim no longer holds.
    """
    row = connection.execute(
        sa.update(task)
        .where(*_fence(claim))
        .values(heartbeat_at=db.now, lease_until=db.now + task.c.lease_s, **values)
        .returning(task.c.step)
    ).one_or_none()
    if row is None:
        raise _lost(claim)
    step: str = row.step
    return step


def end(
    connection: sa.Connection, db: Database, claim: Claim, event: str, **values: object
) -> sa.Row[*tuple[Any, ...]]:
    """Take a RUNNING task where ``event`` leads, and set ``values``; return its step and partition.

    Raises:
        LeaseLost: the claim no longer holds.
    """
    row = connection.execute(
        sa.update(task)
        .where(*_fence(claim))
        .values(state=move("RUNNING", event), lease_until=None, ended_at=db.now, **values)
        .returning(task.c.step, task.c.partition)
    ).one_or_none()
    if row is None:
        raise _lost(claim)
    return row


def _fence(claim: Claim) -> tuple[sa.ColumnElement[bool], ...]:
    return task.c.key == claim.key, task.c.state == "RUNNING", task.c.epoch == claim.epoch


def _lost(claim: Claim) -> LeaseLost:
    return LeaseLost(f"task {claim.key}: epoch {claim.epoch} of {claim.owner} no longer holds it")
