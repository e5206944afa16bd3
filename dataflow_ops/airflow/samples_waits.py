"""Whether a sample task may be worked on now. Opens the database: for tasks and triggers only."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.triggers.base import BaseTrigger, TriggerEvent  # noqa: TID253 - where Airflow belongs

from dataflow_ops.airflow.triggers import LOOK_EVERY_S, Look

if TYPE_CHECKING:
    from dataflow_ops.pipeline.home import Home
    from dataflow_ops.state.samples.store import SampleStore


def patient_samples(home: Home) -> SampleStore:
    """State as a task opens it: a database that restarts is waited for.

    Raises:
        DatabaseUnavailable: state stays away.
    """
    from dataflow_ops.state.database import PATIENCE_S
    from dataflow_ops.state.samples.store import SampleStore

    return SampleStore(home.state_url, PATIENCE_S)


def may_go_on(home: str, dataset: str, task_id: str) -> bool:
    """Whether no pause flag holds and nobody who is alive works on the task.

    One that was cancelled or is done is waited for no longer, whatever flag holds.

    Args:
        home: DataFlow's home folder.
        dataset: data set of the task.
        task_id: the task; it need not be there yet.

    Raises:
        ConfigError: there is no such home.
        DatabaseUnavailable: state can't be reached.
    """
    from dataflow_ops.errors import DatabaseUnavailable, StateError
    from dataflow_ops.pipeline.home import open_home
    from dataflow_ops.state.samples.store import SampleStore

    with SampleStore(open_home(Path(home), create=False).state_url) as store:
        flag = store.paused(task_id, dataset)
        try:
            task = store.sample_task(task_id)
        except DatabaseUnavailable:
            raise
        except StateError:  # a flag held before it was asked for
            return flag is None
        if task.state in ("SUCCESS", "CANCELLED"):
            return True
        return flag is None and (task.state != "RUNNING" or task.silent)


class SampleTrigger(BaseTrigger):
    """Fires when a sample task may be worked on.

    Args:
        home: DataFlow's home folder.
        dataset: data set of the task.
        sample_task: the task that waits.
    """

    def __init__(self, home: str, dataset: str, sample_task: str) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.home = home
        self.dataset = dataset
        self.sample_task = sample_task

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """How the triggerer makes it again, in another process or after a restart."""
        arguments = {"home": self.home, "dataset": self.dataset, "sample_task": self.sample_task}
        return "dataflow_ops.airflow.samples_waits.SampleTrigger", arguments

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Fire once it may go on."""
        look = Look(
            lambda: may_go_on(self.home, self.dataset, self.sample_task), LOOK_EVERY_S, self.log.warning
        )
        while not await look():
            await asyncio.sleep(look.pause)
        yield TriggerEvent("resumed")  # type: ignore[no-untyped-call]
