"""What keeps a task that reads the table it writes to from running for ever.

It works on files that do not grow, up to the highest key that there was when it began, and it is stopped with
an alarm as soon as it has processed more rows than that, or an update made the table grow.
"""

from __future__ import annotations

from collections.abc import Sequence

import sqlalchemy as sa

from dataflow_ops.errors import EndlessRead, StateError
from dataflow_ops.state.database import Database
from dataflow_ops.state.records import CursorRecord
from dataflow_ops.state.sample_tables import dataset_file, sample
from dataflow_ops.state.samples.records import SampleTask


def check_ready(connection: sa.Connection, db: Database, task: SampleTask) -> None:
    """A file that still grows would make the snapshot a guess.

    Raises:
        StateError: a file of the task is not there, or its import has not ended.
    """
    f = dataset_file.c
    query = sa.select(f.id, f.status).where(db.among(f.id, list(task.files)))
    found = {row.id: row.status for row in connection.execute(query)}
    for file in task.files:
        if found.get(file) != "READY":
            raise StateError(
                f"sample task {task.task_id}: file {file} is {found.get(file, 'not there')}, not READY;"
                " finish its import first"
            )


def snapshot(connection: sa.Connection, db: Database, files: Sequence[str]) -> tuple[int, int]:
    """The highest key of ``sample``, and how many turns the files have up to it."""
    highest: int = connection.execute(sa.select(sa.func.coalesce(sa.func.max(sample.c.id), 0))).scalar_one()
    rows: int = connection.execute(
        sa.select(sa.func.count())
        .select_from(sample)
        .where(db.among(sample.c.dataset_file_id, list(files)), sample.c.id <= highest)
    ).scalar_one()
    return highest, rows


def check_end(connection: sa.Connection, task: SampleTask, cursor: CursorRecord) -> None:
    """Whether a batch may be committed. Imports, which are to make the table grow, pass.

    Raises:
        EndlessRead: more rows were processed than there were, or the file that is updated grew.
    """
    if task.highest_id is None or task.snapshot_rows is None:
        return
    if cursor.processed_rows > task.snapshot_rows:
        raise EndlessRead(
            f"sample task {task.task_id} has processed {cursor.processed_rows:,} rows, but there were"
            f" {task.snapshot_rows:,} when it began: it reads what it writes; nothing of this batch was kept"
        )
    c = sample.c
    # Both columns in one comparison: only the index of both can serve it, whatever other files hold by now.
    above = sa.tuple_(c.dataset_file_id, c.id) > sa.tuple_(
        sa.literal(cursor.file_id), sa.literal(task.highest_id)
    )
    grown = connection.execute(
        sa.select(c.id).where(c.dataset_file_id == cursor.file_id, above).limit(1)
    ).one_or_none()
    if grown is not None:
        raise EndlessRead(
            f"sample task {task.task_id} updates file {cursor.file_id}, which has grown since it began"
            f" (row {grown.id:,} is above {task.highest_id:,}): an update became an insert;"
            " nothing of this batch was kept"
        )
