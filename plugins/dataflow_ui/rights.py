"""Who may do what: three rights that follow the DAGs of a data set (docs/adr/0013-three-rights.md).

======  ===========================================================  =================================
right   for                                                          what Airflow is asked
======  ===========================================================  =================================
read    numbers, names, states                                       may this user *get* runs of the DAG
text    whatever shows the documents themselves                      may they *create* runs of the DAG
act     pausing, approving, retrying, …                              may they *edit* runs of the DAG
======  ===========================================================  =================================
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

from airflow.api_fastapi.app import get_auth_manager
from airflow.api_fastapi.auth.managers.models.base_user import BaseUser
from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity, DagDetails
from airflow.api_fastapi.core_api.security import GetUserDep
from airflow.models.dag import DagModel
from fastapi import Depends, HTTPException, Request

from dataflow_ops.console.place import Place
from dataflow_ops.console.said import fault
from dataflow_ops.errors import DataFlowError
from dataflow_ui.house import PlaceDep

Right = Literal["read", "text", "act"]
RIGHTS: tuple[Right, ...] = ("read", "text", "act")

MODES = ("full", "incremental")
_RUN = re.compile(rf"airflow-(?P<dag_id>.+?__(?:{'|'.join(MODES)}))-.+")
UNKNOWN = "?"
"""No DAG has this name: only who may read every DAG learns that there is no such run."""
BYTES = "application/octet-stream"
MARK = "x-dataflow"
"""A header that another site's form can't send; a bearer token does as well."""


class NoRight(DataFlowError):
    """The user lacks a right: the message names it."""


@dataclass(frozen=True, slots=True)
class Subject:
    """What a request is about.

    Attributes:
        dag_ids: the DAGs whose rights decide; all of them are asked.
        run: our run id, or empty.
        dataset: or empty.
        dag_run: the run's name in Airflow, or empty.
        everything: it concerns every data set.
    """

    dag_ids: tuple[str, ...]
    run: str = ""
    dataset: str = ""
    dag_run: str = ""
    everything: bool = False


def full_dag(dataset: str) -> str:
    """The DAG whose rights a data set follows."""
    return f"{dataset}__full"


def may(user: BaseUser, right: Right, dag_id: str) -> bool:
    """Whether a user has a right on a DAG."""
    manager = get_auth_manager()
    details = DagDetails(id=dag_id, team_name=DagModel.get_team_name(dag_id))

    def runs(method: Literal["GET", "POST", "PUT"]) -> bool:
        return manager.is_authorized_dag(
            method=method, access_entity=DagAccessEntity.RUN, details=details, user=user
        )

    if right == "text":
        return runs("GET") and (runs("POST") or _may_create(manager, user, dag_id))
    return runs("GET" if right == "read" else "PUT")


def may_act_on_all(user: BaseUser) -> bool:
    """Whether a user may act on every DAG there is."""
    manager = get_auth_manager()
    return manager.is_authorized_dag(method="PUT", user=user) and manager.is_authorized_dag(
        method="PUT", access_entity=DagAccessEntity.RUN, user=user
    )


def _may_create(manager: Any, user: BaseUser, dag_id: str) -> bool:
    """Whether FAB lets a user create runs, where it does not let them edit the DAG.

    :meth:`is_authorized_dag` wants both, so that whoever was to read texts could also pause the DAG. The
    permission by itself starts nothing. FAB makes ``DAG Run:<dag>`` for every DAG.
    """
    try:
        from airflow.providers.fab.auth_manager.fab_auth_manager import FabAuthManager
    except ImportError:
        return False
    if not isinstance(manager, FabAuthManager):
        return False
    fab: Any = manager  # its own user class is what get_user gives
    return any(
        fab.is_authorized_custom_view(method="POST", resource_name=name, user=user)
        for name in ("DAG Runs", f"DAG Run:{dag_id}")
    )


def about_run(place: Place, run: str) -> Subject:
    """The subject of a run, known or not. A name says its DAG, so that strangers learn nothing from 404."""
    record = place.state.get_run(run)
    if record is None:
        named = _RUN.fullmatch(run)
        return Subject((named["dag_id"] if named else UNKNOWN,), run=run)
    origin = json.loads(record.origin) if record.origin else {}
    if origin.get("kind") == "airflow" and origin.get("dag_id"):
        return Subject((origin["dag_id"],), run, record.dataset, origin.get("run_id") or "")
    return Subject((full_dag(record.dataset),), run, record.dataset)


async def asked_about(request: Request) -> dict[str, Any]:
    """The query of a GET or of a PUT of bytes, the JSON object of a POST.

    Raises:
        HTTPException: 403 for a POST that another site's page could have sent, 422 for a body that is none
            and for a text that no database takes.
    """
    if request.method == "GET":
        asked = dict(request.query_params)
        _refuse_no_text(asked)
        return asked
    bearer = request.headers.get("authorization", "").lower().startswith("bearer ")
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if request.method == "PUT":
        if kind != BYTES or not (bearer or request.headers.get(MARK)):
            raise HTTPException(
                403, f"send bytes (content-type {BYTES}) with the header '{MARK}: 1' or a bearer token"
            )
        asked = dict(request.query_params)
        _refuse_no_text(asked)
        return asked
    if kind != "application/json" or not (bearer or request.headers.get(MARK)):
        raise HTTPException(
            403, f"send JSON (content-type application/json) with the header '{MARK}: 1' or a bearer token"
        )
    try:
        body = await request.json()
    except ValueError as e:
        raise HTTPException(422, "the body is not JSON") from e
    if not isinstance(body, dict):
        raise HTTPException(422, "the body must be a JSON object")
    _refuse_no_text(body)
    return body


def _refuse_no_text(asked: dict[str, Any]) -> None:
    """Refuse what no database takes as a text, wherever it would end up."""
    for name, value in asked.items():
        if isinstance(value, str) and ("\0" in value or any("\ud800" <= c <= "\udfff" for c in value)):
            raise HTTPException(422, f"'{name}' holds a character that no text has (NUL, half of a pair)")


def needs(*rights: Right) -> Callable[..., Subject]:
    """A dependency: the user has these rights on what ``run`` or ``dataset`` of the request names.

    Gives the :class:`Subject`. ``scope`` widens it: ``dataset`` to both DAGs of the run's data set, ``all``
    to everything.
    """

    def check(
        user: GetUserDep,
        place: PlaceDep,
        asked: dict[str, Any] = Depends(asked_about),  # noqa: B008
    ) -> Subject:
        subject = subject_of(place, asked)
        if subject.everything:
            allowed = may_act_on_all(user) and all(_has(user, right, subject) for right in rights)
        else:
            allowed = all(_has(user, right, subject) for right in rights)
        if not allowed:
            raise _refusal(rights, subject)
        return subject

    return check


def _has(user: BaseUser, right: Right, subject: Subject) -> bool:
    return all(may(user, right, dag_id) for dag_id in subject.dag_ids)


def subject_of(place: Place, asked: dict[str, Any]) -> Subject:
    """What a request names.

    Raises:
        HTTPException: 422 where it names neither a run nor a data set.
    """
    run, dataset, scope = (asked.get(key) or "" for key in ("run", "dataset", "scope"))
    if not all(isinstance(value, str) for value in (run, dataset, scope)):
        raise HTTPException(422, "'run', 'dataset' and 'scope' are texts")
    if not (run or dataset):
        raise HTTPException(422, "name a run or a data set: the parameter 'run' or 'dataset'")
    subject = about_run(place, run) if run else Subject((), dataset=dataset)
    dags = set(subject.dag_ids)
    if dataset:  # whoever names both must have the rights on both
        dags.add(full_dag(dataset))
    if scope == "dataset":
        dags |= {f"{subject.dataset}__{mode}" for mode in MODES if subject.dataset}
    first = subject.dag_ids[:1] or (full_dag(dataset),)
    return replace(subject, dag_ids=(*first, *sorted(dags - set(first))), everything=scope == "all")


def _refusal(rights: tuple[Right, ...], subject: Subject) -> NoRight:
    verbs = {"read": "read", "text": "create", "act": "edit"}
    wanted = ", ".join(verbs[right] for right in rights)
    if subject.everything or UNKNOWN in subject.dag_ids:
        return fault(NoRight, "no_right_all", rights=wanted)
    return fault(NoRight, "no_right", rights=wanted, where=", ".join(subject.dag_ids))
