"""Samples as the pages see them: the home, its store, and what is remembered between two looks."""

from __future__ import annotations

from dataclasses import dataclass

from dataflow_ops.console.place import NotThere
from dataflow_ops.console.said import fault
from dataflow_ops.console.sample_pace import Pace
from dataflow_ops.errors import DatabaseUnavailable, StateError
from dataflow_ops.pipeline.home import Home
from dataflow_ops.state.samples.records import SampleTask
from dataflow_ops.state.samples.store import SampleStore


@dataclass(frozen=True, slots=True)
class SampleDesk:
    """What the pages about samples read.

    Attributes:
        home: where things are.
        store: open; threads may share it.
        pace: how fast tasks move.
    """

    home: Home
    store: SampleStore
    pace: Pace

    def task(self, dataset: str, task_id: str) -> SampleTask:
        """A task of a data set.

        Raises:
            NotThere: the data set has none of this name.
        """
        try:
            found = self.store.sample_task(task_id)
        except DatabaseUnavailable:
            raise
        except StateError as e:
            raise fault(NotThere, "no_such_sample_task", task=task_id, dataset=dataset) from e
        if found.dataset != dataset:
            raise fault(NotThere, "no_such_sample_task", task=task_id, dataset=dataset)
        return found
