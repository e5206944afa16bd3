"""DAGs from job files. Runs every time Airflow parses the folder, so it reads YAML and nothing heavier."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import yaml
from airflow.sdk import DAG, Param, TaskGroup  # noqa: TID253 - this package is where Airflow belongs

from dataflow_ops.airflow.operators import Bundle, Finish, Ranges, Start
from dataflow_ops.pipeline.flow import LAYERS, STEPS


def corpus_dag(
    job: Path,
    home: Path,
    *,
    mode: str = "full",
    schedule: str | None = None,
    cores: int = 2,
    retries: int = 2,
) -> DAG:
    """The DAG ``<dataset>__<mode>`` of one job file.

    Task groups follow the layers; each step is one mapped task over the bundles of partitions that
    ``start`` fixed. Only references (run id, bundle number) travel between tasks.

    Args:
        job: job file.
        home: DataFlow's home folder (state and storage), as ``--home`` of the command line.
        mode: ``full``.
        schedule: cron expression, or None for runs on demand.
        cores: worker processes inside one task.
        retries: of each Airflow task; they cover lost workers, what fails in a chunk is tried again inside.
    """
    dataset = str(yaml.safe_load(job.read_text(encoding="utf-8"))["dataset"]["id"])
    with DAG(
        dag_id=f"{dataset}__{mode}",
        schedule=schedule,
        catchup=False,
        max_active_runs=1,
        tags=["dataflow", dataset],
        doc_md=f"Makes a version of **{dataset}** from `{job.name}`. In a terminal: `dataflow status`.",
        params={
            "until": Param(
                None,
                type=["null", "string"],
                enum=[None, *LAYERS],
                title="Stop after layer",
                description="Empty runs the whole way to a published version.",
            ),
            "overrides": Param(
                [],
                type="array",
                items={"type": "string"},
                title="Overrides",
                description="section.key=value, one a line; merged into the job before anything is hashed.",
            ),
            "promote": Param(
                False,
                type="boolean",
                title="Promote",
                description="With overrides: let the version become current. Without them it does anyway.",
            ),
        },
        default_args={"retries": retries, "retry_delay": timedelta(seconds=30)},
    ) as dag:
        previous: Any = Start(task_id="start", job=str(job), home=str(home), mode=mode)
        ranges: dict[str, Any] = {}
        with TaskGroup("ranges"):
            for by in dict.fromkeys(by for step, _, by in STEPS if step != "discover"):
                ranges[by] = Ranges(task_id=by, partitioning=by)
                previous >> ranges[by]
        for layer in LAYERS:
            with TaskGroup(layer):
                for step, of, by in STEPS:
                    if of != layer or step == "discover":
                        continue
                    task = Bundle.partial(
                        task_id=step, step=step, home=str(home), cores=cores, trigger_rule="none_failed"
                    ).expand(bundle=ranges[by].output)
                    previous >> task
                    previous = task
        previous >> Finish(task_id="publish", home=str(home))
    return dag
