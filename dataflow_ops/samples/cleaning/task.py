"""A clean-up as a sample task."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import sqlalchemy as sa

from dataflow_ops.samples.cleaning.settings import SampleCleanSettings
from dataflow_ops.samples.cleaning.step import Cleaned, Cleaning
from dataflow_ops.samples.running import Batch
from dataflow_ops.state.cursors import files_to_read
from dataflow_ops.state.samples.records import Claim
from dataflow_ops.state.samples.store import SampleStore


class CleanStep:
    """Cleans the files of a task; its settings are those with which the task was asked for.

    Args:
        store: open.
    """

    def __init__(self, store: SampleStore) -> None:
        self._db = store.db

    def batches(self, claim: Claim) -> Iterator[Batch[Cleaned]]:
        """See :class:`~dataflow_ops.samples.running.SampleStep`."""
        task, at = claim.task, claim.cursor
        cleaning = Cleaning(self._db, task, SampleCleanSettings.model_validate(task.settings))
        cleaning.remember(at.file_id if at else None, at.offset if at else 0)
        for file, first in files_to_read(task.files, at):
            while (done := cleaning.batch(file, first)) is not None:
                first = done.next_row
                yield Batch(file, first, done.turns, done)

    def keep(self, connection: sa.Connection, claim: Claim, batch: Batch[Cleaned]) -> Mapping[str, float]:
        """See :class:`~dataflow_ops.samples.running.SampleStep`."""
        batch.content.write(connection, self._db)
        return batch.content.counts
