"""Running a sample task in this process, and what is told of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dataflow_ops.cli.console import watched
from dataflow_ops.cli.samples_words import counts_told

if TYPE_CHECKING:
    from dataflow_ops.control.pause import PauseWatch
    from dataflow_ops.pipeline.home import Home
    from dataflow_ops.state.samples.records import SampleTask
    from dataflow_ops.state.samples.store import SampleStore


def watch_of(place: Home, store: SampleStore, task: SampleTask) -> PauseWatch:
    """The pause flags of a task."""
    from dataflow_ops.control.pause import PauseWatch
    from dataflow_ops.control.redis_copy import RedisCopy

    copy = RedisCopy(place.redis_url) if place.redis_url else None
    return PauseWatch(store, task.task_id, task.dataset, copy)


def run_here(place: Home, store: SampleStore, task: SampleTask, *, quiet: bool) -> SampleTask:
    """Run a task in this process, with a bar.

    Raises:
        ConfigError: its kind is not run from here.
    """
    from dataflow_ops.samples.running import run_task
    from dataflow_ops.samples.steps import step_of
    from dataflow_ops.state.database import PATIENCE_S

    if task.state == "SUCCESS":
        return task
    store.be_patient(PATIENCE_S)
    watch = watch_of(place, store, task)
    step = step_of(task, store, place.root, lambda: watch.flag() is not None)
    turns = task.snapshot_rows or sum(store.sample_file(file).rows for file in task.files)
    with watched("turns", quiet=quiet) as progress:
        return run_task(store, task.task_id, step, watch, told=lambda done: progress(done, max(turns, done)))


def end_told(task: SampleTask) -> str:
    """How a task ended, for people: its state and its counts."""
    return "; ".join(part for part in (task.state.lower(), counts_told(task.counts)) if part)


def told_of(task: SampleTask) -> dict[str, Any]:
    """A task for programs."""
    return {
        "task": task.task_id,
        "dataset": task.dataset,
        "kind": task.kind,
        "state": task.state,
        "counts": dict(task.counts),
        "error": task.error_message,
    }
