"""The client of Airflow's REST API: against a real server, and against answers that are hard to provoke."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from dataflow_ops.clients.airflow_api import AirflowApi, AirflowAway, AirflowRefused, Login, find_login
from dataflow_ops.errors import ConfigError
from tests.clients.airflow_server import airflow_server

DAGS = """
from airflow.sdk import DAG, Asset, Param
from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.providers.standard.operators.python import PythonOperator

with DAG("web__incremental", schedule=None, catchup=False, is_paused_upon_creation=False,
         params={"overrides": Param([], type="array"), "until": Param(None, type=["null", "string"])}):
    EmptyOperator(task_id="nothing", outlets=[Asset(name="dataflow://web", uri="dataflow://web")])
with DAG("off__incremental", schedule="0 2 * * *", catchup=False, is_paused_upon_creation=True):
    EmptyOperator(task_id="nothing")
"""
CONF = {"data_date": "2026-01-02", "overrides": ["mixing.seed=2"], "until": None, "backfill": "b1"}


@pytest.mark.airflow
@pytest.mark.timeout(280)
def test_against_a_real_api_server(tmp_path: Path) -> None:
    with airflow_server(tmp_path / "airflow", {"dags.py": DAGS}) as login, AirflowApi(login) as api:
        run_id = "dataflow_backfill__b1__2026-01-02"
        # A DAG without a schedule runs; asking twice is one run.
        first = api.trigger("web__incremental", run_id, CONF, note="day 1 of 3")
        assert (first.run_id, first.dag_id, first.conf) == (run_id, "web__incremental", CONF)
        again = api.trigger("web__incremental", run_id, {**CONF, "data_date": "1999-01-01"})
        assert again.conf == CONF, "it is the run that was there"
        other = api.trigger("web__incremental", "dataflow_backfill__b2__2026-01-02", CONF)
        assert other.run_id == "dataflow_backfill__b2__2026-01-02", "one day may have several runs"
        deadline = time.monotonic() + 90
        while (now := api.dag_run("web__incremental", run_id)) is not None and now.state != "success":
            assert now.state in ("queued", "running")
            assert time.monotonic() < deadline, (tmp_path / "airflow" / "log").read_text()[-3000:]
            time.sleep(0.5)
        assert now is not None
        assert not api.fail("web__incremental", run_id), "what has ended is left alone"
        assert api.dag_run("web__incremental", "nope") is None
        assert not api.is_task_open("web__incremental", run_id, "nothing")
        assert not api.is_task_open("web__incremental", run_id, "no such task")
        assert api.emit("dataflow://web", {"version": "v1", "current": True})
        assert not api.emit("dataflow://we_", {"version": "v1"})
        # A DAG that is switched off keeps its run in the queue; there it can be stopped.
        assert api.is_dag_paused("off__incremental")
        assert api.trigger("off__incremental", "x", {}).state == "queued"
        assert api.is_task_open("off__incremental", "x", "nothing")
        assert api.fail("off__incremental", "x")
        stopped = api.dag_run("off__incremental", "x")
        assert stopped is not None
        assert stopped.state == "failed"
        api.pause_dag("off__incremental", False)
        assert not api.is_dag_paused("off__incremental")
        with pytest.raises(AirflowRefused, match="knows no run x of DAG none"):
            api.trigger("none", "x", {})
        with pytest.raises(AirflowRefused, match="overrides"):
            api.trigger("web__incremental", "bad", {"overrides": 3})
        with pytest.raises(AirflowRefused, match="reserved for backfill runs"):
            # So the name that would come to mind first can't be used.
            api.trigger("web__incremental", "backfill__b1__2026-01-02", CONF)
        with pytest.raises(AirflowRefused, match="not match"):
            api.trigger("web__incremental", "a run with blanks", {})
        wrong = Login(login.url, "ann", "wrong", "this test")
        with AirflowApi(wrong) as stranger, pytest.raises(AirflowRefused, match="comes from this test"):
            stranger.dag_run("web__incremental", run_id)
        # An expired token is renewed.
        api._token = "no longer good"
        assert api.dag_run("web__incremental", run_id) is not None
    with AirflowApi(login) as api:
        assert not api.is_healthy()
        with pytest.raises(AirflowAway, match="does not answer"):
            api.dag_run("web__incremental", run_id)


# What a server says that is hard to provoke


def answering(answer: Callable[[httpx.Request], httpx.Response]) -> AirflowApi:
    def handle(request: httpx.Request) -> httpx.Response:
        if request.url.path == "/auth/token":
            return httpx.Response(201, json={"access_token": "t"})
        return answer(request)

    return AirflowApi(Login("http://air", "ann", "secret", "this test"), httpx.MockTransport(handle))


def test_a_conflict_about_another_run_is_no_adoption() -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        if request.method == "POST":
            return httpx.Response(409, json={"detail": "Unique constraint violation"})
        return httpx.Response(404, json={"detail": "not found"})

    with answering(answer) as api, pytest.raises(AirflowRefused, match="Unique constraint violation"):
        api.trigger("d", "r", {})


def test_a_server_in_trouble_is_asked_again_later_and_no_message_holds_the_password() -> None:
    with answering(lambda _: httpx.Response(503, text="starting")) as api:
        with pytest.raises(AirflowAway, match="503: starting") as met:
            api.dag_run("d", "r")
        assert not api.is_healthy()
    assert "secret" not in str(met.value) + repr(api.login)


@pytest.mark.parametrize("database", ["unhealthy", "healthy"])
def test_a_login_refused_for_want_of_a_database_is_no_refusal(database: str) -> None:
    """Seen live: while PostgreSQL restarts, Airflow answers every login with 401."""
    logins: list[int] = []

    def answer(request: httpx.Request) -> httpx.Response:
        if request.url.path == "/auth/token":
            logins.append(1)
            refused = httpx.Response(401, json={"detail": "Invalid credentials"})
            return refused if len(logins) == 1 else httpx.Response(201, json={"access_token": "t"})
        if request.url.path.endswith("/health"):
            parts = {"metadatabase": {"status": database}, "scheduler": {"status": "healthy"}}
            return httpx.Response(200, json=parts)
        return httpx.Response(404, json={"detail": "not found"})

    login = Login("http://air", "ann", "secret", "this test")
    with AirflowApi(login, httpx.MockTransport(answer)) as api:
        if database == "unhealthy":
            with pytest.raises(AirflowAway, match="not well"):
                api.dag_run("d", "r")
        assert api.dag_run("d", "r") is None
    assert len(logins) == 2


def test_who_may_not_is_told_so() -> None:
    with answering(lambda _: httpx.Response(403, json={"detail": "no"})) as api:
        with pytest.raises(AirflowRefused, match="'ann' may not"):
            api.trigger("d", "r", {})


@pytest.mark.parametrize(
    ("health", "well"),
    [
        ({"metadatabase": {"status": "healthy"}, "scheduler": {"status": "healthy"}}, True),
        ({"metadatabase": {"status": "healthy"}, "scheduler": {"status": "unhealthy"}}, False),
        ({"metadatabase": {"status": "healthy"}, "scheduler": None}, False),
        ([], False),
    ],
)
def test_health(health: object, well: bool) -> None:
    with answering(lambda _: httpx.Response(200, json=health)) as api:
        assert api.is_healthy() is well


def test_where_the_login_comes_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("URL", "USER", "PASSWORD"):
        monkeypatch.delenv(f"DATAFLOW_AIRFLOW_{name}", raising=False)
    assert find_login(tmp_path) is None
    (tmp_path / "stack").mkdir()
    file = tmp_path / "stack" / "api.json"
    file.write_text(json.dumps({"url": "http://a:1/", "user": "u", "password": "p"}))
    assert find_login(tmp_path) == Login("http://a:1", "u", "p", str(file))
    file.write_text("{}")
    with pytest.raises(ConfigError, match="--local works without"):
        find_login(tmp_path)
    monkeypatch.setenv("DATAFLOW_AIRFLOW_URL", "http://b:2")
    with pytest.raises(ConfigError, match="set DATAFLOW_AIRFLOW_USER and DATAFLOW_AIRFLOW_PASSWORD"):
        find_login(tmp_path)
    monkeypatch.setenv("DATAFLOW_AIRFLOW_USER", "v")
    monkeypatch.setenv("DATAFLOW_AIRFLOW_PASSWORD", "q")
    assert find_login(tmp_path) == Login("http://b:2", "v", "q", "the environment")
