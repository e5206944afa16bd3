"""The DAG of the samples flow: four tasks in a row, each left out where the form wants nothing of it."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from airflow.sdk import DAG  # noqa: TID253 - this package is where Airflow belongs

from dataflow_ops.airflow.dag_factory import PAUSES, SINCE
from dataflow_ops.airflow.places import RETRIES
from dataflow_ops.airflow.retry import OnlyWhereItHelps
from dataflow_ops.airflow.samples_augment import AugmentSamples
from dataflow_ops.airflow.samples_form import samples_form
from dataflow_ops.airflow.samples_operators import CleanSamples, ExportSamples, ImportSamples
from dataflow_ops.airflow.samples_work import SAMPLES
from dataflow_ops.airflow.steps import CPU, LLM

RUNS: Final = 8
"""Most runs at a time; runs of one data set that want the same share the work."""
_DOC: Final = """
Dialogues for fine-tuning: **import** → **clean** → **augment** → **export**, as the form says.

**Run it**: *Trigger*, name the data set, fill in what is wanted. Nothing is done twice: files that are there
are not imported again, a stored answer is not asked for again, a task that did the same with the same rows
is taken as it is. **Stop and go on**: *Pause* on the run's DataFlow tab or on the *DataFlow* page, *Samples*;
it ends at the next batch, the slot is free, and *Resume* goes on from there. A budget that is used up pauses,
too. **A lost worker** is tried again and goes on where the last batch was written.

对话样本：导入 → 清洗 → 增强 → 导出。已完成的工作会自动跳过；暂停在当前批次结束后生效，恢复后从断点继续；
预算用完时自动暂停。

| here | in a terminal |
|---|---|
| where it stands | `dataflow samples tasks` |
| Pause, Resume, Cancel | `dataflow samples pause TASK`, `… resume TASK`, `… cancel TASK` |
| failure queue | `dataflow samples failures list` |

More: `docs/samples-in-airflow.md`
"""


def samples_dag(home: Path, templates: Path, *, retries: int = RETRIES) -> DAG:
    """The DAG ``samples``; it runs when it is triggered.

    Args:
        home: DataFlow's home folder.
        templates: folder of templates for augmentations.
        retries: of each task; they cover lost workers and servers that restart.
    """
    with DAG(
        dag_id=SAMPLES,
        description="Dialogues for fine-tuning: import, clean, augment, export",
        schedule=None,
        start_date=SINCE,
        catchup=False,
        max_active_runs=RUNS,
        is_paused_upon_creation=False,
        tags=["dataflow", "samples"],
        doc_md=_DOC.strip(),
        params=samples_form(templates),
        default_args={
            "queue": CPU,
            "retries": retries,
            **PAUSES,
            "retry_policy": OnlyWhereItHelps(),
            # What the form does not want is skipped, and what comes after it is not.
            "trigger_rule": "none_failed",
        },
    ) as dag:
        common = {"home": str(home)}
        first = ImportSamples(task_id="import", task_display_name="Import · 导入", **common)
        second = CleanSamples(task_id="clean", task_display_name="Clean · 清洗", **common)
        third = AugmentSamples(
            task_id="augment",
            task_display_name="Augment · 增强",
            templates=str(templates),
            queue=LLM,
            **common,
        )
        last = ExportSamples(task_id="export", task_display_name="Export · 导出", **common)
        first >> second >> third >> last
    return dag
