"""What runs want: tasks put in, and taken out again when a run is cancelled."""

from __future__ import annotations

from collections.abc import Sequence

import sqlalchemy as sa

from dataflow_ops.errors import StateError
from dataflow_ops.state.database import LOCK_QUEUE, Database, no_collections
from dataflow_ops.state.machine import LIVE_RUNS, OPEN_TASKS, move
from dataflow_ops.state.pauses import wanted_by_others
from dataflow_ops.state.runs import move_run
from dataflow_ops.state.tables import run, run_task, task
from dataflow_ops.state.task_events import tell_all
from dataflow_ops.state.totals import totals_void
from dataflow_ops.state.upsert import insert_missing, upsert
from dataflow_ops.values import TaskSpec


class WorkQueue:
    """Tasks by run. A task is shared by all runs that want the same key."""

    db: Database

    def enqueue(self, run_id: str, specs: Sequence[TaskSpec]) -> None:
        """Make sure that these tasks exist and belong to the run. Doing it again changes nothing.

        New tasks are PENDING; cancelled ones are PENDING again; whatever else a task is, it stays. A
        partition of a step that had another key in this run belongs to the new key from now on.

        Args:
            run_id: the run that wants them.
            specs: in the order in which the run lists them.

        Raises:
            StateError: no such run, or it is cancelled.
        """
        if not specs:
            return
        with no_collections(), self.db.write() as connection:
            self.db.lock(connection, LOCK_QUEUE)
            state = connection.execute(sa.select(run.c.state).where(run.c.run_id == run_id)).scalar()
            if state is None or state == "CANCELLED":
                raise StateError(f"run {run_id} " + ("is cancelled" if state else "does not exist"))
            now = connection.execute(sa.select(self.db.now)).scalar_one()
            linked = _links(connection, run_id, {spec.step for spec in specs})
            new = [
                (i, spec)
                for i, spec in enumerate(specs)
                if linked.get((spec.step, spec.partition)) != (spec.key, i)
            ]
            known = self._known(connection, [spec.key for _, spec in new])
            unknown = {spec.key: spec for _, spec in new if spec.key not in known}
            insert_missing(connection, task, [_new(spec, now) for spec in unknown.values()])
            # Nobody else links meanwhile: what was not there a moment ago needs no second look.
            fresh = [(i, spec) for i, spec in new if (spec.step, spec.partition) not in linked]
            moved = [(i, spec) for i, spec in new if (spec.step, spec.partition) in linked]
            insert_missing(connection, run_task, [_link(run_id, i, spec) for i, spec in fresh])
            upsert(connection, run_task, [_link(run_id, i, spec) for i, spec in moved])
            wanted_again = connection.execute(
                sa.update(task)
                .where(task.c.state == "CANCELLED", self.db.among(task.c.key, [s.key for s in specs]))
                .values(state=move("CANCELLED", "enqueue"), attempt=0)
                .returning(task.c.key, task.c.step, task.c.partition)
            ).all()
            waiting = [(spec.key, spec.step, spec.partition) for spec in unknown.values()]
            waiting += [(row.key, row.step, row.partition) for row in wanted_again]
            tell_all(connection, self.db, "task.pending", run_id, waiting)
            changed = {spec.step for _, spec in new} | {row.step for row in wanted_again}
            totals_void(connection, run_id, sorted(changed))

    def _known(self, connection: sa.Connection, keys: Sequence[str]) -> set[str]:
        if not keys:
            return set()
        query = sa.select(task.c.key).where(self.db.among(task.c.key, sorted(keys)))
        return set(connection.execute(query).scalars())

    def keep_partitions(self, run_id: str, step: str, partitions: Sequence[str]) -> int:
        """Unlink a step's other partitions from the run: its sources changed since it listed them before.

        Returns:
            How many were unlinked. Their tasks stay, for other runs.
        """
        c = run_task.c
        with self.db.write() as connection:
            gone = connection.execute(
                sa.delete(run_task)
                .where(c.run_id == run_id, c.step == step, ~self.db.among(c.partition, partitions))
                .returning(c.partition)
            ).all()
            if gone:
                totals_void(connection, run_id, [step])
        return len(gone)

    def cancel(self, run_id: str, detail: str | None = None) -> int:
        """Cancel a run and those of its open tasks that no other live run wants.

        Whoever works on one of them gets ``LeaseLost`` at the next heartbeat.

        Returns:
            How many tasks were cancelled.

        Raises:
            IllegalMove: the run has ended.
            StateError: no such run.
        """
        other = sa.select(sa.literal(1)).where(
            run_task.c.task_key == task.c.key,
            run_task.c.run_id != run_id,
            run.c.run_id == run_task.c.run_id,
            run.c.state.in_(LIVE_RUNS),
        )
        mine = sa.select(run_task.c.task_key).where(run_task.c.run_id == run_id)
        with self.db.write() as connection:
            self.db.lock(connection, LOCK_QUEUE)
            move_run(connection, self.db, run_id, "cancel", detail)
            cancelled = connection.execute(
                sa.update(task)
                .where(task.c.state.in_(OPEN_TASKS), task.c.key.in_(mine), ~other.exists())
                .values(state="CANCELLED", epoch=task.c.epoch + 1, owner=None, lease_until=None)
                .returning(task.c.key, task.c.step, task.c.partition)
            ).all()
            gone = [(row.key, row.step, row.partition) for row in cancelled]
            tell_all(connection, self.db, "task.cancelled", run_id, gone)
        return len(cancelled)

    def wanted_elsewhere(self, key: str, run_id: str) -> bool:
        """Whether another live run that nobody paused wants this task too."""
        with self.db.read() as connection:
            return wanted_by_others(connection, key, run_id)


def _links(connection: sa.Connection, run_id: str, steps: set[str]) -> dict[tuple[str, str], tuple[str, int]]:
    c = run_task.c
    query = sa.select(c.step, c.partition, c.task_key, c.ordinal).where(
        c.run_id == run_id, c.step.in_(sorted(steps))
    )
    return {(step, part): (key, i) for step, part, key, i in connection.execute(query)}


def _link(run_id: str, ordinal: int, spec: TaskSpec) -> dict[str, object]:
    return {
        "run_id": run_id,
        "step": spec.step,
        "partition": spec.partition,
        "task_key": spec.key,
        "ordinal": ordinal,
    }


def _new(spec: TaskSpec, now: float) -> dict[str, object]:
    return {
        "key": spec.key,
        "step": spec.step,
        "layer": spec.layer,
        "partition": spec.partition,
        "state": "PENDING",
        "attempt": 0,
        "epoch": 0,
        "cursor_moved": False,
        "created_at": now,
    }
