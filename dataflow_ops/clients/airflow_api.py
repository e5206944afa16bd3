"""Airflow's REST API (v2), as much of it as DAG runs and events of assets need."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Final
from urllib.parse import urlencode

import httpx

from dataflow_ops.errors import ConfigError, DataFlowError

TIMEOUT_S: Final = 20.0
ENDED: Final = ("success", "failed")
"""States of a DAG run that has ended."""
TASK_ENDED: Final = (*ENDED, "skipped", "upstream_failed", "removed")
"""States of a task that has ended."""
_VARIABLES: Final = ("DATAFLOW_AIRFLOW_URL", "DATAFLOW_AIRFLOW_USER", "DATAFLOW_AIRFLOW_PASSWORD")


class AirflowRefused(DataFlowError):
    """Airflow answered, and said no: the message says why and what to do."""


class AirflowAway(DataFlowError):
    """Airflow can't be reached, or is not well: tried again later."""

    retryable = True


@dataclass(frozen=True, slots=True)
class Login:
    """Where Airflow is and who asks.

    Attributes:
        url: of the api-server, without a path.
        user: name.
        password: kept out of every message.
        where: what said so: a file or the environment, for messages.
    """

    url: str
    user: str
    password: str
    where: str

    def __repr__(self) -> str:
        return f"Login({self.url!r}, {self.user!r}, from {self.where})"


@dataclass(frozen=True, slots=True)
class DagRun:
    """A DAG run: ``state`` is ``queued``, ``running``, ``success`` or ``failed``."""

    dag_id: str
    run_id: str
    state: str
    conf: Mapping[str, Any]


def find_login(home: Path) -> Login | None:
    """Address and login: from ``DATAFLOW_AIRFLOW_URL``, ``_USER`` and ``_PASSWORD``, else from the home.

    Args:
        home: home folder; the stack writes ``stack/api.json`` there.

    Returns:
        None where neither is there.

    Raises:
        ConfigError: one of the variables is missing, or the file can't be read.
    """
    url, user, password = (os.environ.get(name, "") for name in _VARIABLES)
    if url:
        if not (user and password):
            raise ConfigError(f"{_VARIABLES[0]} is set: set {_VARIABLES[1]} and {_VARIABLES[2]} as well")
        return Login(url.rstrip("/"), user, password, "the environment")
    path = home / "stack" / "api.json"
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        return Login(str(found["url"]).rstrip("/"), str(found["user"]), str(found["password"]), str(path))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as e:
        raise ConfigError(
            f"{path} can't be read ({type(e).__name__}); `dataflow stack up` writes it anew,"
            " --local works without it"
        ) from e


class AirflowApi(AbstractContextManager["AirflowApi"]):
    """A client; it logs in when first needed, and again when its token has expired.

    Args:
        login: where and who.
        transport: stands in for the network, for tests.
    """

    def __init__(self, login: Login, transport: httpx.BaseTransport | None = None) -> None:
        self.login = login
        self._http = httpx.Client(base_url=login.url, timeout=TIMEOUT_S, transport=transport)
        self._token = ""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def is_healthy(self) -> bool:
        """Whether the api-server answers, with its database and scheduler well. Needs no login."""
        try:
            answer = self._http.get("/api/v2/monitor/health", timeout=5.0)
            found = answer.json() if answer.status_code == httpx.codes.OK else {}
        except (httpx.HTTPError, ValueError):
            return False
        parts = ("metadatabase", "scheduler")
        return isinstance(found, dict) and all(
            (found.get(part) or {}).get("status") == "healthy" for part in parts
        )

    def trigger(self, dag_id: str, run_id: str, conf: Mapping[str, Any], note: str = "") -> DagRun:
        """Start a DAG run, or adopt the one that has this id already: asking twice is one run.

        It gets no logical date: no two runs of a DAG may share one, and a day may be run again. What it is
        about stands in ``conf``.

        Raises:
            AirflowRefused: no such DAG, or it can't be started.
            AirflowAway: try again.
        """
        body = {"dag_run_id": run_id, "logical_date": None, "conf": dict(conf), "note": note or None}
        answer = self._ask("POST", f"/api/v2/dags/{dag_id}/dagRuns", json=body)
        if answer.status_code == httpx.codes.CONFLICT:
            there = self.dag_run(dag_id, run_id)
            if there is None:
                raise AirflowRefused(f"Airflow refused run {run_id} of {dag_id}: {_said(answer)}")
            return there
        return _dag_run(self._good(answer, f"run {run_id} of DAG {dag_id}"))

    def dag_run(self, dag_id: str, run_id: str) -> DagRun | None:
        """The DAG run as it stands, or None."""
        answer = self._ask("GET", f"/api/v2/dags/{dag_id}/dagRuns/{run_id}")
        if answer.status_code == httpx.codes.NOT_FOUND:
            return None
        return _dag_run(self._good(answer, f"run {run_id} of DAG {dag_id}"))

    def fail(self, dag_id: str, run_id: str) -> bool:
        """Stop a DAG run by marking it failed; return whether there was one to stop."""
        there = self.dag_run(dag_id, run_id)
        if there is None or there.state in ENDED:
            return False
        answer = self._ask("PATCH", f"/api/v2/dags/{dag_id}/dagRuns/{run_id}", json={"state": "failed"})
        self._good(answer, f"run {run_id} of DAG {dag_id}")
        return True

    def is_dag_paused(self, dag_id: str) -> bool:
        """Whether a DAG is switched off, so that its runs wait in the queue.

        Raises:
            AirflowRefused: there is no such DAG.
        """
        answer = self._ask("GET", f"/api/v2/dags/{dag_id}")
        return bool(self._good(answer, f"DAG {dag_id}")["is_paused"])

    def is_dag_gone(self, dag_id: str) -> bool:
        """Whether no file makes a DAG any more."""
        answer = self._ask("GET", f"/api/v2/dags/{dag_id}")
        if answer.status_code == httpx.codes.NOT_FOUND:
            return True
        return bool(self._good(answer, f"DAG {dag_id}")["is_stale"])

    def pause_dag(self, dag_id: str, paused: bool) -> None:
        """Switch a DAG off or on."""
        answer = self._ask("PATCH", f"/api/v2/dags/{dag_id}", json={"is_paused": paused})
        self._good(answer, f"DAG {dag_id}")

    def is_task_open(self, dag_id: str, run_id: str, task_id: str) -> bool:
        """Whether a task of a DAG run has not ended (or not begun)."""
        path = f"/api/v2/dags/{dag_id}/dagRuns/{run_id}/taskInstances/{task_id}"
        answer = self._ask("GET", path)
        if answer.status_code == httpx.codes.NOT_FOUND:
            return False
        state = self._good(answer, f"task {task_id} of run {run_id}")["state"]
        return state not in TASK_ENDED

    def emit(self, asset: str, extra: Mapping[str, Any]) -> bool:
        """Create an event of an asset, by its name; return False where there is no such asset."""
        # The pattern is what names hold; sorted, the name itself comes first.
        asked = urlencode({"name_pattern": asset, "only_active": "false", "order_by": "name"})
        found = self._good(self._ask("GET", f"/api/v2/assets?{asked}"), "assets")
        number = next((one["id"] for one in found["assets"] if one["name"] == asset), None)
        if number is None:
            return False
        body = {"asset_id": number, "extra": dict(extra)}
        self._good(self._ask("POST", "/api/v2/assets/events", json=body), f"event of asset {asset}")
        return True

    def run_page(self, dag_id: str, run_id: str) -> str:
        """Where a person watches a DAG run."""
        return f"{self.login.url}/dags/{dag_id}/runs/{run_id}"

    def _ask(self, method: str, path: str, json: Mapping[str, Any] | None = None) -> httpx.Response:
        for _ in range(2):
            answer = self._send(method, path, {"Authorization": f"Bearer {self._log_in()}"}, json)
            if not _token_refused(answer):
                return answer
            self._token = ""
        return answer

    def _log_in(self) -> str:
        if not self._token:
            body = {"username": self.login.user, "password": self.login.password}
            answer = self._send("POST", "/auth/token", {}, body)
            if answer.status_code == httpx.codes.UNAUTHORIZED:
                # While its database is away Airflow refuses every login, so once is not enough.
                if not self.is_healthy():
                    raise AirflowAway(f"Airflow at {self.login.url} is not well")
                answer = self._send("POST", "/auth/token", {}, body)
            if answer.status_code in (httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN):
                raise AirflowRefused(
                    f"Airflow at {self.login.url} refused user '{self.login.user}'; the login comes from"
                    f" {self.login.where}"
                )
            self._token = str(self._good(answer, "the login")["access_token"])
        return self._token

    def _send(
        self, method: str, path: str, headers: Mapping[str, str], json: Mapping[str, Any] | None
    ) -> httpx.Response:
        try:
            answer = self._http.request(method, path, headers=dict(headers), json=json)
        except httpx.HTTPError as e:
            raise AirflowAway(f"Airflow at {self.login.url} does not answer ({type(e).__name__})") from e
        if answer.is_server_error:
            raise AirflowAway(f"Airflow at {self.login.url} answers {answer.status_code}: {_said(answer)}")
        return answer

    def _good(self, answer: httpx.Response, what: str) -> dict[str, Any]:
        if answer.status_code == httpx.codes.NOT_FOUND:
            raise AirflowRefused(f"Airflow at {self.login.url} knows no {what}: {_said(answer)}")
        if answer.status_code == httpx.codes.FORBIDDEN:
            raise AirflowRefused(f"user '{self.login.user}' may not do this in Airflow: {what}")
        if not answer.is_success:
            raise AirflowRefused(f"Airflow refused {what} ({answer.status_code}): {_said(answer)}")
        found: dict[str, Any] = answer.json()
        return found


def _dag_run(found: Mapping[str, Any]) -> DagRun:
    return DagRun(
        str(found["dag_id"]), str(found["dag_run_id"]), str(found["state"]), dict(found["conf"] or {})
    )


def _token_refused(answer: httpx.Response) -> bool:
    """Whether the token is no longer good: it expired, or Airflow's secret has changed (told by 403)."""
    forbidden = answer.status_code == httpx.codes.FORBIDDEN
    return answer.status_code == httpx.codes.UNAUTHORIZED or (forbidden and "JWT" in _said(answer))


def _said(answer: httpx.Response) -> str:
    try:
        detail = answer.json().get("detail", "")
    except (ValueError, AttributeError):
        detail = answer.text
    return str(detail)[:300]
