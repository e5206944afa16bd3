"""Routes of the product page. Plain functions: the server runs them in threads of its own."""

from __future__ import annotations

from typing import Annotated, Any
from urllib.parse import urlencode

from airflow.api_fastapi.common.db.common import SessionDep
from airflow.api_fastapi.core_api.security import GetUserDep
from fastapi import APIRouter, Depends
from fastapi.responses import HTMLResponse
from pydantic import BaseModel, Field

from dataflow_ops.console import document as documents
from dataflow_ops.console import rules_view, versions_view
from dataflow_ops.console import search as searching
from dataflow_ops.console import today as overview
from dataflow_ops.console.place import NotThere
from dataflow_ops.console.said import fault
from dataflow_ops.errors import ConfigError, VersionError
from dataflow_ops.pipeline.diff import diff_versions
from dataflow_ui.asset_events import announce
from dataflow_ui.audit_log import acts
from dataflow_ui.dag_facts import AirflowDags
from dataflow_ui.house import PlaceDep
from dataflow_ui.rights import NoRight, Subject, asked_about, full_dag, may, needs
from dataflow_ui.run_routes import report_response

router = APIRouter(prefix="/api")

_READ = Depends(needs("read"))
_TEXT = Depends(needs("read", "text"))


class Decision(BaseModel):
    """What a person decides about a version."""

    dataset: str
    version: str
    note: str = Field(default="", max_length=4000)


class Query(BaseModel):
    """What is looked for: a pasted text may be longer than an address."""

    q: str
    dataset: str = ""
    by: str = "auto"


@router.get("/today")
def today(place: PlaceDep, user: GetUserDep, session: SessionDep) -> dict[str, Any]:
    """Every data set that the user may read; ``complete`` once nothing is being added up any more.

    ``act`` says of each whether the user may decide what waits.
    """
    known: list[bool] = []

    def letters(dataset: str) -> dict[str, int]:
        found, there = place.sums.any(
            ("open letters", dataset), lambda: overview.open_letters(place.state, dataset)
        )
        known.append(there)
        return found or {}

    def totals(run: str) -> dict[str, Any]:
        found, there = place.sums.totals(run)
        known.append(there)
        return found

    found = overview.today(
        place.home,
        place.state,
        AirflowDags(session),
        readable=lambda dataset: may(user, "read", full_dag(dataset)),
        totals=totals,
        letters=letters,
    )
    for row in found["datasets"]:
        row["act"] = may(user, "act", full_dag(row["dataset"]))
    return {**found, "complete": all(known)}


@router.get("/search")
def search(place: PlaceDep, user: GetUserDep, q: str, dataset: str = "", by: str = "auto") -> dict[str, Any]:
    """Where something is, in the data sets that the user may read."""
    return _search(place, user, Query(q=q, dataset=dataset, by=by))


@router.post("/search", dependencies=[Depends(asked_about)])
def search_text(place: PlaceDep, user: GetUserDep, query: Query) -> dict[str, Any]:
    """The same for long texts."""
    return _search(place, user, query)


def _search(place: Any, user: Any, query: Query) -> dict[str, Any]:
    if query.dataset and not may(user, "read", full_dag(query.dataset)):
        raise fault(NoRight, "no_right", rights="read", where=full_dag(query.dataset))
    return searching.search(
        place.home,
        place.state,
        query.q,
        by=query.by,
        dataset=query.dataset or None,
        with_text=lambda dataset: may(user, "text", full_dag(dataset)),
        readable=lambda dataset: may(user, "read", full_dag(dataset)),
    )


@router.get("/document", dependencies=[_READ])
def document(
    place: PlaceDep, user: GetUserDep, dataset: str, doc_id: str, version: str = ""
) -> dict[str, Any]:
    """What became of one document; its text for those who may read it."""
    _known(place, dataset, version)
    try:
        return documents.document(
            place.home,
            place.state,
            doc_id,
            dataset=dataset,
            version=version or None,
            with_text=may(user, "text", full_dag(dataset)),
        )
    except ConfigError as e:
        raise NotThere(str(e)) from e


@router.get("/versions", dependencies=[_READ])
def versions(place: PlaceDep, session: SessionDep, dataset: str) -> dict[str, Any]:
    """The time line of a data set."""
    found = versions_view.timeline(place.home, place.state, dataset, AirflowDags(session))
    for row in found["versions"]:
        asked = urlencode({"dataset": dataset, "version": row["version"]})
        row["report"] = f"dataflow/api/versions/report?{asked}" if row["report"] else None
    return found


@router.get("/versions/report", dependencies=[_TEXT])
def report(place: PlaceDep, dataset: str, version: str) -> HTMLResponse:
    """A version's report, as it was published."""
    try:
        text = versions_view.report_text(place.home, place.state, dataset, version)
    except VersionError as e:
        gone = NotThere(str(e))
        gone.said = e.said
        raise gone from e
    return report_response(text)


@router.get("/versions/diff", dependencies=[_READ])
def diff(place: PlaceDep, dataset: str, a: str, b: str) -> dict[str, Any]:
    """Two versions of a data set side by side."""
    for version in (a, b):
        _known(place, dataset, version)
    return diff_versions(place.home, place.state, a, b, dataset=dataset)


@router.post("/versions/approve")
def approve(
    place: PlaceDep,
    user: GetUserDep,
    session: SessionDep,
    decision: Decision,
    _: Annotated[Subject, Depends(acts("approve"))],
) -> dict[str, Any]:
    """Let a version that waits become current."""
    return _decide("approve", place, user, session, decision)


@router.post("/versions/reject")
def reject(
    place: PlaceDep,
    user: GetUserDep,
    session: SessionDep,
    decision: Decision,
    _: Annotated[Subject, Depends(acts("reject"))],
) -> dict[str, Any]:
    """Refuse a version."""
    return _decide("reject", place, user, session, decision)


@router.post("/versions/rollback")
def rollback(
    place: PlaceDep,
    user: GetUserDep,
    session: SessionDep,
    decision: Decision,
    _: Annotated[Subject, Depends(acts("rollback"))],
) -> dict[str, Any]:
    """Go back to an older version; the answer names who started on the one that is left."""
    return _decide("rollback", place, user, session, decision)


def _decide(
    action: versions_view.Action, place: Any, user: Any, session: Any, decision: Decision
) -> dict[str, Any]:
    _known(place, decision.dataset, decision.version)
    done = versions_view.decide(
        place.home,
        place.state,
        action,
        decision.dataset,
        decision.version,
        who=user.get_name(),
        note=decision.note,
        dags=AirflowDags(session),
    )
    if action == "reject" or done["code"] == "was_current":
        return done
    return {**done, "event": announce(place, session, decision.dataset, decision.version)}


@router.get("/rules", dependencies=[_READ])
def rules(place: PlaceDep, dataset: str, version: str = "") -> dict[str, Any]:
    """The rules of a version."""
    _known(place, dataset, version)
    return rules_view.rules(place.home, place.state, dataset, version or None)


def _known(place: Any, dataset: str, version: str) -> None:
    """Raise :class:`NotThere` unless the data set has the version (any, where none is named)."""
    there = [v.version_id for v in place.state.versions(dataset)]
    if not there:
        raise fault(NotThere, "no_version_yet", dataset=dataset)
    if version and version not in there:
        raise fault(NotThere, "no_such_version", version=version, dataset=dataset)
