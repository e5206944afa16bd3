"""Run in a child: Airflow's own app with the plugin in it, asked by people with several roles.

Arguments: DataFlow's home, a file of questions (JSON: ``[role, method, path, body]``), a file for answers.
"""

from __future__ import annotations

import datetime as dt
import json
import sys
import uuid
from pathlib import Path
from typing import Any


def main(questions: Path, answers: Path) -> None:
    from airflow.api_fastapi.app import create_app, get_auth_manager
    from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser
    from airflow.utils.db import initdb
    from fastapi.testclient import TestClient

    initdb()
    asked: dict[str, Any] = json.loads(questions.read_text(encoding="utf-8"))
    know(asked["version"])
    app = create_app(apps="core")
    found = []
    with TestClient(app, raise_server_exceptions=False) as client:
        for role, method, path, body in asked["questions"]:
            headers = {}
            if role:
                user = SimpleAuthManagerUser(username=f"the {role}", role=role)
                headers["authorization"] = f"Bearer {get_auth_manager().generate_jwt(user)}"
            answer = client.request(method, path, json=body, headers=headers)
            kind = answer.headers.get("content-type", "")
            content = answer.json() if "json" in kind else answer.text[:200]
            found.append({"status": answer.status_code, "body": content})
    told = {"answers": found, "log": log(), "events": events(), "waits": waits()}
    answers.write_text(json.dumps(told), encoding="utf-8")


def know(version: str) -> None:
    """Two DAGs of the data set, one of another, and a training run that started on the version."""
    from airflow.models.asset import AssetEvent, AssetModel
    from airflow.models.dag import DagModel, DagTag
    from airflow.models.dagbundle import DagBundleModel
    from airflow.models.dagrun import DagRun
    from airflow.utils.session import create_session
    from airflow.utils.types import DagRunTriggeredByType, DagRunType

    moment = dt.datetime(2026, 5, 1, 2, tzinfo=dt.UTC)
    with create_session() as session:
        session.add(DagBundleModel(name="dags"))
        session.flush()
        for dag_id, paused in (("tiny__full", False), ("tiny__incremental", True), ("train", False)):
            dag = DagModel(
                dag_id=dag_id, bundle_name="dags", fileloc="x.py", is_paused=paused, is_stale=False
            )
            dag.timetable_summary = "0 2 * * *" if dag_id == "tiny__full" else None
            dag.next_dagrun_create_after = moment
            session.add(dag)
            if dag_id != "train":
                session.add(DagTag(name="dataflow", dag_id=dag_id))
        asset = AssetModel(name="dataflow://tiny", uri="dataflow://tiny/", group="asset")
        session.add(asset)
        session.flush()
        event = AssetEvent(asset_id=asset.id, extra={"version": version}, timestamp=moment)
        run = DagRun(dag_id="train", run_id="asset__1", run_type=DagRunType.ASSET_TRIGGERED, run_after=moment)
        run.triggered_by = DagRunTriggeredByType.ASSET
        run.state = "success"
        event.created_dagruns.append(run)
        session.add_all([event, run])


def events() -> list[Any]:
    """What the asset events of the data set say, oldest first, without the one of :func:`know`."""
    import sqlalchemy as sa
    from airflow.models.asset import AssetEvent
    from airflow.utils.session import create_session

    with create_session() as session:
        return list(session.scalars(sa.select(AssetEvent.extra).order_by(AssetEvent.id)))[1:]


def waits() -> dict[str, Any]:
    """State of a DAG run and of its approval -> whether the page leaves the event to it; DAGs gone."""
    import sqlalchemy as sa
    from airflow.models.dag import DagModel
    from airflow.models.dagrun import DagRun
    from airflow.models.taskinstance import TaskInstance
    from airflow.utils.session import create_session
    from airflow.utils.types import DagRunTriggeredByType, DagRunType
    from dataflow_ui.asset_events import waits_for_answer
    from dataflow_ui.dag_facts import AirflowDags

    moment = dt.datetime(2026, 5, 1, 2, tzinfo=dt.UTC)
    found = {}
    with create_session() as session:
        for of_run, of_task in (
            ("running", "deferred"),
            ("running", None),
            ("running", "success"),
            ("running", "skipped"),
            ("success", "skipped"),
            ("failed", None),
        ):
            name = f"{of_run}-{of_task}"
            run = DagRun(
                dag_id="tiny__full", run_id=name, run_type=DagRunType.MANUAL, run_after=moment, state=of_run
            )
            run.triggered_by = DagRunTriggeredByType.TEST
            session.add(run)
            session.flush()
            row = {
                "id": uuid.uuid4(),
                "task_id": "approval",
                "dag_id": "tiny__full",
                "run_id": name,
                "map_index": -1,
                "pool": "default_pool",
                "pool_slots": 1,
                "queue": "default",
                "try_number": 1,
                "max_tries": 1,
                "priority_weight": 1,
                "state": of_task,
            }
            known = TaskInstance.__table__.c
            session.execute(
                sa.insert(TaskInstance.__table__).values({k: v for k, v in row.items() if k in known})
            )
            found[name] = waits_for_answer(session, "tiny__full", name)
        session.get(DagModel, "tiny__incremental").is_stale = True
        session.flush()
        gone = {name: AirflowDags(session).is_gone(name) for name in ("tiny__full", "tiny__incremental", "x")}
        found["gone"] = sorted(name for name, is_gone in gone.items() if is_gone)
        found["no such run"] = waits_for_answer(session, "tiny__full", "none")
        session.rollback()
    return found


def log() -> list[list[str | None]]:
    """The plugin's lines of the audit log."""
    import sqlalchemy as sa
    from airflow.models.log import Log
    from airflow.utils.session import create_session

    with create_session() as session:
        rows = session.execute(
            sa.select(Log.event, Log.owner, Log.dag_id).where(Log.event.like("dataflow.%")).order_by(Log.id)
        )
        return [list(row) for row in rows]


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
