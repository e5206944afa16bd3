"""DAGs from job files. Runs every time Airflow parses the folder, so it reads YAML and nothing heavier."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any, Final, Literal

from airflow.sdk import (  # noqa: TID253 - this package is where Airflow belongs
    DAG,
    CronDataIntervalTimetable,
    TaskGroup,
)

from dataflow_ops.airflow.approval import Approval, answer_form
from dataflow_ops.airflow.assets import asset_of
from dataflow_ops.airflow.docs import dag_doc
from dataflow_ops.airflow.gate import Gate
from dataflow_ops.airflow.operators import Bundle, Finish, Ranges, Start
from dataflow_ops.airflow.params import form
from dataflow_ops.airflow.places import RETRIES
from dataflow_ops.airflow.retry import OnlyWhereItHelps
from dataflow_ops.airflow.steps import CPU, LAYER_TITLES, shown
from dataflow_ops.errors import ConfigError
from dataflow_ops.job_file import load_job
from dataflow_ops.pipeline.flow import LAYERS, STEPS
from dataflow_ops.settings import JobSettings

Mode = Literal["full", "incremental"]

RUNS: Final[dict[str, int]] = {"full": 1, "incremental": 4}
"""Most runs of a DAG at a time."""
PAUSES: Final = {
    "retry_delay": dt.timedelta(seconds=10),
    "retry_exponential_backoff": 2,
    "max_retry_delay": dt.timedelta(minutes=2),
}
"""Before another try: soon, since mostly a worker was lost, then ever later; ten minutes in all."""
SINCE: Final = dt.datetime(2000, 1, 1, tzinfo=dt.UTC)
"""Airflow makes no task of a run of an earlier day; a backfill may reach far back."""


def corpus_dag(
    job: Path,
    home: Path,
    *,
    mode: Mode = "full",
    cores: int = 1,
    retries: int = RETRIES,
    settings: JobSettings | None = None,
) -> DAG:
    """The DAG ``<dataset>__<mode>`` of one job file.

    Task groups follow the layers; each step is one mapped task over the bundles of partitions that
    ``start`` fixed. Only references (run id, bundle number) travel between tasks. Tasks further down weigh
    more, so that a run that has begun goes ahead of one that has not.

    Args:
        job: job file.
        home: DataFlow's home folder (state and storage), as ``--home`` of the command line.
        mode: ``full`` (weekly unless the job says otherwise) or ``incremental`` (daily).
        cores: worker processes inside one task.
        retries: of each Airflow task; they cover lost workers, what fails in a chunk is tried again inside.
        settings: what the job file says, where it was read already.

    Raises:
        ConfigError: the job file is wrong; it says where.
    """
    settings = settings or load_job(job)
    dataset, zone = settings.dataset.id, settings.dataset.timezone
    cron = getattr(settings.schedule, mode)
    if cron is not None:
        _check_schedule(mode, cron, zone)
    common = {"home": str(home), "dataset": dataset}
    with DAG(
        dag_id=f"{dataset}__{mode}",
        # Whoever makes DAGs only to see whether they can be made must not give them to Airflow.
        auto_register=False,
        description=settings.dataset.description or f"Makes versions of {dataset} ({mode})",
        schedule=None if cron is None else CronDataIntervalTimetable(cron, timezone=zone),
        start_date=SINCE,
        catchup=False,
        max_active_runs=RUNS[mode],
        # What runs by itself is switched on by a person; the rest may be triggered at once.
        is_paused_upon_creation=cron is not None,
        tags=["dataflow", dataset, mode],
        doc_md=dag_doc(dataset, mode, job.name, cron, zone),
        params=form(),
        default_args={
            "queue": CPU,
            "retries": retries,
            **PAUSES,
            "retry_policy": OnlyWhereItHelps(),
            "weight_rule": "upstream",
        },
    ) as dag:
        start = Start(
            task_id="start", task_display_name="Start · 开始", job=str(job.absolute()), mode=mode, **common
        )
        last = _steps(start, cores, common)
        publish = Finish(
            task_id="publish",
            task_display_name="Publish · 发布",
            trigger_rule="none_failed",
            outlets=[asset_of(dataset)],
            **common,
        )
        approval = Approval(
            task_id="approval",
            task_display_name="Approval · 批准",
            params=answer_form(),
            outlets=[asset_of(dataset)],
            **common,
        )
        gate = Gate(task_id="gate", task_display_name="Gate · 结论", trigger_rule="all_done", **common)
        last >> publish >> approval >> gate
    return dag


def _check_schedule(mode: Mode, cron: str, zone: str) -> None:
    """Ask Airflow for the next run, as its DAG processor will: what it can't answer takes all DAGs along.

    Raises:
        ConfigError: no cron expression, one that never comes, or a time zone that Airflow does not know.
    """
    import pendulum
    from airflow.exceptions import AirflowTimetableInvalid
    from airflow.timetables.base import TimeRestriction
    from airflow.timetables.interval import CronDataIntervalTimetable as Timetable

    try:
        timetable = Timetable(cron, timezone=zone)
        timetable.validate()
        since = TimeRestriction(pendulum.instance(SINCE), None, catchup=False)
        timetable.next_dagrun_info(last_automated_data_interval=None, restriction=since)
    except (AirflowTimetableInvalid, ValueError, OSError) as e:
        raise ConfigError(
            f"schedule.{mode} {cron!r} in time zone {zone} gives no moment ({e}); write minute, hour, day,"
            " month and weekday, like '0 3 * * 0'"
        ) from e


def _steps(start: Start, cores: int, common: dict[str, str]) -> Any:
    """The steps one after the other, grouped by layer; return the last one."""
    ranges: dict[str, Any] = {}
    with TaskGroup("ranges", group_display_name="Bundles · 分组"):
        for step, _, _ in STEPS[1:]:
            ranges[step] = Ranges(task_id=step, task_display_name=shown(step).title, step=step)
            start >> ranges[step]
    previous: Any = start
    for layer in LAYERS:
        with TaskGroup(layer, group_display_name=LAYER_TITLES.get(layer, layer)):
            for step, of, _ in STEPS:
                if of != layer or step == "discover":
                    continue
                task = Bundle.partial(
                    task_id=step,
                    task_display_name=shown(step).title,
                    doc_md=shown(step).what,
                    step=step,
                    cores=cores,
                    queue=shown(step).queue,
                    trigger_rule="none_failed",
                    map_index_template="{{ task.name }}",
                    **common,
                ).expand(bundle=ranges[step].output)
                previous >> task
                previous = task
    return previous
