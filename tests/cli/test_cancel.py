"""``dataflow cancel``, and what ``resume`` says of a run that has ended or whose DAG run is gone."""

from __future__ import annotations

import json
import shutil
import threading
import time
from pathlib import Path

import httpx
import pytest

from dataflow_ops.clients import airflow_api
from dataflow_ops.job_file import load_job
from dataflow_ops.pipeline import orchestrated
from dataflow_ops.state.store import StateStore
from tests.cli.conftest import Dataflow
from tests.pipeline import harness

pytestmark = pytest.mark.xdist_group("cli")
RUN = "airflow-web__full-r1"


@pytest.fixture
def own(home: Path, tmp_path: Path) -> Path:
    copy = tmp_path / "home"
    shutil.copytree(home, copy)
    return copy


def live(home: Path, job: Path, name: str = RUN, state: str = "RUNNING") -> None:
    """A run of Airflow that has begun."""
    origin = json.dumps({"kind": "airflow", "dag_id": "web__full", "run_id": "r1"})
    with StateStore(f"sqlite:///{home}/state.db") as store:
        settings = load_job(job).model_dump_json()
        store.create_run(name, "web", "web", "full", settings, None, origin=origin)
        store.set_run_state(name, "start")
        if state != "RUNNING":
            store.set_run_state(name, state)


def stands(home: Path, run: str) -> tuple[str, str]:
    with StateStore(f"sqlite:///{home}/state.db") as store:
        row = store.get_run(run)
        assert row is not None
        return row.state, row.detail or ""


@pytest.mark.parametrize("state", ["RUNNING", "PAUSED", "FAILED"])
def test_a_run_is_cancelled_and_says_by_whom(dataflow: Dataflow, own: Path, job: Path, state: str) -> None:
    live(own, job, state=state)
    with StateStore(f"sqlite:///{own}/state.db") as store:
        store.set_pause("run", RUN, "ann")
    said = dataflow("cancel", RUN, "--why", "a wrong source", "--home", own)
    assert said.code == 0, said.err
    assert "Airflow is not up" in said.out
    now, detail = stands(own, RUN)
    assert now == "CANCELLED"
    assert detail.startswith("cancelled by ")
    assert detail.endswith(": a wrong source")
    with StateStore(f"sqlite:///{own}/state.db") as store:
        assert store.pauses() == []
    again = dataflow("cancel", RUN, "--home", own)
    assert (again.code, "is CANCELLED: there is nothing to cancel" in again.err) == (2, True)


def test_who_works_on_a_cancelled_run_stops_and_leaves_it_cancelled(
    dataflow: Dataflow, job: Path, tmp_path: Path
) -> None:
    process = harness.start(job, tmp_path / "home", workers=1)
    database = tmp_path / "home" / "state.db"
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        if database.is_file():
            with StateStore(f"sqlite:///{database}") as store:
                runs = store.list_runs(None, 1)
                if runs and runs[0].state == "RUNNING" and store.states_of_run(runs[0].run_id).get("fetch"):
                    break
        time.sleep(0.05)
    run = runs[0].run_id
    assert dataflow("cancel", run, "--home", tmp_path / "home").code == 0
    try:
        _, err = process.communicate(timeout=120)
    finally:
        process.kill()
    assert process.returncode != 0
    assert "cancelled" in err
    assert stands(tmp_path / "home", run)[0] == "CANCELLED"
    assert not (tmp_path / "home" / "versions").exists()


@pytest.mark.parametrize("state", ["SUCCEEDED", "CANCELLED"])
def test_a_run_that_has_ended_is_not_resumed(dataflow: Dataflow, own: Path, job: Path, state: str) -> None:
    live(own, job, state=state)
    said = dataflow("resume", RUN, "--home", own)
    assert (said.code, "it has ended: run the job again" in said.err) == (2, True)
    assert stands(own, RUN)[0] == state


def test_a_finished_run_of_the_command_line_is_not_resumed(dataflow: Dataflow, own: Path) -> None:
    run = dataflow("status", "--home", own, "--json").json["run"]
    before = dataflow("versions", "list", "--home", own, "--json").json
    said = dataflow("resume", run, "--home", own)
    assert (said.code, "it has ended: run the job again" in said.err) == (2, True)
    assert dataflow("versions", "list", "--home", own, "--json").json == before


class Airflow:
    """What the REST API answers; it knows DAG run ``r1`` in a state, or none."""

    def __init__(self, state: str | None) -> None:
        self.state = state
        self.stale = False
        self.failed = threading.Event()

    def __call__(self, asked: httpx.Request) -> httpx.Response:
        path = asked.url.path
        if path == "/api/v2/monitor/health":
            well = {"status": "healthy"}
            return httpx.Response(200, json={"metadatabase": well, "scheduler": well})
        if path == "/auth/token":
            return httpx.Response(201, json={"access_token": "t"})
        if path == "/api/v2/dags/web__full":
            return httpx.Response(200, json={"dag_id": "web__full", "is_stale": self.stale})
        assert path == "/api/v2/dags/web__full/dagRuns/r1"
        if self.state is None:
            return httpx.Response(404, json={"detail": "not found"})
        if asked.method == "PATCH":
            self.failed.set()
        there = {"dag_id": "web__full", "dag_run_id": "r1", "state": self.state, "conf": {}}
        return httpx.Response(200, json=there)


def up(home: Path, monkeypatch: pytest.MonkeyPatch, state: str | None) -> Airflow:
    (home / "stack").mkdir()
    login = {"url": "http://127.0.0.1:1", "user": "u", "password": "p"}
    (home / "stack" / "api.json").write_text(json.dumps(login))
    airflow = Airflow(state)

    def client(found: airflow_api.Login) -> airflow_api.AirflowApi:
        return airflow_api.AirflowApi(found, httpx.MockTransport(airflow))

    monkeypatch.setattr(orchestrated, "AirflowApi", client)
    return airflow


@pytest.mark.parametrize(
    ("dag_run", "told"),
    [(None, "is gone from Airflow"), ("failed", "has ended in Airflow (failed)"), ("running", "")],
)
def test_resuming_says_where_nothing_will_go_on(
    dataflow: Dataflow,
    own: Path,
    job: Path,
    monkeypatch: pytest.MonkeyPatch,
    dag_run: str | None,
    told: str,
) -> None:
    live(own, job, state="PAUSED")
    up(own, monkeypatch, dag_run)
    said = dataflow("resume", RUN, "--home", own)
    assert told in said.out
    assert (f"dataflow cancel --home {own} {RUN}" in said.out) == bool(told)
    assert ("its tasks do so in Airflow" in said.out) != bool(told)
    assert said.code == (1 if told else 0)


def test_cancelling_stops_the_dag_run(
    dataflow: Dataflow, own: Path, job: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    live(own, job)
    airflow = up(own, monkeypatch, "running")
    said = dataflow("cancel", RUN, "--home", own)
    assert (said.code, "Its DAG run is stopped too." in said.out) == (0, True)
    assert airflow.failed.is_set()


def test_a_run_whose_job_file_is_gone_says_so(
    dataflow: Dataflow, own: Path, job: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    live(own, job)
    airflow = up(own, monkeypatch, "running")
    assert "job file" not in dataflow("status", RUN, "--home", own).out
    airflow.stale = True
    said = dataflow("status", RUN, "--home", own).out
    assert "its job file is gone: the DAG is stale; put it back, or" in said
    assert f"`dataflow cancel --home {own} {RUN}`" in " ".join(said.split())
