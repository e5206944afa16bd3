"""Airflow ends a task from outside: cleared, marked, its worker going down. No attempt at a chunk is used."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import sqlalchemy as sa

from dataflow_ops.airflow import listener
from dataflow_ops.layers.filter.step import FilterStep
from dataflow_ops.pipeline.home import open_home
from dataflow_ops.pipeline.refusals import refusals
from dataflow_ops.state.machine import RUN_STATES
from dataflow_ops.state.store import StateStore
from tests.airflow.hand import ByHand
from tests.pipeline import inside

pytestmark = [pytest.mark.airflow, pytest.mark.xdist_group("airflow-killed")]


@pytest.fixture
def run(tmp_path: Path) -> ByHand:
    job = inside.sources(tmp_path / "in", files=12)
    found = ByHand(job, tmp_path / "home")
    found.start()
    for step in ("fetch", "parse"):
        for reference in found.bundles("fetch"):
            found.bundle(step, reference)
    return found


@contextmanager
def as_airflow_does(operator: Any) -> Iterator[None]:
    """SIGTERM calls ``on_kill``, as Airflow's task runner has it."""
    before = signal.signal(signal.SIGTERM, lambda *_: operator.on_kill())
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def filtered(home: Path) -> dict[str, set[int]]:
    """State of the filter's tasks -> their attempts."""
    found: dict[str, set[int]] = {}
    with StateStore(f"sqlite:///{home}/state.db") as state, state.db.read() as connection:
        query = sa.text("SELECT state, attempt FROM task WHERE step='filter'")
        for name, attempt in connection.execute(query):
            found.setdefault(name, set()).add(attempt)
    return found


def test_what_the_task_itself_works_on_is_given_back(run: ByHand, monkeypatch: pytest.MonkeyPatch) -> None:
    [reference] = run.bundles("fetch")
    operator = run.operator("filter", reference)
    process = FilterStep.process

    def killed(*arguments: Any) -> Any:
        monkeypatch.setattr(FilterStep, "process", process)
        os.kill(os.getpid(), signal.SIGTERM)
        return process(*arguments)

    monkeypatch.setattr(FilterStep, "process", killed)
    with as_airflow_does(operator), pytest.raises(SystemExit):
        operator.execute(run.context)
    assert filtered(run.home) == {"PAUSED": {1}, "PENDING": {0}}
    run.bundle("filter", reference)
    assert filtered(run.home) == {"SUCCESS": {1}}


def test_so_is_what_its_workers_work_on(run: ByHand, monkeypatch: pytest.MonkeyPatch) -> None:
    from dataflow_ops.pipeline import bundles

    monkeypatch.setattr(bundles, "WORTH_A_PROCESS", 0)
    [reference] = run.bundles("fetch")
    operator = run.operator("filter", reference)
    operator.cores = 1

    def kill() -> None:
        while "RUNNING" not in filtered(run.home):
            pass
        os.kill(os.getpid(), signal.SIGTERM)

    watching = threading.Thread(target=kill, daemon=True)
    watching.start()
    with as_airflow_does(operator), pytest.raises(SystemExit):
        operator.execute(run.context)
    watching.join()
    left = filtered(run.home)
    assert "RUNNING" not in left
    assert left.keys() & {"PAUSED", "PENDING"}
    run.bundle("filter", reference)
    assert filtered(run.home) == {"SUCCESS": {1}}


@pytest.mark.parametrize("state", sorted(RUN_STATES))
def test_a_run_marked_failed_is_over_for_us_too(
    state: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from airflow.listeners.listener import get_listener_manager

    monkeypatch.setenv("DATAFLOW_HOME", str(tmp_path))
    with StateStore(f"sqlite:///{tmp_path}/state.db") as store:
        for name in ("airflow-web__full-r1", "airflow-web__full-r2"):
            store.create_run(name, "web", "web", "full", "{}", None)
            with store.db.write() as connection:
                connection.execute(
                    sa.text("UPDATE run SET state=:s WHERE run_id=:r"), {"s": state, "r": name}
                )
        manager = get_listener_manager()
        manager.add_listener(listener)
        for dag in ("web__full", "somebody_elses"):
            manager.hook.on_dag_run_failed(dag_run=SimpleNamespace(dag_id=dag, run_id="r1"), msg="")
        ended, other = (store.get_run(f"airflow-web__full-r{n}") for n in (1, 2))
    assert ended is not None
    assert other is not None
    assert refusals(open_home(Path(os.environ["DATAFLOW_HOME"]))) == [], "it had begun"
    live = state in ("PLANNED", "RUNNING", "PAUSED")
    assert ended.state == ("FAILED" if live else state)
    assert bool(ended.detail) == live
    assert other.state == state


@pytest.mark.parametrize("state", sorted(RUN_STATES))
def test_a_run_marked_done_before_it_was_is_cancelled(
    state: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from airflow.listeners.listener import get_listener_manager

    monkeypatch.setenv("DATAFLOW_HOME", str(tmp_path))
    with StateStore(f"sqlite:///{tmp_path}/state.db") as store:
        store.create_run("airflow-web__full-r1", "web", "web", "full", "{}", None)
        with store.db.write() as connection:
            connection.execute(sa.text("UPDATE run SET state=:s"), {"s": state})
        manager = get_listener_manager()
        manager.add_listener(listener)
        for dag in ("web__full", "somebody_elses"):
            manager.hook.on_dag_run_success(dag_run=SimpleNamespace(dag_id=dag, run_id="r1"), msg="")
        manager.hook.on_dag_run_success(dag_run=SimpleNamespace(dag_id="web__full", run_id="none"), msg="")
        ended = store.get_run("airflow-web__full-r1")
    assert ended is not None
    live = state in ("PLANNED", "RUNNING", "PAUSED")
    assert ended.state == ("CANCELLED" if live else state)
    assert (ended.detail == listener.MARKED) == live


def test_a_run_that_failed_before_it_began_is_not_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATAFLOW_HOME", str(tmp_path))
    listener.on_dag_run_failed(
        SimpleNamespace(dag_id="web__full", run_id="r1", conf={"dry_run": True}), "timed out"
    )
    [told] = refusals(open_home(tmp_path))
    assert (told.run_id, told.dataset, told.dry_run, told.why) == ("airflow-web__full-r1", "web", True, "")


def test_airflow_loads_the_listener(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "plugins"))
    from dataflow_ui.plugin import DataFlowPlugin

    assert DataFlowPlugin.listeners == [listener]


def test_what_can_not_be_recorded_breaks_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("DATAFLOW_HOME", str(tmp_path))
    monkeypatch.setenv("DATAFLOW_STATE_URL", "postgresql://nobody@127.0.0.1:1/nothing")
    listener.on_dag_run_failed(SimpleNamespace(dag_id="web__full", run_id="r1"), "")
    assert "airflow-web__full-r1 has ended, but that could not be recorded" in caplog.text
