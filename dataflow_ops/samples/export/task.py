"""An export as a sample task: shards first, the manifest when all of them are there."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from typing import Any, cast

import sqlalchemy as sa

from dataflow_ops.samples.export.answers import Answers
from dataflow_ops.samples.export.manifest import manifest
from dataflow_ops.samples.export.settings import SampleExportSettings
from dataflow_ops.samples.export.step import Exporting, Position, Shard, Written
from dataflow_ops.samples.running import Batch
from dataflow_ops.state.samples.records import Claim
from dataflow_ops.state.samples.store import SampleStore
from dataflow_ops.storage.blob import BlobStore


class ExportStep:
    """Exports the files of a task; its settings are those with which the task was asked for.

    Args:
        store: open.
        blobs: where the export goes.
        should_stop: whether somebody wants the task to pause; asked within a shard, too.
    """

    def __init__(self, store: SampleStore, blobs: BlobStore, should_stop: Callable[[], bool]) -> None:
        self._store, self._blobs, self._should_stop = store, blobs, should_stop

    def batches(self, claim: Claim) -> Iterator[Batch[Written]]:
        """See :class:`~dataflow_ops.samples.running.SampleStep`.

        Raises:
            Interrupted: a pause is wanted; the shard under way was given up.
        """
        task, at = claim.task, claim.cursor
        settings = SampleExportSettings.model_validate(task.settings)
        answers = Answers(self._store, settings.answers_of, task.dataset)
        exporting = Exporting(self._store.db, task, settings, self._blobs, answers.read, self._should_stop)
        known = cast("list[dict[str, Any]]", at.detail.get("shards", [])) if at else []
        shards = [Shard(**one) for one in known]
        here = Position(task.files.index(at.file_id), at.offset) if at and at.file_id else Position(0, 0)
        while (done := exporting.shard(len(shards), here)).turns:
            if done.shard is not None:
                shards.append(done.shard)
            here = done.after
            yield Batch(
                task.files[here.file],
                here.row,
                done.turns,
                done,
                {"shards": [asdict(shard) for shard in shards]},
            )
        files = [
            {"id": file.id, "path": file.path, "sha256": file.sha256, "format": file.format}
            for file in map(self._store.sample_file, task.files)
        ]
        made = manifest(self._store.sample_task(task.task_id), files, shards)
        for name, data in made.items():
            self._blobs.put(f"{exporting.folder}/{name}", data)

    def keep(self, connection: sa.Connection, claim: Claim, batch: Batch[Written]) -> Mapping[str, float]:
        """See :class:`~dataflow_ops.samples.running.SampleStep`: the shard is where it belongs already."""
        return batch.content.counts
