"""The door to the state of samples. Each part of it is a module of its own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Self

import sqlalchemy as sa

from dataflow_ops.state.database import Database
from dataflow_ops.state.door import Door
from dataflow_ops.state.outbox import Outbox
from dataflow_ops.state.pauses import Pauses
from dataflow_ops.state.samples.changes import SampleChanges
from dataflow_ops.state.samples.files import SampleFiles
from dataflow_ops.state.samples.query import SampleQuery
from dataflow_ops.state.samples.rows import SampleRows
from dataflow_ops.state.samples.tasks import SampleTasks
from dataflow_ops.state.samples.uploads import SampleUploads


class SampleStore(
    Door,
    SampleTasks,
    SampleFiles,
    SampleRows,
    SampleQuery,
    SampleChanges,
    SampleUploads,
    Pauses,
    Outbox,
):
    """Files, rows and tasks of fine-tuning samples, in the same database as runs."""

    @classmethod
    def beside(cls, db: Database) -> Self:
        """The store on the connections of another one, whose schema is up to date; never to be closed."""
        store = cls.__new__(cls)
        store.url = db.engine.url.render_as_string(hide_password=False)
        store.db = db
        return store

    @contextmanager
    def write(self) -> Iterator[sa.Connection]:
        """One transaction that writes; waits for a database that is away before it begins, never repeats.

        Raises:
            CommitUnknown: the connection broke during COMMIT: read the cursor, never repeat blindly.
            DatabaseUnavailable: it broke earlier; nothing was written.
            StorageFull: the disk of the database is full.
        """
        with self.db.write() as connection:
            yield connection

    @contextmanager
    def read(self) -> Iterator[sa.Connection]:
        """One consistent view for reading; never waits for writers."""
        with self.db.read() as connection:
            yield connection

    def wanted_elsewhere(self, key: str, run_id: str) -> bool:
        """Whether others want this task too: no task of samples is shared."""
        return False
