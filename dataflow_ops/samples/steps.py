"""What each kind of task does: one literal table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from dataflow_ops.errors import ConfigError
from dataflow_ops.samples.cleaning.task import CleanStep
from dataflow_ops.samples.deleting import DeleteStep
from dataflow_ops.samples.export.task import ExportStep
from dataflow_ops.samples.importing import ImportStep
from dataflow_ops.samples.running import SampleStep
from dataflow_ops.state.samples.records import SampleTask
from dataflow_ops.state.samples.store import SampleStore
from dataflow_ops.storage.opening import Root, open_store

Make = Callable[[SampleStore, Root, Callable[[], bool]], SampleStep[Any]]

STEPS: Final[Mapping[str, Make]] = {
    "import": lambda store, root, stop: ImportStep(store),
    "clean": lambda store, root, stop: CleanStep(store),
    "export": lambda store, root, stop: ExportStep(store, open_store(root), stop),
    "delete": lambda store, root, stop: DeleteStep(store),
    "restore": lambda store, root, stop: DeleteStep(store),
}
"""Kind of a task -> its step, for a store, a storage root and a question for pauses."""


def step_of(task: SampleTask, store: SampleStore, root: Root, stop: Callable[[], bool]) -> SampleStep[Any]:
    """The step of a task.

    Args:
        task: any that needs nothing but its settings.
        store: open.
        root: storage root.
        stop: whether somebody wants the task to pause.

    Raises:
        ConfigError: its kind needs more than its settings, such as a model to ask.
    """
    if task.kind not in STEPS:
        raise ConfigError(
            f"{task.task_id} goes on with the command that began it:"
            f" dataflow samples {task.kind} --task {task.task_id} …"
        )
    return STEPS[task.kind](store, root, stop)
