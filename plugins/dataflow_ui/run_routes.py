"""Routes of the run tab. Plain functions: they ask a database, so the server runs them in threads."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from airflow.api_fastapi.common.db.common import SessionDep
from airflow.api_fastapi.core_api.security import GetUserDep
from fastapi import APIRouter, Depends
from fastapi.responses import HTMLResponse
from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy.orm import Session

from dataflow_ops.console import (
    actions,
    layers_view,
    letters_view,
    parameters_view,
    report_view,
    reviews,
    run_view,
    where_view,
)
from dataflow_ops.console.dags import origin_of
from dataflow_ops.console.place import Place
from dataflow_ui.audit_log import acts
from dataflow_ui.dag_facts import AirflowDags
from dataflow_ui.house import PlaceDep
from dataflow_ui.rights import RIGHTS, may, needs, subject_of

router = APIRouter(prefix="/api")

reads = Depends(needs("read"))
reads_text = Depends(needs("read", "text"))
Text = Annotated[str, Field(max_length=2_000)]

REPORT_POLICY = (
    "sandbox allow-scripts allow-popups; default-src 'none'; script-src 'unsafe-inline';"
    " style-src 'unsafe-inline'; img-src data:; font-src data:; frame-ancestors 'self'; base-uri 'none';"
    " form-action 'none'"
)
"""The report is one file: nothing from elsewhere, and no reach into the page around it or its cookies."""


class Body(BaseModel):
    """What a POST says about a run."""

    model_config = ConfigDict(extra="forbid")

    run: Text


class Review(Body):
    """A verdict on a removed document."""

    doc_id: Text
    rule: Text
    verdict: Literal["keep", "drop", ""]
    note: Text = ""


class Group(Body):
    """A group of dead letters, or one of them by its id."""

    error: Text
    step: Text
    letter: Text = ""


class Scoped(Body):
    """Whom a flag is for."""

    scope: Literal["run", "dataset", "all"] = "run"


class Pause(Scoped):
    """A pause and its reason."""

    why: Text = ""


class Cancel(Body):
    """Why it is cancelled."""

    why: Text = ""


class Urgent(Body):
    """Whether a run goes first."""

    urgent: bool


@router.get("/me")
def me(user: GetUserDep, place: PlaceDep, dataset: str = "", run: str = "") -> dict[str, Any]:
    """Who is asking, and what they may do with a data set, or with a run."""
    dags = subject_of(place, {"run": run, "dataset": dataset}).dag_ids
    found: dict[str, Any] = {right: all(may(user, right, dag_id) for dag_id in dags) for right in RIGHTS}
    return {"user": user.get_name()} | found


@router.get("/run", dependencies=[reads])
def run_(run: str, place: PlaceDep, session: SessionDep) -> dict[str, Any]:
    """The top of the page."""
    return _summary(place, session, run)


@router.get("/run/layers", dependencies=[reads])
def layers(run: str, place: PlaceDep) -> dict[str, Any]:
    """The funnel."""
    return layers_view.layers(place, run)


@router.get("/run/where", dependencies=[reads])
def where(run: str, place: PlaceDep, layer: str = "") -> dict[str, Any]:
    """What it works on."""
    return where_view.where(place, run, layer or None)


@router.get("/run/removed", dependencies=[reads_text])
def removed(
    run: str, place: PlaceDep, layer: str = "", rule: str = "", n: int = 6, seed: int = 0
) -> dict[str, Any]:
    """What it removed."""
    from dataflow_ops.console import removed_view  # Arrow and the rules: only where they are wanted

    return removed_view.removed(place, run, layer or None, rule or None, n, seed)


@router.post("/run/review", dependencies=[Depends(acts("review", "text"))])
def review(body: Review, user: GetUserDep, place: PlaceDep) -> dict[str, Any]:
    """Say whether a document was rightly removed."""
    reviews.review(place, body.run, body.doc_id, body.rule, body.verdict, user.get_name(), body.note)
    return {"ok": True}


@router.get("/run/reviews", dependencies=[reads])
def run_reviews(run: str, place: PlaceDep) -> dict[str, Any]:
    """How many verdicts were given."""
    return reviews.counts(place, run)


@router.get("/run/letters", dependencies=[reads])
def letters(run: str, place: PlaceDep, layer: str = "") -> dict[str, Any]:
    """Dead letters by what went wrong."""
    return letters_view.letters(place, run, layer or None)


@router.get("/run/letters/group", dependencies=[reads])
def letters_of_group(run: str, error: str, step: str, place: PlaceDep, after: str = "") -> dict[str, Any]:
    """The dead letters of one group, a page at a time."""
    return letters_view.page(place, run, error, step, after)


@router.post("/run/letters/retry", dependencies=[Depends(acts("letters.retry"))])
def retry_letters(body: Group, place: PlaceDep) -> dict[str, Any]:
    """Put a group, or one letter of it, back for another try."""
    number = letters_view.change(place, body.run, "retry", body.error, body.step, body.letter)
    return {"retried": number, **letters_view.told(place, body.run, "retry", number)}


@router.post("/run/letters/drop", dependencies=[Depends(acts("letters.drop"))])
def drop_letters(body: Group, place: PlaceDep) -> dict[str, Any]:
    """Give a group, or one letter of it, up."""
    number = letters_view.change(place, body.run, "drop", body.error, body.step, body.letter)
    return {"dropped": number, **letters_view.told(place, body.run, "drop", number)}


@router.get("/run/parameters", dependencies=[reads])
def parameters(run: str, place: PlaceDep) -> dict[str, Any]:
    """Settings against those of the run before."""
    return parameters_view.parameters(place, run)


@router.get("/run/report", dependencies=[reads_text])
def report(run: str, place: PlaceDep) -> HTMLResponse:
    """The report of the run's version; it quotes documents."""
    return report_response(report_view.report_of_run(place, run))


@router.post("/run/pause", dependencies=[Depends(acts("pause"))])
def pause(body: Pause, user: GetUserDep, place: PlaceDep, session: SessionDep) -> dict[str, Any]:
    """Ask it to pause."""
    actions.pause(place, body.run, body.scope, user.get_name(), body.why)
    return _summary(place, session, body.run)


@router.post("/run/resume", dependencies=[Depends(acts("resume"))])
def resume(body: Scoped, user: GetUserDep, place: PlaceDep, session: SessionDep) -> dict[str, Any]:
    """Let it go on."""
    actions.resume(place, body.run, body.scope, user.get_name())
    return _summary(place, session, body.run)


@router.post("/run/cancel", dependencies=[Depends(acts("cancel"))])
def cancel(body: Cancel, user: GetUserDep, place: PlaceDep, session: SessionDep) -> dict[str, Any]:
    """End it for good."""
    actions.cancel(place, body.run, user.get_name(), body.why)
    return _summary(place, session, body.run)


@router.post("/run/urgent", dependencies=[Depends(acts("urgent"))])
def urgent(body: Urgent, user: GetUserDep, place: PlaceDep, session: SessionDep) -> dict[str, Any]:
    """Let it go first."""
    actions.hurry(place, body.run, body.urgent, user.get_name())
    return _summary(place, session, body.run)


def _summary(place: Place, session: Session, run: str) -> dict[str, Any]:
    dag_id, _ = origin_of(place.state.get_run(run))
    return run_view.summary(place, run, dag_gone=dag_id is not None and AirflowDags(session).is_gone(dag_id))


def report_response(page: str) -> HTMLResponse:
    """A report as an answer that can do no harm to the page it is shown in."""
    headers = {
        "content-security-policy": REPORT_POLICY,
        "x-content-type-options": "nosniff",
        "referrer-policy": "no-referrer",
        "cache-control": "private, no-cache",
    }
    return HTMLResponse(page, headers=headers)
