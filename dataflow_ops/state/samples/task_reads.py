"""Looking at sample tasks."""

from __future__ import annotations

import json
from typing import Any

import sqlalchemy as sa

from dataflow_ops.errors import StateError
from dataflow_ops.state import cursors
from dataflow_ops.state.database import Database
from dataflow_ops.state.records import CursorRecord
from dataflow_ops.state.sample_tables import sample_task
from dataflow_ops.state.samples.records import CURSOR_TYPE, SampleTask

_c = sample_task.c


class SampleTaskReads:
    """Sample tasks as they stand."""

    db: Database

    def sample_task(self, task_id: str) -> SampleTask:
        """One task as it stands.

        Raises:
            StateError: there is no such task.
        """
        with self.db.read() as connection:
            return self._one(connection, task_id)

    def sample_tasks(
        self, dataset: str | None = None, kind: str | None = None, state: str | None = None, limit: int = 100
    ) -> list[SampleTask]:
        """Tasks, newest first.

        Args:
            dataset: of one data set only.
            kind: of one kind only.
            state: in one state only.
            limit: at most so many.
        """
        query = self._select().order_by(_c.created_at.desc(), _c.task_id).limit(limit)
        for column, value in ((_c.dataset, dataset), (_c.kind, kind), (_c.state, state)):
            if value is not None:
                query = query.where(column == value)
        with self.db.read() as connection:
            return [_task(row) for row in connection.execute(query)]

    def sample_cursor(self, task_id: str) -> CursorRecord | None:
        """Where a task stands; None where nothing was done yet.

        Raises:
            StateError: there is no such task.
        """
        with self.db.read() as connection:
            return cursors.read(connection, task_id, self._one(connection, task_id).kind, CURSOR_TYPE)

    def _select(self) -> sa.Select[*tuple[Any, ...]]:
        late = sa.and_(_c.state == "RUNNING", sa.func.coalesce(_c.lease_until, 0.0) <= self.db.now)
        return sa.select(
            *(late.label("silent") if name == "silent" else _c[name] for name in SampleTask.__slots__)
        )

    def _one(self, connection: sa.Connection, task_id: str) -> SampleTask:
        row = connection.execute(self._select().where(_c.task_id == task_id)).one_or_none()
        if row is None:
            raise StateError(f"there is no sample task {task_id}; 'dataflow samples tasks' lists them")
        return _task(row)


def _task(row: sa.Row[*tuple[Any, ...]]) -> SampleTask:
    values = dict(row._mapping)
    values["settings"] = json.loads(values["settings"])
    values["files"] = tuple(json.loads(values["files"]))
    values["counts"] = json.loads(values["counts"])
    values["silent"] = bool(values["silent"])
    return SampleTask(**values)
