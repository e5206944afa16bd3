"""Decisions about versions by command: Airflow is told, or the command says why not and how to."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import httpx
import pytest
import sqlalchemy as sa

from dataflow_ops.clients import airflow_api
from dataflow_ops.state.store import StateStore
from dataflow_ops.state.tables import run
from tests.cli.conftest import Dataflow

pytestmark = pytest.mark.xdist_group("cli")


class Airflow:
    """Answers as the REST API does, and keeps the events that it was given."""

    def __init__(self, *, healthy: bool = True, asset: bool = True, approval: str | None = "success") -> None:
        self.healthy, self.asset, self.approval = healthy, asset, approval
        self.events: list[dict[str, Any]] = []

    def __call__(self, asked: httpx.Request) -> httpx.Response:
        match asked.method, asked.url.path:
            case "GET", "/api/v2/monitor/health":
                well = {"status": "healthy" if self.healthy else "unhealthy"}
                return httpx.Response(200, json={"metadatabase": well, "scheduler": well})
            case "POST", "/auth/token":
                return httpx.Response(201, json={"access_token": "t"})
            case "GET", "/api/v2/assets":
                others = [{"id": 7, "name": "dataflow://other"}]
                name = asked.url.params["name_pattern"]
                return httpx.Response(
                    200, json={"assets": [*others, {"id": 8, "name": name}] if self.asset else others}
                )
            case "POST", "/api/v2/assets/events":
                body = json.loads(asked.content)
                assert body["asset_id"] == 8
                self.events.append(body["extra"])
                return httpx.Response(200, json={})
            case "GET", "/api/v2/dags/tiny__full/dagRuns/r1":
                there = {"dag_id": "tiny__full", "dag_run_id": "r1", "state": "running", "conf": {}}
                return httpx.Response(200, json=there)
            case "GET", "/api/v2/dags/tiny__full/dagRuns/r1/taskInstances/approval":
                return httpx.Response(200, json={"state": self.approval})
        raise AssertionError(f"nobody should ask {asked.method} {asked.url}")


@pytest.fixture
def own(home: Path, tmp_path: Path) -> Path:
    copy = tmp_path / "home"
    shutil.copytree(home, copy)
    (copy / "stack").mkdir()
    login = {"url": "http://127.0.0.1:1", "user": "u", "password": "p"}
    (copy / "stack" / "api.json").write_text(json.dumps(login), encoding="utf-8")
    return copy


def answered_by(airflow: Airflow, monkeypatch: pytest.MonkeyPatch) -> Airflow:
    real = airflow_api.AirflowApi
    monkeypatch.setattr(airflow_api, "AirflowApi", lambda login: real(login, httpx.MockTransport(airflow)))
    return airflow


def rejected(dataflow: Dataflow, home: Path, origin: bool = False) -> str:
    """The home's version, which nobody wants for now."""
    version = str(dataflow("versions", "show", "--home", home, "--json").json["version"])
    engine = sa.create_engine(f"sqlite:///{home / 'state.db'}")
    of = json.dumps({"kind": "airflow", "dag_id": "tiny__full", "run_id": "r1"}) if origin else None
    with engine.begin() as connection:
        connection.execute(sa.text("DELETE FROM dataset_current"))
        connection.execute(sa.text("UPDATE dataset_version SET state='REJECTED'"))
        connection.execute(sa.update(run).values(origin=of))
    return version


def test_an_approval_after_all_is_told(
    dataflow: Dataflow, own: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    version = rejected(dataflow, own)
    airflow = answered_by(Airflow(), monkeypatch)
    said = dataflow("versions", "approve", version, "--home", own)
    assert (said.code, "Airflow was told" in said.out) == (0, True), said.err
    [event] = airflow.events
    with StateStore(f"sqlite:///{own}/state.db") as state:
        [row] = [v for v in state.versions() if v.version_id == version]
    assert (event["version"], event["dataset"], event["current"]) == (version, row.dataset, True)
    assert event["manifest"] == row.manifest_uri
    assert set(event) == {
        "dataset",
        "version",
        "base",
        "manifest",
        "mode",
        "data_date",
        "documents",
        "tokens",
        "current",
    }
    back = dataflow("versions", "rollback", version, "--home", own, "--json").json
    assert back == {"current": version, "event": "sent"}
    assert len(airflow.events) == 2


def test_a_dag_run_that_waits_tells_by_itself(
    dataflow: Dataflow, own: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    version = rejected(dataflow, own, origin=True)
    airflow = answered_by(Airflow(approval="deferred"), monkeypatch)
    said = dataflow("versions", "approve", version, "--home", own)
    assert (said.code, "which waited for this" in said.out) == (0, True), said.err
    assert airflow.events == []
    airflow.approval = "success"
    assert dataflow("versions", "announce", version, "--home", own, "--json").json["event"] == "sent"


@pytest.mark.parametrize(
    ("airflow", "told"),
    [
        (
            Airflow(healthy=False),
            "No asset event was sent: Airflow is not up. Once it is: `dataflow versions",
        ),
        (Airflow(asset=False), "knows no asset dataflow://"),
    ],
)
def test_what_was_not_sent_is_said(
    dataflow: Dataflow, own: Path, monkeypatch: pytest.MonkeyPatch, airflow: Airflow, told: str
) -> None:
    version = rejected(dataflow, own)
    answered_by(airflow, monkeypatch)
    said = dataflow("versions", "approve", version, "--home", own)
    assert (said.code, told in said.out) == (0, True), said.out
    assert airflow.events == []
    again = dataflow("versions", "announce", version, "--home", own)
    assert (again.code, told in again.out) == (1, True)


def test_a_home_without_airflow_says_nothing_of_it(dataflow: Dataflow, own: Path) -> None:
    shutil.rmtree(own / "stack")
    version = rejected(dataflow, own)
    said = dataflow("versions", "approve", version, "--home", own)
    beforehand, current = said.out.splitlines()
    assert beforehand.startswith(f"{version} (")
    assert beforehand.endswith(" documents) becomes current; none was before.")
    assert current == f"Current version: {version}"
    assert "nobody to tell" in dataflow("versions", "announce", "--home", own).out


def test_what_nobody_let_through_is_not_told(
    dataflow: Dataflow, own: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    version = rejected(dataflow, own)
    airflow = answered_by(Airflow(), monkeypatch)
    said = dataflow("versions", "announce", version, "--home", own)
    assert (said.code, "is not published" in said.err) == (1, True)
    assert airflow.events == []
