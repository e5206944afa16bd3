"""What a DAG's page says about it."""

from __future__ import annotations

_TEXT = """
Makes {what} of **{dataset}** from `{job}`. {when}

**Run it**: *Trigger*, fill in the form. Nothing is made twice: what is done already is skipped.
**Stop and go on**: *Pause* on the run's DataFlow tab; it ends at the next batch, the slot is free, and
*Resume* goes on from there. **Red or green** is decided by the task `gate`: dead letters are no failure.
**Approval**: a version that drifts too far waits for a person in the task `approval`, on the product page
(*DataFlow* in the navigation) or on the command line. **Dry run**: its answer stands on the run's DataFlow
tab, and by source in the log of the task `start`.

运行：点 *Trigger* 并填写表单；已完成的工作会自动跳过。暂停与恢复在运行页的 DataFlow 标签中。
变化过大的版本会等待批准，可在 `approval` 任务、导航中的 *DataFlow* 页面或命令行中处理。
试运行的结果显示在运行页的 DataFlow 标签中，明细见 `start` 任务的日志。

| here | in a terminal |
|---|---|
| Trigger | `dataflow run {job} --mode {mode}` |
| where it stands | `dataflow status` |
| Pause, Resume | `dataflow pause RUN`, `dataflow resume RUN` |
| dead letters | `dataflow dead-letters list`, `dataflow dead-letters retry` |
| decide about a version | `dataflow versions list`, `dataflow versions approve VERSION` |
| several days | `dataflow backfill {job} --from DAY --to DAY` |

`RUN` is `airflow-{dataset}__{mode}-` followed by the id that Airflow gives the run.
"""

_WHAT = {
    "full": "a whole new version",
    "incremental": "a version of the current one and one day (the start of the run's data interval)",
}


def dag_doc(dataset: str, mode: str, job: str, cron: str | None, zone: str) -> str:
    """Markdown: what the DAG does, and the command for each button."""
    when = f"By itself at `{cron}` ({zone}), once it is switched on." if cron else "It runs when triggered."
    return _TEXT.format(dataset=dataset, mode=mode, job=job, what=_WHAT[mode], when=when).strip()
