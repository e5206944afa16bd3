"""Cursors: how far somebody got, by (task_id, stage, task_type)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

import sqlalchemy as sa

from dataflow_ops.errors import StateError
from dataflow_ops.state.database import Database, dump
from dataflow_ops.state.records import CursorRecord
from dataflow_ops.state.tables import cursor
from dataflow_ops.state.upsert import upsert

CORPUS = "corpus"
"""``task_type`` of tasks of the corpus flow; ``task_id`` is the task key and ``stage`` the step."""


def read(connection: sa.Connection, task_id: str, stage: str, task_type: str) -> CursorRecord | None:
    """The cursor, or ``None`` where nothing was done yet."""
    c = cursor.c
    row = connection.execute(
        sa.select(c.current_file_id, c.current_offset, c.processed_rows, c.detail).where(
            c.task_id == task_id, c.stage == stage, c.task_type == task_type
        )
    ).one_or_none()
    if row is None:
        return None
    detail: Mapping[str, object] = json.loads(row.detail) if row.detail else {}
    return CursorRecord(row.current_file_id, row.current_offset, row.processed_rows, detail)


def write(
    connection: sa.Connection, db: Database, task_id: str, stage: str, task_type: str, at: CursorRecord
) -> bool:
    """Set the cursor inside the caller's transaction; return whether it moved."""
    before = read(connection, task_id, stage, task_type)
    upsert(
        connection,
        cursor,
        [
            {
                "task_id": task_id,
                "stage": stage,
                "task_type": task_type,
                "current_file_id": at.file_id,
                "current_offset": at.offset,
                "processed_rows": at.processed_rows,
                "detail": dump(at.detail) if at.detail else None,
                "updated_at": connection.execute(sa.select(db.now)).scalar_one(),
            }
        ],
    )
    start = (None, 0, 0) if before is None else (before.file_id, before.offset, before.processed_rows)
    return start != (at.file_id, at.offset, at.processed_rows)


def delete(connection: sa.Connection, task_id: str, stage: str, task_type: str) -> None:
    """Forget the cursor inside the caller's transaction."""
    c = cursor.c
    connection.execute(
        sa.delete(cursor).where(c.task_id == task_id, c.stage == stage, c.task_type == task_type)
    )


def files_to_read(files: Sequence[str], at: CursorRecord | None) -> Iterator[tuple[str, int]]:
    """Which files are left, and from which offset: finished ones skipped, the resumed one from the cursor.

    Every file after the resumed one starts at 0, or it would silently lose its first rows.

    Args:
        files: ids in the order in which they are read.
        at: the cursor; ``None`` starts at the first file.

    Raises:
        StateError: the cursor names a file that is not in the list.
    """
    if at is None or at.file_id is None:
        yield from ((file, 0) for file in files)
        return
    try:
        resumed = files.index(at.file_id)
    except ValueError:
        raise StateError(f"the cursor stands in file {at.file_id}, which is no longer in the list") from None
    yield at.file_id, at.offset
    yield from ((file, 0) for file in files[resumed + 1 :])
