"""Operators: thin callers of the same driver that the command line uses. Nothing heavy at import."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from airflow.sdk import BaseOperator  # noqa: TID253 - this package is where Airflow belongs


class Start(BaseOperator):
    """Lists the sources, creates (or takes up) the run, and fixes the bundles of every step."""

    template_fields: Sequence[str] = ("overrides", "until")

    def __init__(self, *, job: str, home: str, mode: str, cores: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.job = job
        self.home = home
        self.mode = mode
        self.cores = cores
        self.overrides = "{{ params.overrides | tojson }}"
        self.until = "{{ params.until or '' }}"

    def execute(self, context: Any) -> dict[str, Any]:
        """Return the run's id, its last layer, and one list of bundle references for each partitioning."""
        import json

        from dataflow_ops.pipeline.bundles import start_run

        lists = start_run(
            Path(self.job),
            Path(self.home),
            mode=self.mode,
            run_id=f"airflow-{context['dag'].dag_id}-{context['run_id']}",
            overrides=json.loads(self.overrides),
            until=self.until or None,
            log=self.log.info,
        )
        return {"run_id": lists.run_id, "until": lists.until, "bundles": lists.bundles}


class Ranges(BaseOperator):
    """Hands one partitioning's bundles on as a list of its own: Airflow maps over return values only."""

    def __init__(self, *, partitioning: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.partitioning = partitioning

    def execute(self, context: Any) -> list[dict[str, Any]]:
        """The bundles that steps of this partitioning are mapped over."""
        bundles: list[dict[str, Any]] = context["ti"].xcom_pull(task_ids="start")["bundles"][
            self.partitioning
        ]
        return bundles


class Bundle(BaseOperator):
    """Runs one step on one bundle of partitions."""

    def __init__(self, *, step: str, home: str, cores: int, bundle: Any = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.step = step
        self.home = home
        self.cores = cores
        self.bundle = bundle

    def execute(self, context: Any) -> dict[str, Any]:
        """Run what is open in the bundle; return its counts. A dead chunk is in state, no failure."""
        from dataflow_ops.pipeline.bundles import run_bundle

        return run_bundle(Path(self.home), self.step, self.bundle, self.cores, log=self.log.info)


class Finish(BaseOperator):
    """Publishes the version and ends the run; fails when state says that something failed."""

    def __init__(self, *, home: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.home = home

    def execute(self, context: Any) -> dict[str, Any]:
        """Return the version's id and where its manifest is."""
        from dataflow_ops.pipeline.bundles import finish_run

        started = context["ti"].xcom_pull(task_ids="start")
        return finish_run(Path(self.home), started["run_id"], started["until"], log=self.log.info)
