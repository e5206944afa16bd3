"""Routes of sample tasks and their failure queues. Plain functions: the server runs them in threads."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from airflow.api_fastapi.common.db.common import SessionDep
from airflow.api_fastapi.core_api.security import GetUserDep
from fastapi import APIRouter, Depends
from pydantic import BaseModel, ConfigDict, Field

from dataflow_ops.console import sample_actions, sample_failures_view, sample_tasks_view
from dataflow_ops.console.said import fault
from dataflow_ui.audit_log import acts
from dataflow_ui.rights import NoRight, full_dag, may, needs
from dataflow_ui.sample_house import DeskDep
from dataflow_ui.sample_runs import SAMPLES, tasks_of_run

router = APIRouter(prefix="/api/samples")

_READ = Depends(needs("read"))
_TEXT = Depends(needs("read", "text"))
Text = Annotated[str, Field(max_length=2_000)]


class Task(BaseModel):
    """A sample task of a data set."""

    model_config = ConfigDict(extra="forbid")

    dataset: Text
    task: Text


class Resume(Task):
    """Which flag is taken back."""

    scope: Literal["run", "dataset", "all"] = "run"


class Pause(Resume):
    """A pause and its reason."""

    why: Text = ""


class Failures(Task):
    """Entries of a failure queue: all that wait, those of one error, or one by its key."""

    error: Text = ""
    key: Text = ""


class Edit(Task):
    """Messages to be sent instead."""

    key: Text
    prompt: list[dict[str, Any]]


@router.get("/datasets")
def datasets(user: GetUserDep, desk: DeskDep) -> dict[str, Any]:
    """Data sets of samples that the user may read."""
    return sample_tasks_view.datasets(desk, lambda dataset: may(user, "read", full_dag(dataset)))


@router.get("/tasks", dependencies=[_READ])
def tasks(dataset: str, desk: DeskDep) -> dict[str, Any]:
    """Where the newest tasks of a data set stand."""
    return sample_tasks_view.tasks(desk, dataset)


@router.get("/run")
def run_(dag_run: str, user: GetUserDep, desk: DeskDep, session: SessionDep) -> dict[str, Any]:
    """The sample tasks of one run of the DAG ``samples``, in the order of its tasks."""
    if not may(user, "read", SAMPLES):
        raise fault(NoRight, "no_right", rights="read", where=SAMPLES)
    named = tasks_of_run(session, dag_run)
    for dataset in sorted({one.dataset for one in named}):
        if not may(user, "read", full_dag(dataset)):
            raise fault(NoRight, "no_right", rights="read", where=full_dag(dataset))
    found = [desk.task(one.dataset, one.task) for one in named]
    shown = sample_tasks_view.rows(desk, found)
    return {
        "tasks": [
            {**row, "airflow_task": one.airflow_task, "budget": one.budget}
            for row, one in zip(shown, named, strict=True)
        ]
    }


@router.post("/task/pause", dependencies=[Depends(acts("samples.task.pause"))])
def pause(body: Pause, user: GetUserDep, desk: DeskDep) -> dict[str, Any]:
    """Ask a task to pause."""
    sample_actions.pause(desk, body.dataset, body.task, body.scope, user.get_name(), body.why)
    return {"ok": True}


@router.post("/task/resume", dependencies=[Depends(acts("samples.task.resume"))])
def resume(body: Resume, user: GetUserDep, desk: DeskDep) -> dict[str, Any]:
    """Let it go on."""
    sample_actions.resume(desk, body.dataset, body.task, body.scope, user.get_name())
    return {"ok": True}


@router.post("/task/cancel", dependencies=[Depends(acts("samples.task.cancel"))])
def cancel(body: Task, user: GetUserDep, desk: DeskDep) -> dict[str, Any]:
    """Give it up."""
    sample_actions.cancel(desk, body.dataset, body.task, user.get_name())
    return {"ok": True}


@router.get("/failures", dependencies=[_READ])
def failures(
    dataset: str,
    task: str,
    user: GetUserDep,
    desk: DeskDep,
    error: str = "",
    after: str = "",
) -> dict[str, Any]:
    """A page of a failure queue; messages for those who may read texts, since they may quote one."""
    with_text = may(user, "text", full_dag(dataset))
    return sample_failures_view.failures(desk, dataset, task, error, after, with_text=with_text)


@router.get("/failure", dependencies=[_TEXT])
def failure(dataset: str, task: str, key: str, desk: DeskDep) -> dict[str, Any]:
    """One entry: prompt, raw answer, error."""
    return sample_failures_view.failure(desk, dataset, task, key)


@router.post("/failure/edit", dependencies=[Depends(acts("samples.failure.edit", "text"))])
def edit(body: Edit, desk: DeskDep) -> dict[str, Any]:
    """Change what is sent when it is asked again."""
    sample_failures_view.edit(desk, body.dataset, body.task, body.key, body.prompt)
    return {"ok": True}


@router.post("/failures/requeue", dependencies=[Depends(acts("samples.failures.requeue"))])
def requeue(body: Failures, user: GetUserDep, desk: DeskDep) -> dict[str, Any]:
    """Let entries be asked again by the next run."""
    who = user.get_name()
    return sample_failures_view.change(desk, body.dataset, body.task, "REQUEUED", body.error, body.key, who)


@router.post("/failures/drop", dependencies=[Depends(acts("samples.failures.drop"))])
def drop(body: Failures, user: GetUserDep, desk: DeskDep) -> dict[str, Any]:
    """Give entries up."""
    who = user.get_name()
    return sample_failures_view.change(desk, body.dataset, body.task, "DROPPED", body.error, body.key, who)
