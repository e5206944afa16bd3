"""A sample task's life: asked for, claimed, moved on batch by batch, and how it ends.

Every move names the epoch of the claim and happens in one transaction with the cursor and the event for the
outside. A pause is a state of its own: it is neither a failure nor a success, and it costs no attempt.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

import sqlalchemy as sa

from dataflow_ops.errors import ConfigError, LeaseLost
from dataflow_ops.state import cursors
from dataflow_ops.state.database import LOCK_CLEAN, Database, dump
from dataflow_ops.state.machine import move
from dataflow_ops.state.outbox import emit
from dataflow_ops.state.records import CursorRecord
from dataflow_ops.state.sample_tables import sample_task
from dataflow_ops.state.samples.guardrails import check_end, check_ready, snapshot
from dataflow_ops.state.samples.records import CURSOR_TYPE, KINDS, LOCK_SAMPLES, Claim, SampleTask
from dataflow_ops.state.samples.task_reads import SampleTaskReads

_c = sample_task.c
_MAX_MESSAGE: Final = 4_000
_MAX_ID: Final = 200


class SampleTasks(SampleTaskReads):
    """Moves of sample tasks."""

    db: Database

    def create_task(
        self,
        task_id: str,
        dataset: str,
        kind: str,
        settings: Mapping[str, Any],
        files: Sequence[str],
        who: str,
    ) -> SampleTask:
        """Ask for a task. The same id, settings and files are the same task; a cancelled one waits again.

        Args:
            task_id: at most 200 characters.
            dataset: whose files it works on.
            kind: ``import``, ``clean``, ``augment``, ``export``, ``delete`` or ``restore``.
            settings: JSON-able, all that decides the result.
            files: ids in the order in which they are read.
            who: name of the person or service.

        Raises:
            ConfigError: unknown kind, no files, an id too long, or the id belongs to another task.
        """
        if kind not in KINDS:
            raise ConfigError(f"kind {kind!r} of a sample task: use one of {', '.join(KINDS)}")
        if not 0 < len(task_id) <= _MAX_ID:
            raise ConfigError(f"the id of a sample task has 1 to {_MAX_ID} characters, not {len(task_id)}")
        if not files:
            raise ConfigError(
                f"task {task_id}: data set {dataset!r} has no files to work on; import some first"
            )
        if len(set(files)) != len(files):
            raise ConfigError(f"task {task_id}: a file comes twice in its list")
        wanted = (dataset, kind, dump(settings), dump(list(files)))
        values = {
            "task_id": task_id,
            "dataset": dataset,
            "kind": kind,
            "state": "PENDING",
            "settings": wanted[2],
            "files": wanted[3],
            "counts": "{}",
            "attempt": 0,
            "epoch": 0,
            "who": who,
        }
        with self.db.write() as connection:
            self.db.lock(connection, LOCK_SAMPLES)
            row = connection.execute(
                sa.select(_c.dataset, _c.kind, _c.settings, _c.files, _c.state).where(_c.task_id == task_id)
            ).one_or_none()
            if row is None:
                connection.execute(
                    sa.insert(sample_task).values(**values, created_at=self.db.now, updated_at=self.db.now)
                )
                emit(connection, self.db, "sample_task.pending", task_id, {"kind": kind, "dataset": dataset})
            elif tuple(row)[:4] != wanted:
                what = [n for n, a, b in zip(_IDENTITY, row, wanted, strict=False) if a != b]
                raise ConfigError(
                    f"there is a sample task {task_id} whose {' and '.join(what)} differ: take another id"
                )
            elif row.state == "CANCELLED":
                self._move(connection, task_id, "CANCELLED", "enqueue", ended_at=None, error_message=None)
                emit(connection, self.db, "sample_task.pending", task_id, {"kind": kind, "dataset": dataset})
        return self.sample_task(task_id)

    def claim_task(self, task_id: str, owner: str, lease_s: float = 60.0) -> Claim:
        """Take a task that waits, failed or was paused, or whose owner has been silent beyond its lease.

        At the first claim the snapshot is taken: the highest key of ``sample`` and the rows of the task's
        files up to it. Whatever is written later is not read by this task.

        Args:
            task_id: which.
            owner: who asks (host and process id).
            lease_s: seconds of silence after which others may take it.

        Raises:
            LeaseLost: another owner holds it; or it is a clean-up, and its data set is being cleaned.
            IllegalMove: it is done or cancelled.
            StateError: no such task, or a file of it is not ready.
        """
        with self.db.write() as connection:
            # The row stays locked: of many who ask at once the second sees what the first has done.
            connection.execute(sa.select(_c.epoch).where(_c.task_id == task_id).with_for_update())
            task = self._one(connection, task_id)
            if task.state == "RUNNING" and not task.silent:
                raise LeaseLost(
                    f"sample task {task_id} is held by {task.owner}, who is alive; wait or pause it"
                )
            if task.kind == "clean":
                self._alone(connection, task)
            state = move(task.state, "reclaim" if task.silent else "claim")
            values: dict[str, Any] = {
                "state": state,
                "epoch": task.epoch + 1,
                "attempt": task.attempt + (0 if task.state == "PAUSED" else 1),
                "owner": owner,
                "lease_until": self.db.now + lease_s,
                "started_at": sa.func.coalesce(_c.started_at, self.db.now),
                "ended_at": None,
                "error_type": None,
                "error_message": None,
                "updated_at": self.db.now,
            }
            if task.kind != "import":
                check_ready(connection, self.db, task)
                if task.highest_id is None:
                    values["highest_id"], values["snapshot_rows"] = snapshot(connection, self.db, task.files)
            connection.execute(sa.update(sample_task).where(_c.task_id == task_id).values(**values))
            emit(
                connection,
                self.db,
                "sample_task.running",
                task_id,
                self._told(task, attempt=values["attempt"]),
            )
            task = self._one(connection, task_id)
            at = cursors.read(connection, task_id, task.kind, CURSOR_TYPE)
        return Claim(task, task.epoch, owner, lease_s, at)

    def _alone(self, connection: sa.Connection, task: SampleTask) -> None:
        """One clean-up of a data set at a time: two would each keep what the other takes for a duplicate."""
        self.db.lock(connection, LOCK_CLEAN)
        query = self._select().where(
            _c.dataset == task.dataset,
            _c.kind == task.kind,
            _c.state == "RUNNING",
            _c.task_id != task.task_id,
            _c.lease_until > self.db.now,
        )
        other = connection.execute(query.limit(1)).one_or_none()
        if other is not None:
            raise LeaseLost(
                f"{other.task_id} is cleaning data set {task.dataset} ({other.owner}): wait for its end, or"
                " pause it"
            )

    def beat(self, task_id: str, epoch: int, lease_s: float) -> None:
        """Renew a lease.

        Raises:
            LeaseLost: another attempt owns the task, or it was cancelled.
        """
        with self.db.write() as connection:
            row = connection.execute(
                sa.update(sample_task)
                .where(*_fence(task_id, epoch))
                .values(lease_until=self.db.now + lease_s, updated_at=self.db.now)
                .returning(_c.epoch)
            ).one_or_none()
        if row is None:
            raise _lost(task_id, epoch)

    def hold(self, connection: sa.Connection, claim: Claim) -> None:
        """Lock the task's row until this transaction ends: to be called before its rows are written.

        Raises:
            LeaseLost: another attempt owns the task, or it was cancelled.
        """
        self._held(connection, claim)

    def progress(
        self, connection: sa.Connection, claim: Claim, cursor: CursorRecord, counts: Mapping[str, float]
    ) -> None:
        """Add counts, write the cursor and renew the lease, in the caller's transaction.

        Args:
            connection: in the transaction that wrote the rows of the batch.
            claim: from :meth:`claim_task`.
            cursor: file, records done of it, turns done in all.
            counts: of this batch alone.

        Raises:
            LeaseLost: another attempt owns the task: the caller's transaction must not be committed.
            EndlessRead: more rows were processed than there were when the task began, or the file that it
                updates grew meanwhile.
        """
        before = self._held(connection, claim)
        check_end(connection, claim.task, cursor)
        connection.execute(
            sa.update(sample_task)
            .where(_c.task_id == claim.task.task_id)
            .values(
                counts=dump(_added(before, counts)),
                lease_until=self.db.now + claim.lease_s,
                updated_at=self.db.now,
            )
        )
        cursors.write(connection, self.db, claim.task.task_id, claim.task.kind, CURSOR_TYPE, cursor)

    def pause_task(
        self,
        claim: Claim,
        cursor: CursorRecord | None,
        counts: Mapping[str, float] | None = None,
        why: str = "",
    ) -> None:
        """Save the cursor and give the task back as PAUSED, with the event, in one transaction.

        Args:
            claim: from :meth:`claim_task`.
            cursor: where to go on; None where nothing was done yet.
            counts: what is not yet added.
            why: for people; kept as the task's message until it goes on.

        Raises:
            LeaseLost: another attempt owns the task; nothing was written.
        """
        with self.db.write() as connection:
            if cursor is not None:
                self.progress(connection, claim, cursor, counts or {})
            at = {} if cursor is None else {"file": cursor.file_id, "offset": cursor.offset}
            told = {**at, "why": why} if why else at
            self._end(connection, claim, "pause", told, error_message=why[:_MAX_MESSAGE] or None)

    def finish_task(self, claim: Claim, counts: Mapping[str, float] | None = None) -> None:
        """The task has done all that it was to do: SUCCESS, with the event, in one transaction.

        Raises:
            LeaseLost: another attempt owns the task; nothing was written.
        """
        with self.db.write() as connection:
            self.finish_in(connection, claim, counts)

    def finish_in(
        self, connection: sa.Connection, claim: Claim, counts: Mapping[str, float] | None = None
    ) -> None:
        """:meth:`finish_task` inside the caller's transaction."""
        total = _added(self._held(connection, claim), counts or {})
        self._end(connection, claim, "commit", {"counts": total}, counts=dump(total))

    def fail_task(
        self, claim: Claim, error: BaseException, counts: Mapping[str, float] | None = None
    ) -> None:
        """The attempt failed; the next claim goes on from the cursor.

        Args:
            claim: from :meth:`claim_task`.
            error: why.
            counts: what is not yet added.

        Raises:
            LeaseLost: another attempt owns the task; nothing was written.
        """
        kind, message = type(error).__name__[:80], str(error)[:_MAX_MESSAGE]
        with self.db.write() as connection:
            told = {"error": kind, "message": message}
            total = _added(self._held(connection, claim), counts or {})
            self._end(
                connection, claim, "fail", told, error_type=kind, error_message=message, counts=dump(total)
            )

    def cancel_task(self, task_id: str, who: str) -> None:
        """Give a task up. Whoever works on it learns it at the next write; what it wrote stays.

        Raises:
            IllegalMove: it is done or cancelled already.
            StateError: there is no such task.
        """
        with self.db.write() as connection:
            connection.execute(sa.select(_c.epoch).where(_c.task_id == task_id).with_for_update())
            task = self._one(connection, task_id)
            self._move(
                connection,
                task_id,
                task.state,
                "cancel",
                epoch=task.epoch + 1,
                lease_until=None,
                ended_at=self.db.now,
                error_message=f"cancelled by {who or 'somebody'}",
            )
            emit(connection, self.db, "sample_task.cancelled", task_id, self._told(task, who=who))

    def _end(
        self,
        connection: sa.Connection,
        claim: Claim,
        event: str,
        told: Mapping[str, object],
        **values: object,
    ) -> None:
        self._held(connection, claim)
        state = self._move(
            connection,
            claim.task.task_id,
            "RUNNING",
            event,
            lease_until=None,
            ended_at=self.db.now,
            **values,
        )
        emit(
            connection,
            self.db,
            f"sample_task.{state.lower()}",
            claim.task.task_id,
            self._told(claim.task, **told),
        )

    def _move(self, connection: sa.Connection, task_id: str, state: str, event: str, **values: object) -> str:
        """Move a task whose row is locked."""
        after = move(state, event)
        connection.execute(
            sa.update(sample_task)
            .where(_c.task_id == task_id)
            .values(state=after, updated_at=self.db.now, **values)
        )
        return after

    def _held(self, connection: sa.Connection, claim: Claim) -> str:
        """Lock the task's row; its counts."""
        row = connection.execute(
            sa.select(_c.counts).where(*_fence(claim.task.task_id, claim.epoch)).with_for_update()
        ).one_or_none()
        if row is None:
            raise _lost(claim.task.task_id, claim.epoch)
        counts: str = row.counts
        return counts

    @staticmethod
    def _told(task: SampleTask, **more: object) -> dict[str, object]:
        return {"kind": task.kind, "dataset": task.dataset, **more}


_IDENTITY: Final = ("data set", "kind", "settings", "files")


def _added(before: str, counts: Mapping[str, float]) -> dict[str, float]:
    total: dict[str, float] = json.loads(before)
    for name, number in counts.items():
        total[name] = total.get(name, 0) + number
    return total


def _fence(task_id: str, epoch: int) -> tuple[sa.ColumnElement[bool], ...]:
    return _c.task_id == task_id, _c.state == "RUNNING", _c.epoch == epoch


def _lost(task_id: str, epoch: int) -> LeaseLost:
    return LeaseLost(f"sample task {task_id}: epoch {epoch} no longer holds it; drop what you hold")
