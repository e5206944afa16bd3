"""The DAG that keeps a home tidy: what nobody needs any more is removed once a day."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

from airflow.sdk import (  # noqa: TID253 - this package is where Airflow belongs
    DAG,
    BaseOperator,
    CronTriggerTimetable,
    Param,
)

from dataflow_ops.airflow import places
from dataflow_ops.airflow.dag_factory import SINCE
from dataflow_ops.airflow.object_store import use_connection
from dataflow_ops.airflow.retry import OnlyWhereItHelps

DAG_ID = "dataflow_maintenance"
_DOC = """
Removes what nobody needs any more: temporary and staging files past their grace period, versions past their
retention; compacts current versions that build on many days, where a job says so
(`output.compact_after_days`); moves what is old and seldom read to the home's cold folder, if it has one
(`docs/tiers.md`); rolls state up. With *dry run* it only says in the log what it would do.

清理过期的临时文件和旧版本，按作业设置合并版本链（`output.compact_after_days`），把陈旧且很少读取的文件移到冷存储（若已设置），并汇总状态。勾选试运行则只在日志中列出。

In a terminal: `dataflow maintenance`, `dataflow maintenance --dry-run`
"""


class Maintain(BaseOperator):
    """Runs the maintenance of a home.

    Args:
        home: DataFlow's home folder.
    """

    template_fields = ("only_tell",)

    def __init__(self, *, home: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.home = home
        self.only_tell = "{{ params.dry_run | tojson }}"

    def execute(self, context: Any) -> dict[str, Any]:
        """Return what was removed, in numbers."""
        import json

        from dataflow_ops.pipeline.home import open_home
        from dataflow_ops.pipeline.maintenance import maintain

        use_connection()
        return maintain(
            open_home(Path(self.home)),
            cold_after_days=places.cold_after_days(),
            dry_run=json.loads(self.only_tell),
            log=self.log.info,
        )


def maintenance_dag(home: Path) -> DAG:
    """The DAG, daily at 04:30 UTC.

    Args:
        home: DataFlow's home folder.
    """
    with DAG(
        dag_id=DAG_ID,
        description="Removes what nobody needs any more; rolls state up",
        schedule=CronTriggerTimetable("30 4 * * *", timezone="UTC"),
        start_date=SINCE,
        catchup=False,
        max_active_runs=1,
        tags=["dataflow"],
        doc_md=_DOC.strip(),
        params={
            "dry_run": Param(
                False,
                type="boolean",
                title="Dry run · 试运行",
                description="Only says what would be removed. 只列出将被清理的内容。",
            )
        },
        default_args={
            "retries": 2,
            "retry_delay": dt.timedelta(minutes=5),
            "retry_policy": OnlyWhereItHelps(),
        },
    ) as dag:
        Maintain(task_id="maintain", task_display_name="Maintain · 维护", home=str(home))
    return dag
