"""Operators: thin callers of the same driver that the command line uses. Nothing heavy at import."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from airflow.sdk import BaseOperator  # noqa: TID253 - this package is where Airflow belongs

from dataflow_ops.airflow.triggers import ResumeTrigger


class Start(BaseOperator):
    """Lists the sources, creates (or takes up) the run, and fixes how many bundles each step has."""

    template_fields: Sequence[str] = ("overrides", "until", "promote")

    def __init__(self, *, job: str, home: str, mode: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.job = job
        self.home = home
        self.mode = mode
        self.overrides = "{{ params.overrides | tojson }}"
        self.until = "{{ params.until or '' }}"
        self.promote = "{{ params.promote | tojson }}"

    def execute(self, context: Any) -> dict[str, Any]:
        """Return the run's id, its last layer, whether to promote, and bundles by partitioning."""
        import dataclasses
        import json

        from dataflow_ops.pipeline.bundles import start_run

        started = start_run(
            Path(self.job),
            Path(self.home),
            mode=self.mode,
            run_id=f"airflow-{context['dag'].dag_id}-{context['run_id']}",
            overrides=json.loads(self.overrides),
            until=self.until or None,
            promote=json.loads(self.promote),
            # A run by hand has no interval, and may have no logical date either.
            moment=context.get("data_interval_start") or context.get("logical_date"),
            log=self.log.info,
        )
        return dataclasses.asdict(started)


class Ranges(BaseOperator):
    """Lists one partitioning's bundles: Airflow maps over return values only."""

    def __init__(self, *, partitioning: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.partitioning = partitioning

    def execute(self, context: Any) -> list[dict[str, Any]]:
        """References to the bundles that steps of this partitioning are mapped over."""
        started = context["ti"].xcom_pull(task_ids="start")
        of = started["bundles"][self.partitioning]
        return [
            {"run_id": started["run_id"], "until": started["until"], "index": i, "of": of} for i in range(of)
        ]


class Bundle(BaseOperator):
    """Runs one step on one bundle of partitions."""

    def __init__(self, *, step: str, home: str, cores: int, bundle: Any = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.step = step
        self.home = home
        self.cores = cores
        self.bundle = bundle

    def execute(self, context: Any, event: Any = None) -> dict[str, Any]:
        """Run what is open in the bundle; return its counts. A dead chunk is no failure: state has it.

        A paused run gives the slot back and uses no retry; the trigger calls this method again.
        """
        from dataflow_ops.pipeline.bundles import run_bundle
        from dataflow_ops.pipeline.driver import RunPaused

        try:
            return run_bundle(Path(self.home), self.step, self.bundle, self.cores, log=self.log.info)
        except RunPaused:
            self.log.info("Paused; go on with: dataflow resume, or clear the pause flag")
            self.defer(trigger=ResumeTrigger(self.home, self.bundle["run_id"]), method_name="execute")
            raise  # not reached: to defer is to raise


class Finish(BaseOperator):
    """Publishes the version and ends the run; fails when state says that something failed."""

    def __init__(self, *, home: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.home = home

    def execute(self, context: Any) -> dict[str, Any]:
        """Return the version's id, where its manifest is, the run's state, and whether it is current."""
        from dataflow_ops.pipeline.bundles import finish_run

        started = context["ti"].xcom_pull(task_ids="start")
        return finish_run(
            Path(self.home),
            started["run_id"],
            started["until"],
            promote=started["promote"],
            log=self.log.info,
        )
