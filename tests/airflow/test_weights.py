"""Urgent runs: where their tasks go, when they are made and later; and back again."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from dataflow_ops.airflow import steps
from dataflow_ops.airflow.weights import AHEAD, task_instance_mutation_hook
from dataflow_ops.pipeline.flow import STEP_NAMES


def instance(
    task: str = "dedup.match", dag: str = "web__full", queue: str = "memory", weight: int = 9
) -> Any:
    return SimpleNamespace(
        dag_id=dag, task_id=task, queue=queue, pool="default_pool", priority_weight=weight, run_id="r"
    )


def run(**conf: Any) -> Any:
    return SimpleNamespace(conf=conf)


def where(ti: Any) -> tuple[str, str, int]:
    return ti.queue, ti.pool, ti.priority_weight


def test_an_urgent_run_goes_ahead_of_everything() -> None:
    ti = instance()
    task_instance_mutation_hook(ti, run(priority="urgent"))
    assert where(ti) == ("urgent", "urgent", 9 + AHEAD)
    # Airflow calls it for what exists already, too.
    task_instance_mutation_hook(ti, run(priority="urgent"))
    assert where(ti) == ("urgent", "urgent", 9 + AHEAD)


def test_depth_first_stays_within_urgent_runs() -> None:
    early, late = instance(weight=2), instance(weight=20)
    for ti in (early, late):
        task_instance_mutation_hook(ti, run(priority="urgent"))
    assert late.priority_weight > early.priority_weight > AHEAD


def test_what_is_no_longer_urgent_goes_back_to_its_queue() -> None:
    ti = instance()
    task_instance_mutation_hook(ti, run(priority="urgent"))
    task_instance_mutation_hook(ti, run(priority="normal"))
    assert where(ti) == ("memory", "default_pool", 9)


@pytest.mark.parametrize("other", [None, run(), run(priority="normal")])
def test_other_runs_stay_as_they_are(other: Any) -> None:
    ti = instance()
    task_instance_mutation_hook(ti, other)
    assert where(ti) == ("memory", "default_pool", 9)


def test_other_peoples_dags_are_left_alone() -> None:
    ti = instance(dag="their_dag", queue="theirs")
    task_instance_mutation_hook(ti, run(priority="urgent"))
    assert where(ti) == ("theirs", "default_pool", 9)


def test_every_step_has_a_line_in_the_table() -> None:
    assert set(steps.SHOWN) == set(STEP_NAMES) - {"discover"}
    assert {line.queue for line in steps.SHOWN.values()} <= set(steps.QUEUES)


def test_the_hook_is_light_and_knows_no_airflow() -> None:
    check = (
        "import sys, dataflow_ops.airflow.weights\n"
        "print([m for m in ('airflow', 'pydantic', 'yaml', 'numpy', 'sqlalchemy') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
