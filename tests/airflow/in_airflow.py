"""Run in a child: DAG runs by Airflow itself, in this process, and what its database says of them."""

from __future__ import annotations

import datetime as dt
import json
import sys
from pathlib import Path
from typing import Any


def main() -> None:
    """Arguments: a file for what was found; then runs as JSON, each with ``dag``, ``date``, ``conf``."""
    from airflow.dag_processing.dagbag import DagBag

    out, *runs = sys.argv[1:]
    found = []
    for text in runs:
        run = json.loads(text)
        bag = DagBag()
        assert not bag.import_errors, bag.import_errors
        dagrun = bag.dags[run["dag"]].test(
            logical_date=dt.datetime.fromisoformat(run["date"]).replace(tzinfo=dt.UTC), run_conf=run["conf"]
        )
        found.append(told(dagrun))
    Path(out).write_text(json.dumps(found), encoding="utf-8")


def told(dagrun: Any) -> dict[str, Any]:
    """A finished run's state, its task instances, its last XCom and its asset events."""
    import sqlalchemy as sa
    from airflow.models.asset import AssetEvent, AssetModel
    from airflow.models.taskinstance import TaskInstance
    from airflow.models.xcom import XComModel
    from airflow.utils.session import create_session

    with create_session() as session:
        mine = (TaskInstance.dag_id == dagrun.dag_id, TaskInstance.run_id == dagrun.run_id)
        instances = session.scalars(sa.select(TaskInstance).where(*mine)).all()
        tasks = [
            {
                "id": t.task_id,
                "state": str(t.state.value if hasattr(t.state, "value") else t.state),
                "index": t.map_index,
                "name": t.rendered_map_index,
                "queue": t.queue,
                "pool": t.pool,
                "weight": t.priority_weight,
            }
            for t in instances
        ]
        values = session.execute(
            sa.select(XComModel.task_id, XComModel.value).where(
                XComModel.dag_id == dagrun.dag_id, XComModel.run_id == dagrun.run_id
            )
        ).all()
        events = session.execute(
            sa.select(AssetModel.name, AssetModel.uri, AssetEvent.extra, AssetEvent.source_task_id)
            .join(AssetModel, AssetModel.id == AssetEvent.asset_id)
            .where(AssetEvent.source_dag_id == dagrun.dag_id, AssetEvent.source_run_id == dagrun.run_id)
        ).all()
        return {
            "state": str(dagrun.state.value if hasattr(dagrun.state, "value") else dagrun.state),
            "run_id": f"airflow-{dagrun.dag_id}-{dagrun.run_id}",
            "tasks": tasks,
            "xcom": [[task, json.dumps(value)] for task, value in values],
            "events": [
                {"name": name, "uri": uri, "extra": extra, "task": task} for name, uri, extra, task in events
            ],
        }


if __name__ == "__main__":
    main()
