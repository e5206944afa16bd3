"""What was changed in which turn, by which task and rule; deleting and restoring is such a change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from dataflow_ops.state.database import Database
from dataflow_ops.state.sample_tables import sample, sample_change, sample_task
from dataflow_ops.state.upsert import insert_staged, upsert

_c = sample.c


class SampleChanges:
    """The record of changes."""

    db: Database

    def record_changes(self, connection: sa.Connection, changes: Sequence[Mapping[str, Any]]) -> None:
        """Note changes in the transaction that makes them.

        Args:
            connection: in a transaction.
            changes: ``sample_id``, ``task_id``, ``ordinal``, ``rule``, ``field``, ``before``, ``after``.
        """
        if changes:
            now = connection.execute(sa.select(self.db.now)).scalar_one()
            insert_staged(connection, sample_change, [{**one, "created_at": now} for one in changes])

    def history(self, sample_id: int) -> list[dict[str, Any]]:
        """The changes of a turn, oldest first, with the kind of the task and who asked for it."""
        c, t = sample_change.c, sample_task.c
        query = (
            sa.select(sample_change, t.kind, t.who)
            .outerjoin(sample_task, t.task_id == c.task_id)
            .where(c.sample_id == sample_id)
            .order_by(c.created_at, c.task_id, c.ordinal)
        )
        with self.db.read() as connection:
            return [dict(row) for row in connection.execute(query).mappings()]

    def matching_records(
        self,
        file_id: str,
        first: int,
        highest_id: int,
        limit: int,
        deleted: bool,
        where: Sequence[sa.ColumnElement[bool]],
    ) -> tuple[list[int], int]:
        """Dialogues of a file that have a turn which meets the conditions, from record ``first`` on.

        Args:
            file_id: the file.
            first: record to begin with.
            highest_id: no turn above it counts.
            limit: at most so many dialogues.
            deleted: whether the turns to be counted are deleted.
            where: conditions on turns.

        Returns:
            Their records, ascending, and how many turns of them are (not) deleted.
        """
        here = (_c.dataset_file_id == file_id, _c.id <= highest_id)
        query = (
            sa.select(_c.row_identifier)
            .where(*here, _c.row_identifier >= first, *where)
            .group_by(_c.row_identifier)
            .order_by(_c.row_identifier)
            .limit(limit)
        )
        with self.db.read() as connection:
            records = list(connection.execute(query).scalars())
            number: int = connection.execute(
                sa.select(sa.func.count())
                .select_from(sample)
                .where(*here, _c.row_identifier.in_(records), _gone(deleted))
            ).scalar_one()
        return records, number

    def set_deleted(
        self,
        connection: sa.Connection,
        task_id: str,
        file_id: str,
        highest_id: int,
        records: Sequence[int],
        delete: bool,
    ) -> int:
        """Delete dialogues softly or restore them, with a change noted for every turn.

        Args:
            connection: in a transaction.
            task_id: under whose name.
            file_id: the file.
            highest_id: turns above it stay as they are.
            records: the dialogues.
            delete: or restore.

        Returns:
            How many turns changed.
        """
        turns = connection.execute(
            sa.select(_c.id, _c.deleted_at)
            .where(
                _c.dataset_file_id == file_id,
                _c.id <= highest_id,
                _c.row_identifier.in_(records),
                _gone(not delete),
            )
            .order_by(_c.id)
            .with_for_update()
        ).all()
        now = connection.execute(sa.select(self.db.now)).scalar_one()
        after = now if delete else None
        upsert(
            connection,
            sample,
            [{"id": turn.id, "deleted_at": after, "updated_at": now} for turn in turns],
            mode="update",
        )
        changes = [
            {
                "sample_id": turn.id,
                "task_id": task_id,
                "ordinal": 0,
                "rule": "delete" if delete else "restore",
                "field": "deleted_at",
                "before": None if turn.deleted_at is None else repr(turn.deleted_at),
                "after": None if after is None else repr(after),
            }
            for turn in turns
        ]
        self.record_changes(connection, changes)
        return len(turns)


def _gone(deleted: bool) -> sa.ColumnElement[bool]:
    return _c.deleted_at.is_not(None) if deleted else _c.deleted_at.is_(None)
