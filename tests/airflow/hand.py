"""Runs a DAG's operators by hand, in order, with plain dictionaries as contexts."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

DAY = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)


class Xcoms:
    """What a task instance is asked for."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}

    def xcom_pull(self, task_ids: str) -> Any:
        return self.values[task_ids]


class ByHand:
    """One DAG run.

    Args:
        job: job file.
        home: DataFlow's home.
        run_id: Airflow's name for the run.
        params: the trigger form's values.
    """

    def __init__(self, job: Path, home: Path, run_id: str = "r1", **params: Any) -> None:
        from dataflow_ops.airflow.dag_factory import corpus_dag

        self.dag = corpus_dag(job, home, cores=0)
        self.home = home
        self.xcoms = Xcoms()
        given = {name: param.value for name, param in self.dag.params.items()} | params
        self.context = {
            "dag": self.dag,
            "run_id": run_id,
            "params": given,
            "ti": self.xcoms,
            "data_interval_start": DAY,
        }

    def start(self) -> dict[str, Any]:
        operator = self.dag.get_task("start")
        operator.render_template_fields(self.context)
        return self._kept("start", operator.execute(self.context))

    def bundles(self, by: str) -> list[dict[str, Any]]:
        return self._kept(f"ranges.{by}", self.dag.get_task(f"ranges.{by}").execute(self.context))

    def bundle(self, step: str, reference: dict[str, Any]) -> dict[str, Any]:
        from dataflow_ops.airflow.operators import Bundle

        operator = Bundle(task_id=step, step=step, home=str(self.home), cores=0, bundle=reference)
        return self._kept(f"{step}.{reference['index']}", operator.execute(self.context))

    def finish(self) -> dict[str, Any]:
        return self._kept("publish", self.dag.get_task("publish").execute(self.context))

    def all(self) -> dict[str, Any]:
        from dataflow_ops.pipeline.flow import STEPS

        self.start()
        for step, _, by in STEPS[1:]:
            for reference in self.bundles(by):
                self.bundle(step, reference)
        return self.finish()

    def _kept(self, task: str, value: Any) -> Any:
        self.xcoms.values[task] = value
        return value
