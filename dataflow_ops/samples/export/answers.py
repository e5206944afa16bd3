"""The answers that an export takes along: those to the prompts of the augmentations it names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dataflow_ops.errors import ConfigError
from dataflow_ops.samples.export.joining import Answer
from dataflow_ops.state.samples.answers import answers_between
from dataflow_ops.state.samples.store import SampleStore


class Answers:
    """Reads answers by ranges of records.

    Args:
        store: open.
        tasks: ids of augmentations.
        dataset: they must be of this one.

    Raises:
        ConfigError: a task that is no augmentation of this data set, or is not done.
        StateError: there is no such task.
    """

    def __init__(self, store: SampleStore, tasks: Sequence[str], dataset: str) -> None:
        self._store = store
        self._versions = [self._version(task_id, dataset) for task_id in tasks]

    def read(self, file: str, first: int, last: int) -> Mapping[int, Sequence[Answer]]:
        """Record → what models answered about it.

        Args:
            file: id of the file.
            first: ``row_identifier`` of the first record.
            last: of the last one.
        """
        found: dict[int, list[Answer]] = {}
        if self._versions:
            with self._store.read() as connection:
                for row, *values in answers_between(connection, self._versions, file, first, last):
                    found.setdefault(row, []).append(Answer(*values))
        return found

    def _version(self, task_id: str, dataset: str) -> str:
        task = self._store.sample_task(task_id)
        if task.kind != "augment" or task.dataset != dataset:
            raise ConfigError(
                f"answers_of: {task_id} is a task of kind {task.kind} of data set {task.dataset}; name"
                f" augmentations of {dataset} (`dataflow samples tasks --dataset {dataset} --kind augment`)"
            )
        if task.state != "SUCCESS":
            raise ConfigError(
                f"answers_of: augmentation {task_id} is {task.state}; what it has not asked would be missing:"
                " let it end first, or leave it out"
            )
        return str(task.settings["prompt_version"])
