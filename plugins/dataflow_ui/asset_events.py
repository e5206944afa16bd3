"""Events of data sets' assets, created where the API server runs: as its own route for them does."""

from __future__ import annotations

from airflow.assets.manager import asset_manager
from airflow.models.asset import AssetModel
from airflow.models.dagrun import DagRun
from airflow.models.taskinstance import TaskInstance
from airflow.utils.state import State
from sqlalchemy import select
from sqlalchemy.orm import Session

from dataflow_ops.console.dags import origin_of
from dataflow_ops.console.place import Place
from dataflow_ops.pipeline.announce import APPROVAL, How, asset_name, event_of
from dataflow_ops.pipeline.versions import VersionBook


def announce(place: Place, session: Session, dataset: str, version: str) -> How:
    """Create the event of a version that somebody has just let through, unless its DAG run is about to.

    Args:
        place: DataFlow's home.
        session: of Airflow's database; whoever gives it commits.
        dataset: data set.
        version: its whole id.
    """
    with VersionBook(place.home) as versions:
        event = event_of(versions, version, dataset)
        dag_id, run_id = origin_of(versions.run_of(version, dataset))
    if dag_id and run_id and waits_for_answer(session, dag_id, run_id):
        return "by_dag_run"
    asset = session.scalar(select(AssetModel).where(AssetModel.name == asset_name(dataset)).limit(1))
    if asset is None:
        return "nobody"
    asset_manager.register_asset_change(asset=asset, extra=event, source_is_api=True, session=session)
    return "sent"


def waits_for_answer(session: Session, dag_id: str, run_id: str) -> bool:
    """Whether a DAG run goes on and has its task of approval still before it: that one tells."""
    query = (
        select(TaskInstance.state)
        .join(DagRun, (DagRun.dag_id == TaskInstance.dag_id) & (DagRun.run_id == TaskInstance.run_id))
        .where(
            DagRun.dag_id == dag_id,
            DagRun.run_id == run_id,
            DagRun.state.not_in(State.finished_dr_states),
            TaskInstance.task_id == APPROVAL,
        )
    )
    return any(state not in State.finished for state in session.scalars(query))
