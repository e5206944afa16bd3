"""Red or green by our state: every end that a run can have."""

from __future__ import annotations

from pathlib import Path

import pytest

from dataflow_ops.state.machine import RUN_STATES
from dataflow_ops.state.store import StateStore
from tests.airflow.hand import ByHand
from tests.pipeline import corpus

pytestmark = [pytest.mark.airflow, pytest.mark.xdist_group("airflow-gate")]
GREEN = {"SUCCEEDED": "done", "SUCCEEDED_WITH_DEAD": "done_with_dead_letters"}
WAYS = {
    "PLANNED": [],
    "RUNNING": ["start"],
    "PAUSED": ["start", "pause"],
    "SUCCEEDED": ["start", "succeed"],
    "SUCCEEDED_WITH_DEAD": ["start", "succeed_with_dead"],
    "AWAITING_APPROVAL": ["start", "await_approval"],
    "FAILED": ["start", "fail"],
    "CANCELLED": ["start", "cancel"],
}


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return corpus.build(tmp_path_factory.mktemp("sources") / "in", code=2, docs=2)


def gate_of(job: Path, home: Path, state: str, detail: str = "because") -> ByHand:
    """The DAG of a run that has been brought into a state."""
    run = ByHand(job, home)
    run.xcoms.values["start"] = {"run_id": run.run_id, "dry_run": False}
    home.mkdir(exist_ok=True)
    with StateStore(f"sqlite:///{home}/state.db") as store:
        store.create_run(run.run_id, "tiny", "job", "full", "{}", "2026-01-01")
        for event in WAYS[state]:
            store.set_run_state(run.run_id, event, detail)
    return run


def test_every_state_of_a_run_is_tried() -> None:
    assert set(WAYS) == RUN_STATES


@pytest.mark.parametrize("state", sorted(WAYS))
def test_a_run_is_green_only_where_it_succeeded(job: Path, tmp_path: Path, state: str) -> None:
    from airflow.sdk.exceptions import AirflowFailException

    run = gate_of(job, tmp_path, state)
    if state in GREEN:
        assert run.gate()["ending"] == GREEN[state]
        return
    with pytest.raises(AirflowFailException) as failed:
        run.gate()
    if state not in ("PLANNED",):
        assert "because" in str(failed.value), "the reason is what the user must see"


@pytest.mark.parametrize("state", ["PLANNED", "RUNNING", "PAUSED"])
def test_a_run_that_nobody_drives_any_more_is_failed(job: Path, tmp_path: Path, state: str) -> None:
    from airflow.sdk.exceptions import AirflowFailException

    run = gate_of(job, tmp_path, state)
    with pytest.raises(AirflowFailException, match="Tasks ended before the run did"):
        run.gate()
    with StateStore(f"sqlite:///{tmp_path}/state.db") as store:
        row = store.get_run(run.run_id)
        assert row is not None
        assert (row.state, row.detail) == ("FAILED", "its Airflow tasks ended before it did")


def test_a_paused_run_is_not_judged(job: Path, tmp_path: Path) -> None:
    from airflow.sdk.exceptions import TaskDeferred

    run = gate_of(job, tmp_path, "RUNNING")
    with StateStore(f"sqlite:///{tmp_path}/state.db") as store:
        store.set_pause("all", who="somebody")
    with pytest.raises(TaskDeferred):
        run.gate()
    with StateStore(f"sqlite:///{tmp_path}/state.db") as store:
        row = store.get_run(run.run_id)
        assert row is not None
        assert row.state == "PAUSED"


def test_a_run_that_never_began_is_red(job: Path, tmp_path: Path) -> None:
    from airflow.sdk.exceptions import AirflowFailException

    with pytest.raises(AirflowFailException, match="never began: the log of task 'start'"):
        ByHand(job, tmp_path).gate()


def test_a_version_that_waits_is_green_where_nobody_can_be_asked(
    job: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from airflow.sdk.execution_time import task_runner
    from airflow.sdk.execution_time.supervisor import InProcessSupervisorComms

    run = gate_of(job, tmp_path, "AWAITING_APPROVAL", "the web is gone")
    comms = InProcessSupervisorComms(supervisor=None)
    monkeypatch.setattr(task_runner, "SUPERVISOR_COMMS", comms, raising=False)
    ended = run.gate()
    assert ended["ending"] == "awaiting_approval"
    assert "the web is gone" in ended["message"]
    assert "dataflow versions approve" in ended["message"]


def test_how_an_earlier_try_ended_makes_no_gate_green(job: Path, tmp_path: Path) -> None:
    from airflow.sdk.exceptions import AirflowFailException

    run = gate_of(job, tmp_path, "SUCCEEDED")
    del run.xcoms.values["start"]  # as Airflow does when the cleared task begins, which then failed
    with pytest.raises(AirflowFailException, match="log of task 'start'"):
        run.gate()
