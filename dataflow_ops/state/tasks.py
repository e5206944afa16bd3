"""One task's life: claim, heartbeat, checkpoint, and how it ends. Every move is one compare-and-set.

A claim raises the task's epoch; each later move names the epoch and gets its row back (``RETURNING``), or
nothing, which means that another attempt owns the task. Row counts of drivers are never asked.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import sqlalchemy as sa

from dataflow_ops.errors import StateError
from dataflow_ops.state import cursors
from dataflow_ops.state.database import Database, dump
from dataflow_ops.state.fence import end, renew
from dataflow_ops.state.letters import chunk_letter, revive_task
from dataflow_ops.state.machine import move, sources
from dataflow_ops.state.records import CursorRecord
from dataflow_ops.state.tables import task
from dataflow_ops.state.task_events import tell
from dataflow_ops.state.totals import totals_void_of_task
from dataflow_ops.values import Claim

_CLAIMABLE = frozenset(sources("claim"))
_MAX_MESSAGE = 4_000
_MAX_TRACE = 20_000


class Tasks:
    """Moves of single tasks."""

    db: Database

    def claim(
        self, key: str, owner: str, lease_s: float = 60.0, max_attempts: int | None = None
    ) -> Claim | None:
        """Take a task that is waiting, or whose holder has been silent for longer than its lease.

        A failed or new task uses an attempt, a paused one none, a silent one only if its cursor had not
        moved since it was claimed.

        Args:
            key: which task.
            owner: who asks (host and process id).
            lease_s: seconds of silence after which others may take the task.
            max_attempts: with it, a task that would need one more attempt than this becomes DEAD instead
                (a chunk that kills its worker each time would be tried for ever).

        Returns:
            The claim, or ``None``: somebody else has it, it is done, dead or cancelled.

        Raises:
            StateError: there is no such task.
        """
        expired = sa.and_(task.c.lease_until.is_not(None), task.c.lease_until <= self.db.now)
        query = sa.select(
            task.c.state,
            task.c.epoch,
            task.c.attempt,
            task.c.cursor_moved,
            task.c.owner,
            sa.func.coalesce(expired, sa.false()).label("expired"),
        ).where(task.c.key == key)
        with self.db.write() as connection:
            row = connection.execute(query).one_or_none()
            if row is None:
                raise StateError(f"there is no task {key}")
            silent = row.state == "RUNNING" and bool(row.expired)
            if row.state not in _CLAIMABLE and not silent:
                return None
            free = row.state == "PAUSED" or (silent and row.cursor_moved)
            attempt: int = row.attempt + (0 if free else 1)
            held = sa.and_(task.c.key == key, task.c.state == row.state, task.c.epoch == row.epoch)
            if silent:
                held = sa.and_(held, expired)
            if max_attempts is not None and attempt > max_attempts and row.state != "PENDING":
                self._bury(connection, key, row.state, held, row.owner)
                return None
            first = task.c.started_at if row.state != "PENDING" else sa.null()
            claimed = connection.execute(
                sa.update(task)
                .where(held)
                .values(
                    state=move(row.state, "reclaim" if silent else "claim"),
                    epoch=row.epoch + 1,
                    attempt=attempt,
                    owner=owner,
                    lease_s=lease_s,
                    lease_until=self.db.now + lease_s,
                    heartbeat_at=self.db.now,
                    started_at=sa.func.coalesce(first, self.db.now),
                    ended_at=None,
                    progress=None,
                    cursor_moved=False,
                )
                .returning(task.c.epoch, task.c.step, task.c.partition)
            ).one_or_none()
            if claimed is None:
                return None
            told = {"from": row.state, "step": claimed.step, "partition": claimed.partition}
            tell(
                connection, self.db, "task.running", key, {**told, "attempt": attempt, "epoch": claimed.epoch}
            )
        return Claim(key, claimed.epoch, attempt, owner)

    def _bury(
        self,
        connection: sa.Connection,
        key: str,
        state: str,
        held: sa.ColumnElement[bool],
        owner: str | None,
    ) -> None:
        values: dict[str, Any] = {
            "state": move(state, "exhaust"),
            "ended_at": self.db.now,
            "lease_until": None,
        }
        if state == "RUNNING":
            values |= {
                "epoch": task.c.epoch + 1,
                "error_type": "WorkerDied",
                "error_message": f"{owner} fell silent, and no attempt is left",
                "error_trace": None,
            }
        buried = connection.execute(
            sa.update(task)
            .where(held)
            .values(**values)
            .returning(task.c.step, task.c.partition, task.c.error_type, task.c.error_message)
        ).one_or_none()
        if buried is not None:
            chunk_letter(connection, self.db, key, *buried)

    def heartbeat(self, claim: Claim, progress: Mapping[str, object] | None = None) -> None:
        """Renew the lease.

        Args:
            claim: from :meth:`claim`.
            progress: shown to whoever watches; ``None`` leaves what was there.

        Raises:
            LeaseLost: another attempt owns the task, or it was cancelled.
        """
        values = {} if progress is None else {"progress": dump(progress)}
        with self.db.write() as connection:
            renew(connection, self.db, claim, **values)

    def checkpoint(
        self,
        claim: Claim,
        offset: int,
        processed_rows: int,
        detail: Mapping[str, object] | None = None,
        file_id: str | None = None,
    ) -> None:
        """Save how far the task got, and renew the lease.

        Args:
            claim: from :meth:`claim`.
            offset: first row (or byte, or sub-range) that is not yet staged.
            processed_rows: rows done so far.
            detail: what else the next attempt needs (names of staged files).
            file_id: file in which the offset counts, where there are several.

        Raises:
            LeaseLost: another attempt owns the task, or it was cancelled; the cursor is untouched.
        """
        at = CursorRecord(file_id, offset, processed_rows, detail or {})
        with self.db.write() as connection:
            step = renew(connection, self.db, claim)
            if cursors.write(connection, self.db, claim.key, step, cursors.CORPUS, at):
                connection.execute(sa.update(task).where(task.c.key == claim.key).values(cursor_moved=True))

    def read_cursor(self, key: str) -> CursorRecord | None:
        """Where the task stands; ``None`` where nothing is staged."""
        with self.db.read() as connection:
            step = connection.execute(sa.select(task.c.step).where(task.c.key == key)).scalar()
            return None if step is None else cursors.read(connection, key, step, cursors.CORPUS)

    def pause_task(
        self,
        claim: Claim,
        offset: int,
        processed_rows: int = 0,
        detail: Mapping[str, object] | None = None,
        file_id: str | None = None,
    ) -> None:
        """Save the cursor and give the task back as PAUSED, in one transaction. Uses no attempt.

        Raises:
            LeaseLost: another attempt owns the task, or it was cancelled; nothing was written.
        """
        at = CursorRecord(file_id, offset, processed_rows, detail or {})
        with self.db.write() as connection:
            row = end(connection, self.db, claim, "pause")
            cursors.write(connection, self.db, claim.key, row.step, cursors.CORPUS, at)
            told = {"step": row.step, "partition": row.partition, "offset": offset}
            tell(connection, self.db, "task.paused", claim.key, told)

    def fail(
        self, claim: Claim, error_type: str, message: str, trace: str, max_attempts: int
    ) -> Literal["FAILED", "DEAD"]:
        """The attempt failed. With no attempt left the task is DEAD and a letter of level ``chunk`` is open.

        Args:
            claim: from :meth:`claim`.
            error_type: class name.
            message: for a person.
            trace: the stack; its end is kept.
            max_attempts: attempts in all.

        Raises:
            LeaseLost: another attempt owns the task, or it was cancelled; nothing was written.
        """
        last = claim.attempt >= max_attempts
        with self.db.write() as connection:
            row = end(
                connection,
                self.db,
                claim,
                "exhaust" if last else "fail",
                error_type=error_type[:80],
                error_message=message[:_MAX_MESSAGE],
                error_trace=trace[-_MAX_TRACE:],
            )
            if last:
                chunk_letter(connection, self.db, claim.key, row.step, row.partition, error_type, message)
            else:
                told = {"step": row.step, "partition": row.partition, "attempt": claim.attempt}
                why = {"error": error_type[:80], "message": message[:500]}
                tell(connection, self.db, "task.failed", claim.key, {**told, **why})
        return "DEAD" if last else "FAILED"

    def ghost(self, key: str, epoch: int | None = None) -> bool:
        """SUCCESS → PENDING because an output is gone. Its record stays until the next commit replaces it.

        Args:
            key: which task.
            epoch: of the record that was checked; where it has changed since, nothing happens.

        Returns:
            Whether the task was moved.
        """
        where = [task.c.key == key, task.c.state == "SUCCESS"]
        if epoch is not None:
            where.append(task.c.epoch == epoch)
        with self.db.write() as connection:
            moved = connection.execute(
                sa.update(task)
                .where(*where)
                .values(state=move("SUCCESS", "ghost"), attempt=0)
                .returning(task.c.step, task.c.partition)
            ).one_or_none()
            if moved is not None:
                totals_void_of_task(connection, key)
                told = {"step": moved.step, "partition": moved.partition}
                tell(connection, self.db, "task.ghost", key, told)
        return moved is not None

    def revive(self, key: str) -> bool:
        """DEAD → PENDING with all attempts anew; return whether the task was dead."""
        with self.db.write() as connection:
            return revive_task(connection, self.db, key)

    def running_owners(self) -> list[str]:
        """Who holds tasks now."""
        query = sa.select(task.c.owner).where(task.c.state == "RUNNING").distinct().order_by(task.c.owner)
        with self.db.read() as connection:
            return [owner for (owner,) in connection.execute(query) if owner is not None]

    def expire_leases(self, owner: str) -> int:
        """End the leases of an owner that is known to be dead, so that nobody waits for them.

        Returns:
            How many tasks it held. They stay RUNNING until somebody claims them.
        """
        with self.db.write() as connection:
            expired = connection.execute(
                sa.update(task)
                .where(task.c.state == "RUNNING", task.c.owner == owner)
                .values(lease_until=0.0)
                .returning(task.c.key)
            ).all()
        return len(expired)
