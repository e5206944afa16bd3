"""Which sample tasks belong to a run of the DAG ``samples``: its tasks leave a note before they begin."""

from __future__ import annotations

import json
from typing import Any, Final, NamedTuple

from airflow.models.xcom import XComModel
from sqlalchemy import select
from sqlalchemy.orm import Session

from dataflow_ops.airflow.samples_work import SAMPLES, TOLD

__all__ = ["SAMPLES", "Noted", "tasks_of_run"]

ORDER: Final = ("import", "clean", "augment", "export")
"""Tasks of the DAG as they stand one after the other."""
BUDGET: Final = ("budget_tokens", "budget_cost", "currency")
"""What an augmentation notes beside its name."""


class Noted(NamedTuple):
    """A sample task that a task of the DAG works on, or has worked on."""

    airflow_task: str
    task: str
    dataset: str
    budget: dict[str, Any] | None


def tasks_of_run(session: Session, dag_run: str) -> list[Noted]:
    """What the tasks of a run have noted, in the order of the flow."""
    query = select(XComModel.task_id, XComModel.value).where(
        XComModel.dag_id == SAMPLES, XComModel.run_id == dag_run, XComModel.key == TOLD
    )
    noted = {task_id: _read(value) for task_id, value in session.execute(query)}
    return [_noted(task_id, noted[task_id]) for task_id in ORDER if task_id in noted]


def _noted(task_id: str, note: dict[str, Any]) -> Noted:
    budget: dict[str, Any] = {name: note[name] for name in BUDGET if name in note}
    return Noted(task_id, note["task"], note["dataset"], budget or None)


def _read(value: Any) -> dict[str, Any]:
    # The column is JSON that holds the text that Airflow made of the note.
    found: dict[str, Any] = json.loads(value) if isinstance(value, str) else value
    return found
