"""Asking for what was done before: it is not done again, unless what it reads has changed since."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from dataflow_ops.state.samples.records import SampleTask
from dataflow_ops.state.samples.store import SampleStore

CHANGES: Final[Mapping[str, tuple[str, ...]]] = {
    "clean": ("clean", "delete", "restore"),
    "augment": ("clean", "delete", "restore"),
    "export": ("clean", "augment", "delete", "restore"),
}
"""Kind → kinds after which the same task gives something else. Imports add files, which are named."""
LOOKED_THROUGH: Final = 1_000
"""Newest tasks of a data set among which the same one is looked for."""


def once(store: SampleStore, task: SampleTask, name: str, anew: Callable[[str], SampleTask]) -> SampleTask:
    """The task that does the same as this one with the rows as they are: itself, a later one, or a new one.

    Args:
        store: open.
        task: asked for under the name that follows from what it is to do.
        name: of a new one; ``.2``, ``.3`` … are added where it is taken.
        anew: asks for the same under another name.
    """
    tasks = store.sample_tasks(task.dataset, limit=LOOKED_THROUGH)
    for one in (*(t for t in tasks if _same(t, task)), task):
        if one.state != "SUCCESS" or not _changed_since(one, tasks):
            return one
    taken = {one.task_id for one in tasks}
    names = itertools.chain((name,), (f"{name}.{n}" for n in itertools.count(2)))
    return anew(next(one for one in names if one not in taken))


def in_the_way(store: SampleStore, task: SampleTask) -> SampleTask | None:
    """A task under way that changes what this one reads: two at once would mix their results."""
    running = store.sample_tasks(task.dataset, state="RUNNING", limit=LOOKED_THROUGH)
    kinds = CHANGES.get(task.kind, ())
    others = (one for one in running if one.task_id != task.task_id and one.kind in kinds and not one.silent)
    return next(others, None)


def _same(one: SampleTask, other: SampleTask) -> bool:
    wanted = (other.kind, other.settings, other.files)
    return (one.kind, one.settings, one.files) == wanted and one.state != "CANCELLED"


def _changed_since(task: SampleTask, tasks: Sequence[SampleTask]) -> bool:
    """Whether another task has changed what this one read, after it began."""
    if task.started_at is None:
        return False
    return any(
        other.task_id != task.task_id
        and other.kind in CHANGES[task.kind]
        and other.started_at is not None
        and (other.state == "RUNNING" or (other.ended_at or other.updated_at) > task.started_at)
        for other in tasks
    )
