"""Pausing, resuming and cancelling sample tasks: what people press beside one."""

from __future__ import annotations

from dataflow_ops.console.actions import MAX_WHY, SCOPES
from dataflow_ops.console.said import fault
from dataflow_ops.console.sample_desk import SampleDesk
from dataflow_ops.control.flags import PauseFlags
from dataflow_ops.errors import ConfigError
from dataflow_ops.state.machine import OPEN_TASKS
from dataflow_ops.state.samples.records import SampleTask


def pause(desk: SampleDesk, dataset: str, task_id: str, scope: str, who: str, why: str) -> None:
    """Ask a task, all tasks (and runs) of its data set, or everything to pause.

    Raises:
        NotThere: no such task.
        ConfigError: no such scope, or the task has ended.
    """
    task = desk.task(dataset, task_id)
    if scope == "run" and task.state not in OPEN_TASKS:
        raise fault(ConfigError, "sample_task_ended_pause", task=task_id)
    _flags(desk).pause(scope, _target(task, scope), who, why[:MAX_WHY])


def resume(desk: SampleDesk, dataset: str, task_id: str, scope: str, who: str) -> None:
    """Take a flag back. Others may hold still: the task then stays paused, and says by whom.

    Raises:
        NotThere: no such task.
        ConfigError: no such scope.
    """
    task = desk.task(dataset, task_id)
    _flags(desk).resume(scope, _target(task, scope), who)


def cancel(desk: SampleDesk, dataset: str, task_id: str, who: str) -> None:
    """Give a task up; what it wrote stays.

    Raises:
        NotThere: no such task.
        ConfigError: it has ended.
    """
    task = desk.task(dataset, task_id)
    if task.state not in OPEN_TASKS:
        raise fault(ConfigError, "sample_task_ended_cancel", task=task_id)
    desk.store.cancel_task(task_id, who)


def _flags(desk: SampleDesk) -> PauseFlags:
    return PauseFlags(desk.store, desk.home.redis_url)


def _target(task: SampleTask, scope: str) -> str:
    if scope not in SCOPES:
        raise ConfigError(f"scope '{scope}': use one of {', '.join(SCOPES)}")
    return {"run": task.task_id, "dataset": task.dataset, "all": ""}[scope]
