"""Backfills whose days are run by Airflow: the real one, and one that ends days as the test wants."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from dataflow_ops.clients.airflow_api import AirflowApi, AirflowRefused, Login
from dataflow_ops.errors import ConfigError
from dataflow_ops.job_file import load_job
from dataflow_ops.pipeline import backfill_days
from dataflow_ops.pipeline.backfill_control import BackfillBook
from dataflow_ops.pipeline.backfill_drive import airflow_if_up, check, drive
from dataflow_ops.pipeline.backfill_plan import Request, request_of
from dataflow_ops.pipeline.run import run_job
from dataflow_ops.state.backfills import BackfillRecord
from tests.clients.airflow_server import airflow_server
from tests.pipeline.by_day import DAYS, build
from tests.pipeline.harness import ROOT
from tests.pipeline.inside import Notes, published
from tests.pipeline.test_backfill import Heard, asked

# One task that does what the tasks of a data set's DAG do: seventy of them would take minutes here.
DAG = """
import sys
sys.path.insert(0, {root!r})
from pathlib import Path
from airflow.sdk import DAG
from airflow.providers.standard.operators.python import PythonOperator

def day(dag_run, **_):
    from dataflow_ops.pipeline.bundles import finish_run, run_bundle, start_run
    from dataflow_ops.pipeline.flow import STEPS
    conf, home = dag_run.conf, Path({home!r})
    started = start_run(Path({job!r}), home, mode="incremental",
                        run_id=f"airflow-daily__incremental-{{dag_run.run_id}}",
                        overrides=conf["overrides"], until=conf["until"], data_date=conf["data_date"],
                        urgent=conf["priority"] == "urgent", promote=conf["promote"])
    for step, _, by in STEPS[1:]:
        for index in range(started.bundles[by]):
            bundle = {{"run_id": started.run_id, "until": None, "index": index, "of": started.bundles[by]}}
            run_bundle(home, step, bundle, 0)
    finish_run(home, started.run_id)

with DAG("daily__incremental", schedule=None, catchup=False, is_paused_upon_creation=False):
    PythonOperator(task_id="day", python_callable=day)
"""


@pytest.mark.airflow
@pytest.mark.timeout(280)
def test_days_run_by_airflow_make_the_same(tmp_path: Path) -> None:
    job, home = build(tmp_path / "in", DAYS[:2], files=3), tmp_path / "home"
    for day in DAYS[:2]:
        run_job(
            load_job(job),
            tmp_path / "by-hand",
            mode="incremental",
            data_date=day,
            workers=0,
            reporter=Notes(),
        )
    dag = DAG.format(root=str(ROOT), job=str(job), home=str(home))
    heard, request = Heard(), request_of(job, DAYS[0], DAYS[1])
    with (
        airflow_server(tmp_path / "airflow", {"daily.py": dag}) as login,
        AirflowApi(login) as api,
        BackfillBook(home, create=True) as book,
    ):
        check(request, home, api, 0)
        record, _ = book.begin(request, "ann")
        assert record is not None
        record = drive(book, request, record, api, heard, lambda _: Notes(), 0, 1)
        log = (tmp_path / "airflow" / "log").read_text()[-3000:]
        assert (record.state, heard.ended) == ("DONE", [(day, "DONE") for day in DAYS[:2]]), log
        (run,) = book.state.day_runs("daily", DAYS[0], DAYS[0])[DAYS[0]]
        assert run.run_id == f"airflow-daily__incremental-dataflow_backfill__{record.backfill_id}__{DAYS[0]}"
        with pytest.raises(AirflowRefused, match="knows no DAG other__incremental"):
            check(request_of(_named(job, "other"), DAYS[0], DAYS[1]), home, api, 0)
    assert published(home) == published(tmp_path / "by-hand")


def _named(job: Path, dataset: str) -> Path:
    other = job.with_name(f"{dataset}.yaml")
    other.write_text(job.read_text().replace("{id: daily}", f"{{id: {dataset}}}"))
    return other


# An Airflow that answers as the test wants


class Pretended:
    """Airflow as the client sees it. A triggered run is ``running`` until something ends it."""

    def __init__(self, on_trigger: Callable[[str, str], str]) -> None:
        self.runs: dict[str, dict[str, object]] = {}
        self.switched_off = False
        self.away = 0
        self._on_trigger = on_trigger

    @property
    def api(self) -> AirflowApi:
        return AirflowApi(Login("http://air", "ann", "x", "this test"), httpx.MockTransport(self._answer))

    def _answer(self, request: httpx.Request) -> httpx.Response:
        if request.url.path == "/auth/token":
            return httpx.Response(201, json={"access_token": "t"})
        if self.away:
            self.away -= 1
            return httpx.Response(503)
        name = request.url.path.rpartition("/")[2]
        if request.method == "POST":
            body = json.loads(request.content)
            name = body["dag_run_id"]
            if name in self.runs:
                return httpx.Response(409, json={"detail": "exists"})
            made = {
                "dag_id": "daily__incremental",
                "dag_run_id": name,
                "conf": body["conf"],
                "state": "running",
            }
            self.runs[name] = made
            made["state"] = self._on_trigger(name, body["conf"]["data_date"])
        elif name == "daily__incremental":
            return httpx.Response(200, json={"is_paused": self.switched_off})
        elif name not in self.runs:
            return httpx.Response(404, json={"detail": "no such run"})
        elif request.method == "PATCH":
            self.runs[name]["state"] = json.loads(request.content)["state"]
        return httpx.Response(200, json=self.runs[name])


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backfill_days, "LOOK_EVERY_S", 0.05)


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("days") / "in", files=1)


def a_run(book: BackfillBook, name: str, day: str, state: str, detail: str = "") -> None:
    """What Airflow's tasks leave in state."""
    run_id = f"airflow-daily__incremental-{name}"
    book.state.create_run(run_id, "daily", "job", "incremental", "{}", day)
    book.state.set_run_state(run_id, "RUNNING")
    if state != "RUNNING":
        book.state.set_run_state(run_id, state, detail)


def go(
    book: BackfillBook, request: Request, air: Pretended, heard: Heard | None = None
) -> tuple[BackfillRecord, dict[str, str]]:
    record, _ = book.begin(request, "ann")
    assert record is not None
    with air.api as api:
        record = drive(book, request, record, api, heard or Heard(), lambda _: Notes(), 0, 1)
    return record, {d.day: d.state for d in book.state.backfill_days(record.backfill_id)}


def test_what_each_day_is_given(job: Path, tmp_path: Path) -> None:
    with BackfillBook(tmp_path / "home", create=True) as book:

        def done(name: str, day: str) -> str:
            a_run(book, name, day, "SUCCEEDED")
            return "success"

        air, heard = Pretended(done), Heard()
        air.switched_off, air.away = True, 2
        request = asked(job, overrides=["mixing.seed=2"], until="mix", urgent=True)
        record, states = go(book, request, air, heard)
        assert set(states.values()) == {"DONE"}
        assert list(air.runs) == [f"dataflow_backfill__{record.backfill_id}__{day}" for day in DAYS]
        assert air.runs[f"dataflow_backfill__{record.backfill_id}__{DAYS[0]}"]["conf"] == {
            "data_date": DAYS[0],
            "overrides": ["mixing.seed=2"],
            "until": "mix",
            "promote": False,
            "priority": "urgent",
            "backfill": record.backfill_id,
        }
        assert any("switched off in Airflow" in note for note in heard.notes)
        assert any("503" in note for note in heard.notes), "an Airflow that restarts is waited for"


def test_how_days_end(job: Path, tmp_path: Path) -> None:
    ends = dict(zip(DAYS, ("FAILED", "AWAITING_APPROVAL", ""), strict=True))
    with BackfillBook(tmp_path / "home", create=True) as book:

        def end(name: str, day: str) -> str:
            if ends[day]:
                a_run(book, name, day, ends[day], "step 'fetch' failed")
            return {"FAILED": "failed", "AWAITING_APPROVAL": "running", "": "success"}[ends[day]]

        record, states = go(book, asked(job), Pretended(end))
        assert states == {DAYS[0]: "FAILED", DAYS[1]: "DONE", DAYS[2]: "FAILED"}
        details = [d.detail for d in book.state.backfill_days(record.backfill_id)]
        assert details[0].startswith("step 'fetch' failed (http://air/dags/daily__incremental/runs/dataflow_")
        assert details[1].endswith("waits for a person")
        assert "DATAFLOW_STATE_URL" in details[2], "another database than Airflow's is told, not believed"
        assert record.state == "FAILED"


def test_a_run_that_is_there_is_adopted(job: Path, tmp_path: Path) -> None:
    with BackfillBook(tmp_path / "home", create=True) as book:
        request = asked(job, DAYS[0], DAYS[0])
        record, _ = book.begin(request, "ann")
        assert record is not None
        # As a process leaves it that was killed right after it had triggered the day.
        name = f"dataflow_backfill__{record.backfill_id}__{DAYS[0]}"
        own = f"airflow-daily__incremental-{name}"
        book.state.move_day(record.backfill_id, DAYS[0], "RUNNING", run_id=own)
        a_run(book, name, DAYS[0], "RUNNING")

        def never(name: str, day: str) -> str:
            raise AssertionError("it is there")

        air = Pretended(never)
        air.runs[name] = {"dag_id": "daily__incremental", "dag_run_id": name, "conf": {}, "state": "running"}

        def finish() -> None:
            book.state.set_run_state(own, "SUCCEEDED")
            air.runs[name]["state"] = "success"

        ending = Heard(on_day=lambda _: threading.Timer(0.3, finish).start())
        assert go(book, request, air, ending)[1] == {DAYS[0]: "DONE"}
        again, _ = book.begin(asked(job, DAYS[0], DAYS[1]), "ann")
        assert again is not None
        book.state.move_day(again.backfill_id, DAYS[1], "RUNNING", run_id="airflow-x")
        with pytest.raises(ConfigError, match="runs in Airflow, which is not up"):
            drive(book, request, again, None, Heard(), lambda _: Notes(), 0, 1)


def test_paused_and_cancelled(job: Path, tmp_path: Path) -> None:
    with BackfillBook(tmp_path / "home", create=True) as book:

        def begin(name: str, day: str) -> str:
            a_run(book, name, day, "RUNNING")
            return "running"

        def pause(day: str) -> None:
            (found,) = book.state.list_backfills()
            threading.Timer(0.2, lambda: book.pause(found.backfill_id, "bob", "")).start()

        air = Pretended(begin)
        record, states = go(book, asked(job), air, Heard(on_day=pause))
        assert record.state == "PAUSED"
        assert states == {DAYS[0]: "PAUSED", DAYS[1]: "PENDING", DAYS[2]: "PENDING"}
        own = f"airflow-daily__incremental-dataflow_backfill__{record.backfill_id}__{DAYS[0]}"
        assert [(f.scope, f.target) for f in book.state.pauses()] == [("run", own)]
        with pytest.raises(ConfigError, match="runs in Airflow, which is not up"):
            book.cancel(record.backfill_id, "bob", None)
        with air.api as api:
            book.cancel(record.backfill_id, "bob", api)
        assert [run["state"] for run in air.runs.values()] == ["failed"]
        row = book.state.get_run(own)
        assert row is not None
        assert row.state == "CANCELLED"
        assert book.state.pauses() == []
        assert {d.state for d in book.state.backfill_days(record.backfill_id)} == {"CANCELLED"}


def test_which_airflow_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("URL", "USER", "PASSWORD"):
        monkeypatch.delenv(f"DATAFLOW_AIRFLOW_{name}", raising=False)
    notes: list[str] = []
    assert airflow_if_up(tmp_path, notes.append) is None
    assert notes == []
    (tmp_path / "stack").mkdir()
    (tmp_path / "stack" / "api.json").write_text(
        json.dumps({"url": "http://127.0.0.1:1", "user": "u", "password": "p"})
    )
    assert airflow_if_up(tmp_path, notes.append) is None
    assert notes == ["Airflow at http://127.0.0.1:1 is not up: this process runs the days itself"]
    for name, value in (("URL", "http://127.0.0.1:1"), ("USER", "u"), ("PASSWORD", "p")):
        monkeypatch.setenv(f"DATAFLOW_AIRFLOW_{name}", value)
    with pytest.raises(ConfigError, match="add --local"):
        airflow_if_up(tmp_path, notes.append)
