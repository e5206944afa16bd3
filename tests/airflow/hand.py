"""Runs a DAG's operators by hand, in order, with plain dictionaries as contexts."""

from __future__ import annotations

import datetime as dt
from collections import defaultdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

DAY = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)


class Xcoms:
    """What a task instance is asked for."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}

    def xcom_pull(self, task_ids: str) -> Any:
        return self.values.get(task_ids)


class ByHand:
    """One DAG run.

    Args:
        job: job file.
        home: DataFlow's home.
        run_id: Airflow's name for the run.
        mode: which of the job's two DAGs.
        conf: of the Airflow run.
        params: the trigger form's values.
    """

    def __init__(
        self,
        job: Path,
        home: Path,
        run_id: str = "r1",
        mode: Any = "full",
        conf: dict[str, Any] | None = None,
        **params: Any,
    ) -> None:
        from dataflow_ops.airflow.dag_factory import corpus_dag

        self.dag = corpus_dag(job, home, mode=mode, cores=0)
        self.dataset = self.dag.dag_id.partition("__")[0]
        self.run_id = f"airflow-{self.dag.dag_id}-{run_id}"
        self.home = home
        self.events: dict[Any, Any] = defaultdict(SimpleNamespace)
        self.xcoms = Xcoms()
        given = {name: param.value for name, param in self.dag.params.items()} | params
        self.context = {
            "dag": self.dag,
            "run_id": run_id,
            "params": given,
            "ti": self.xcoms,
            "data_interval_start": DAY,
            "dag_run": SimpleNamespace(conf=conf),
            "outlet_events": self.events,
        }

    def start(self) -> dict[str, Any]:
        operator = self.dag.get_task("start")
        operator.render_template_fields(self.context)
        return self._kept("start", operator.execute(self.context))

    def bundles(self, step: str) -> list[dict[str, Any]]:
        return self._kept(f"ranges.{step}", self.dag.get_task(f"ranges.{step}").execute(self.context))

    def bundle(self, step: str, reference: dict[str, Any]) -> dict[str, Any]:
        return self._kept(
            f"{step}.{reference['index']}", self.operator(step, reference).execute(self.context)
        )

    def operator(self, step: str, reference: dict[str, Any]) -> Any:
        from dataflow_ops.airflow.operators import Bundle

        return Bundle(
            task_id=step, step=step, home=str(self.home), dataset=self.dataset, cores=0, bundle=reference
        )

    def finish(self) -> dict[str, Any]:
        return self._kept("publish", self.dag.get_task("publish").execute(self.context))

    def gate(self) -> dict[str, Any]:
        return self._kept("gate", self.dag.get_task("gate").execute(self.context))

    @property
    def told(self) -> list[dict[str, Any]]:
        """What asset events say that tasks have set so far."""
        return [event.extra for event in self.events.values()]

    def all(self) -> dict[str, Any]:
        from dataflow_ops.pipeline.flow import STEPS

        self.start()
        for step, _, _ in STEPS[1:]:
            for reference in self.bundles(step):
                self.bundle(step, reference)
        return self.finish()

    def _kept(self, task: str, value: Any) -> Any:
        self.xcoms.values[task] = value
        return value
