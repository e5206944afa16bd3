"""Deleting dialogues softly and restoring them: a task like the others, which says who, what and when."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

import sqlalchemy as sa

from dataflow_ops.samples.running import Batch, Told, run_task
from dataflow_ops.state.cursors import files_to_read
from dataflow_ops.state.samples.query import Filter, filter_of
from dataflow_ops.state.samples.records import Claim, SampleTask
from dataflow_ops.state.samples.store import SampleStore

BATCH_DIALOGUES: Final = 2_500


class DeleteStep:
    """Deletes or restores every dialogue that has a turn which the task's filter meets.

    Args:
        store: open.
        batch_dialogues: dialogues in a batch.
    """

    def __init__(self, store: SampleStore, batch_dialogues: int = BATCH_DIALOGUES) -> None:
        self._store = store
        self._batch_dialogues = batch_dialogues

    def batches(self, claim: Claim) -> Iterator[Batch[list[int]]]:
        """Records of dialogues, from the cursor on."""
        task = claim.task
        delete, highest = task.kind == "delete", task.highest_id or 0
        where = filter_of(task.settings["filter"]).conditions(self._store.db)
        for file, first in files_to_read(task.files, claim.cursor):
            while True:
                records, turns = self._store.matching_records(
                    file, first, highest, self._batch_dialogues, not delete, where
                )
                if not records:
                    break
                first = records[-1] + 1
                yield Batch(file, first, turns, records)

    def keep(self, connection: sa.Connection, claim: Claim, batch: Batch[list[int]]) -> Mapping[str, float]:
        """Change the turns, and note it."""
        task = claim.task
        turns = self._store.set_deleted(
            connection,
            task.task_id,
            batch.file_id,
            task.highest_id or 0,
            batch.content,
            task.kind == "delete",
        )
        return {"dialogues": len(batch.content), "rows": turns}


def ask_deletion(store: SampleStore, dataset: str, only: Filter, who: str, *, restore: bool) -> SampleTask:
    """Ask for a task that deletes (or restores) dialogues.

    Args:
        store: open.
        dataset: whose files they are in.
        only: a dialogue is meant if one of its turns meets it.
        who: name of the person or service; kept with every turn's history.
        restore: restore those that are deleted.

    Raises:
        ConfigError: no files.
    """
    kind = "restore" if restore else "delete"
    settings = {"filter": replace(only, deleted=restore).as_json()}
    return store.create_task(f"{kind}-{uuid.uuid4().hex[:16]}", dataset, kind, settings, only.files, who)


def delete_or_restore(
    store: SampleStore, dataset: str, only: Filter, who: str, *, restore: bool, told: Told | None = None
) -> SampleTask:
    """Ask for such a task and run it here; as :func:`~dataflow_ops.samples.running.run_task`."""
    task = ask_deletion(store, dataset, only, who, restore=restore)
    return run_task(store, task.task_id, DeleteStep(store), told=told)
