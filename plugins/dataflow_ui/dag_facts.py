"""What Airflow's own database knows of the DAGs that make data sets, and of those that start on versions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from airflow.models.asset import AssetEvent, AssetModel
from airflow.models.dag import DagModel, DagTag
from sqlalchemy import select
from sqlalchemy.orm import Session, selectinload

from dataflow_ops.console.dags import Consumer, DagFact
from dataflow_ops.pipeline.announce import asset_name
from dataflow_ui.rights import MODES

TAG = "dataflow"
"""Of every DAG that makes a data set."""
EVENTS = 500
"""Newest asset events of a data set that are looked at."""


class AirflowDags:
    """The :class:`~dataflow_ops.console.dags.DagFacts` of the Airflow that serves the pages.

    Args:
        session: of its metadata database.
    """

    def __init__(self, session: Session) -> None:
        self._session = session

    def dags(self) -> Sequence[DagFact]:
        """DAGs with the tag and a name ``<data set>__<mode>``; those whose file is gone are left out."""
        tagged = select(DagTag.dag_id).where(DagTag.name == TAG)
        query = select(DagModel).where(DagModel.dag_id.in_(tagged), DagModel.is_stale.is_(False))
        found = []
        for dag in self._session.scalars(query.order_by(DagModel.dag_id)):
            dataset, _, mode = dag.dag_id.rpartition("__")
            if dataset and mode in MODES:
                found.append(
                    DagFact(
                        dag.dag_id,
                        dataset,
                        mode,
                        dag.description or "",
                        _schedule(dag.timetable_summary),
                        None if dag.is_paused else _seconds(dag.next_dagrun_create_after),
                        bool(dag.is_paused),
                    )
                )
        return found

    def is_gone(self, dag_id: str) -> bool:
        """Whether no file makes this DAG any more."""
        stale = self._session.scalar(select(DagModel.is_stale).where(DagModel.dag_id == dag_id))
        return stale is None or bool(stale)

    def consumers(self, dataset: str) -> Mapping[str, Sequence[Consumer]]:
        """Runs that the asset events of a data set's versions started, newest first."""
        query = (
            select(AssetEvent)
            .join(AssetModel, AssetModel.id == AssetEvent.asset_id)
            .where(AssetModel.name == asset_name(dataset))
            .order_by(AssetEvent.timestamp.desc())
            .limit(EVENTS)
            .options(selectinload(AssetEvent.created_dagruns))
        )
        found: dict[str, dict[tuple[str, str], Consumer]] = {}
        for event in self._session.scalars(query):
            version = (event.extra or {}).get("version")
            for run in event.created_dagruns if version else ():
                one = Consumer(
                    run.dag_id, run.run_id, _seconds(run.queued_at or run.start_date), str(run.state)
                )
                # The same run may have been started by two events of one version.
                found.setdefault(str(version), {}).setdefault((run.dag_id, run.run_id), one)
        return {
            version: sorted(runs.values(), key=lambda c: (-(c.at or 0.0), c.dag_id, c.run_id))
            for version, runs in found.items()
        }


def _schedule(summary: str | None) -> str:
    return "" if summary in (None, "None") else str(summary)


def _seconds(moment: datetime | None) -> float | None:
    return None if moment is None else moment.timestamp()
