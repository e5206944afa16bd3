"""Which tasks runs still want. Everything else may be cleared away.

Whoever clears away first takes the state, then the files, and holds the rows meanwhile: a run that wants the
same task again waits for the transaction, finds the task open, and makes it anew.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import sqlalchemy as sa

from dataflow_ops.state.database import LOCK_QUEUE, Database
from dataflow_ops.state.machine import LIVE_RUNS, move
from dataflow_ops.state.tables import (
    cursor,
    dataset_version,
    metric,
    rule_hit,
    run,
    run_task,
    task,
    task_output,
)
from dataflow_ops.state.versions import REMOVED

_FREE = ("PENDING", "CANCELLED", "FAILED", "DEAD")
"""States of a task that nobody works on and that has no outputs to rely on."""
_UNLINKED = ~sa.exists().where(run_task.c.task_key == task.c.key)


class Movable(NamedTuple):
    """A stored output that may be moved: where it lies, bytes, modification time, hex SHA-256."""

    uri: str
    size: int
    mtime_ns: int
    sha256: str


class Kept:
    """Tasks that are wanted, and the clearing away of others."""

    db: Database

    def forgettable_runs(self, older_than_s: float, without: Sequence[str] = ()) -> list[str]:
        """Ended runs that still hold tasks and need none: of no version that is kept, and not recent.

        The newest run of each data set and mode needs its tasks, so that the next one finds what is done.

        Args:
            older_than_s: seconds since the run's last move.
            without: count these versions as if they were removed (a rehearsal).
        """
        newest = (
            sa.select(
                run.c.run_id,
                sa.func.row_number()
                .over(
                    partition_by=(run.c.dataset, run.c.mode),
                    order_by=(run.c.created_at.desc(), run.c.run_id.desc()),
                )
                .label("place"),
            )
        ).subquery()
        kept = sa.select(dataset_version.c.run_id).where(
            dataset_version.c.state != REMOVED, ~self.db.among(dataset_version.c.version_id, without)
        )
        query = (
            sa.select(run.c.run_id)
            .join(newest, newest.c.run_id == run.c.run_id)
            .where(
                newest.c.place > 1,
                run.c.state.not_in(LIVE_RUNS),
                run.c.updated_at < self.db.now - older_than_s,
                run.c.run_id.not_in(kept),
                sa.exists().where(run_task.c.run_id == run.c.run_id),
            )
            .order_by(run.c.created_at, run.c.run_id)
        )
        with self.db.read() as connection:
            return list(connection.execute(query).scalars())

    def forget_tasks_of(self, run_id: str, older_than_s: float, steps: Sequence[str] | None = None) -> int:
        """Unlink an ended run from its tasks, unless it has moved again since; return from how many.

        Args:
            run_id: which.
            older_than_s: seconds since the run's last move.
            steps: only from finished tasks of these; None: from all tasks.
        """
        with self.db.write() as connection:
            self.db.lock(connection, LOCK_QUEUE)
            still = sa.select(run.c.run_id).where(
                run.c.run_id == run_id,
                run.c.state.not_in(LIVE_RUNS),
                run.c.updated_at < self.db.now - older_than_s,
            )
            if connection.execute(still.with_for_update()).scalar() is None:
                return 0
            gone = sa.delete(run_task).where(run_task.c.run_id == run_id)
            if steps is not None:
                done = sa.exists().where(task.c.key == run_task.c.task_key, task.c.state == "SUCCESS")
                gone = gone.where(run_task.c.step.in_(steps), done)
            return len(connection.execute(gone.returning(run_task.c.task_key)).all())

    def unwanted_tasks(self, older_than_s: float, forgotten: Sequence[str] = ()) -> list[str]:
        """Keys of tasks with stored outputs that no run holds, ended so long ago.

        Args:
            older_than_s: seconds since the task ended.
            forgotten: count these runs as if they held nothing (a rehearsal).
        """
        linked = sa.exists().where(run_task.c.task_key == task.c.key)
        if forgotten:
            linked = linked.where(~self.db.among(run_task.c.run_id, forgotten))
        query = (
            sa.select(task.c.key)
            .where(
                task.c.state.in_(("SUCCESS", *_FREE)),
                sa.func.coalesce(task.c.ended_at, task.c.created_at) < self.db.now - older_than_s,
                ~linked,
                sa.exists().where(task_output.c.task_key == task.c.key),
            )
            .order_by(task.c.key)
        )
        with self.db.read() as connection:
            return list(connection.execute(query).scalars())

    def open_unwanted(self, keys: Sequence[str]) -> int:
        """SUCCESS → PENDING for those of these tasks that no run holds: what is in state never lies.

        Returns:
            How many were moved.
        """
        with self.db.write() as connection:
            self.db.lock(connection, LOCK_QUEUE)
            moved = connection.execute(
                sa.update(task)
                .where(self.db.among(task.c.key, keys), task.c.state == "SUCCESS", _UNLINKED)
                .values(state=move("SUCCESS", "ghost"), attempt=0)
                .returning(task.c.key)
            ).all()
        return len(moved)

    @contextmanager
    def emptied_tasks(self, keys: Sequence[str]) -> Iterator[Mapping[str, Sequence[str]]]:
        """Hold those of these tasks that are open and that no run holds; their outputs' rows go at the end.

        Yields:
            Key → URIs of its outputs, to be deleted inside the block. Nobody can claim the tasks meanwhile;
            an error leaves their rows, so that the files are found again.
        """
        with self.db.write() as connection:
            self.db.lock(connection, LOCK_QUEUE)
            held = list(
                connection.execute(
                    sa.select(task.c.key)
                    .where(self.db.among(task.c.key, keys), task.c.state.in_(_FREE), _UNLINKED)
                    .order_by(task.c.key)
                    .with_for_update()
                ).scalars()
            )
            found: dict[str, list[str]] = {key: [] for key in held}
            of_held = self.db.among(task_output.c.task_key, held)
            for key, uri in connection.execute(
                sa.select(task_output.c.task_key, task_output.c.uri).where(of_held)
            ):
                found[key].append(uri)
            yield found
            for table in (task_output, metric, rule_hit):
                connection.execute(sa.delete(table).where(self.db.among(table.c.task_key, held)))
            connection.execute(sa.delete(cursor).where(self.db.among(cursor.c.task_id, held)))

    def stored_uris(self, key_prefix: str) -> set[str]:
        """URIs of all recorded outputs of tasks whose key begins so (hexadecimal digits)."""
        query = sa.select(task_output.c.uri).where(*_begins(key_prefix))
        with self.db.read() as connection:
            return set(connection.execute(query).scalars())

    def movable_outputs(
        self,
        key_prefix: str,
        kinds: Sequence[tuple[str, str]],
        older_than_s: float,
        not_of: Sequence[str] = (),
    ) -> list[Movable]:
        """Outputs of finished tasks that no live run holds, by URI.

        Args:
            key_prefix: hexadecimal digits with which the task's key begins.
            kinds: ``(step, kind)`` of the outputs.
            older_than_s: seconds since the task ended.
            not_of: none that these runs hold, either.
        """
        c = task_output.c
        held = sa.and_(run_task.c.task_key == task.c.key, run.c.run_id == run_task.c.run_id)
        wanted = sa.or_(run.c.state.in_(LIVE_RUNS), self.db.among(run.c.run_id, not_of))
        query = (
            sa.select(c.uri, c.size, c.mtime_ns, c.sha256)
            .join(task, task.c.key == c.task_key)
            .where(
                *_begins(key_prefix),
                sa.or_(*(sa.and_(task.c.step == step, c.kind == kind) for step, kind in kinds)),
                task.c.state == "SUCCESS",
                task.c.ended_at < self.db.now - older_than_s,
                ~sa.exists().where(held, wanted),
            )
            .order_by(c.uri)
        )
        with self.db.read() as connection:
            return [Movable(*row) for row in connection.execute(query)]

    def is_anything_live(self) -> bool:
        """Whether any run is planned, running or paused."""
        with self.db.read() as connection:
            query = sa.select(run.c.run_id).where(run.c.state.in_(LIVE_RUNS)).limit(1)
            return connection.execute(query).scalar() is not None

    def keys_at_work(self) -> list[str]:
        """Keys of tasks that somebody works on now."""
        with self.db.read() as connection:
            return list(connection.execute(sa.select(task.c.key).where(task.c.state == "RUNNING")).scalars())

    def keys_held(self, keys: Sequence[str]) -> set[str]:
        """Those of these tasks that a run holds."""
        query = sa.select(run_task.c.task_key).where(self.db.among(run_task.c.task_key, keys)).distinct()
        with self.db.read() as connection:
            return set(connection.execute(query).scalars())

    @contextmanager
    def removed_version(self, dataset: str, version_id: str) -> Iterator[bool]:
        """Hold a version while its files are deleted; False where it is not REMOVED (any more)."""
        c = dataset_version.c
        query: sa.Select[Any] = sa.select(c.state).where(c.dataset == dataset, c.version_id == version_id)
        with self.db.write() as connection:
            yield connection.execute(query.with_for_update()).scalar() == REMOVED


def _begins(key_prefix: str) -> list[sa.ColumnElement[bool]]:
    key = task_output.c.task_key
    after = f"{int(key_prefix, 16) + 1:0{len(key_prefix)}x}"
    return [key >= key_prefix, *([key < after] if len(after) == len(key_prefix) else [])]
