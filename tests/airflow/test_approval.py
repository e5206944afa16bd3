"""A version that waits for a person: the question, each way to answer it, and where it is not asked."""

from __future__ import annotations

import asyncio
import datetime as dt
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import pytest

from dataflow_ops.errors import ConfigError
from dataflow_ops.pipeline.versions import open_versions
from dataflow_ops.state.store import StateStore
from tests.airflow.hand import ByHand
from tests.pipeline import corpus

pytestmark = [pytest.mark.airflow, pytest.mark.xdist_group("airflow-approval")]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Questions that were put into Airflow's form. Its database is not there."""
    from airflow.sdk.execution_time import hitl

    found: list[dict[str, Any]] = []
    monkeypatch.setattr(hitl, "upsert_hitl_detail", lambda **question: found.append(question))
    return found


@pytest.fixture(scope="module")
def drifted(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A home with a current version and, by the same job, sources that have moved far; ``(job, home)``."""
    folder = tmp_path_factory.mktemp("drifted")
    job = corpus.build(folder / "in", code=6, docs=6)
    ByHand(job, folder / "home", run_id="before").all()
    for path in sorted((folder / "in" / "docs").iterdir()):
        path.unlink()
    return job, folder / "home"


@pytest.fixture
def waiting(drifted: tuple[Path, Path], tmp_path: Path) -> ByHand:
    """A run whose version waits, in a home of its own."""
    import shutil

    job, home = drifted
    shutil.copytree(home, tmp_path / "home")
    run = ByHand(job, tmp_path / "home", run_id="after")
    assert run.all()["state"] == "AWAITING_APPROVAL"
    run.context["ti"].id = uuid4()
    return run


def ask(run: ByHand) -> Any:
    """The trigger that is left behind when the question is put, as the triggerer makes it."""
    from airflow.sdk.exceptions import TaskDeferred

    with pytest.raises(TaskDeferred) as deferred:
        run.dag.get_task("approval").execute(run.context)
    assert deferred.value.method_name == "execute_complete"
    path, arguments = deferred.value.trigger.serialize()
    assert path == "dataflow_ops.airflow.approval.DecisionTrigger"
    return type(deferred.value.trigger)(**arguments)


def answer(run: ByHand, chosen: str, note: str = "looked at it") -> dict[str, Any]:
    """What the task makes of an answer in Airflow's form."""
    event = {
        "chosen_options": [chosen],
        "params_input": {"note": note},
        "responded_at": dt.datetime.now(dt.UTC),
        "responded_by_user": {"id": "7", "name": "mei"},
        "timedout": False,
    }
    return dict(run.dag.get_task("approval").execute_complete(run.context, event))


def version_of(run: ByHand) -> str:
    return str(run.xcoms.values["publish"]["version"])


def state_of(run: ByHand) -> str:
    with StateStore(f"sqlite:///{run.home}/state.db") as state:
        row = state.get_run(run.run_id)
        assert row is not None
        return row.state


def last_event(run: ByHand) -> dict[str, Any]:
    with open_versions(run.home) as versions:
        return dict(versions.events("tiny")[0])


def test_nothing_that_waits_is_nothing_to_ask(
    drifted: tuple[Path, Path], asked: list[dict[str, Any]]
) -> None:
    from airflow.sdk.exceptions import AirflowSkipException

    run = ByHand(*drifted)
    run.xcoms.values["publish"] = {"state": "SUCCEEDED_WITH_DEAD", "version": "v", "waits": []}
    with pytest.raises(AirflowSkipException, match="No version waits"):
        run.dag.get_task("approval").execute(run.context)
    assert asked == []


def test_the_question_says_why_and_where_to_look(waiting: ByHand, asked: list[dict[str, Any]]) -> None:
    ask(waiting)
    [question] = asked
    assert question["options"] == ["Approve", "Reject"]
    assert list(question["params"]) == ["note"]
    body = question["body"]
    assert version_of(waiting) in body
    for reason in waiting.xcoms.values["publish"]["waits"]:
        assert f"- {reason}" in body
    assert "| domain | docs | documents |" in body
    assert "/dags/tiny__full/runs/after" in body
    assert "/dataflow/api/versions/report?dataset=tiny&version=" in body
    assert "dataflow versions approve" in body


def test_no_event_goes_out_before_somebody_approved(waiting: ByHand) -> None:
    assert waiting.told == []
    assert waiting.dag.get_task("publish").outlets == []


def test_approved_it_becomes_current_and_is_told(waiting: ByHand, asked: list[dict[str, Any]]) -> None:
    ask(waiting)
    assert answer(waiting, "Approve") == {"version": version_of(waiting), "approved": True}
    with open_versions(waiting.home) as versions:
        assert versions.show(version_of(waiting))["current"] is True
    event = last_event(waiting)
    assert (event["action"], event["who"], event["note"]) == ("approved", "mei", "looked at it")
    [told] = waiting.told
    assert (told["version"], told["current"], told["mode"]) == (version_of(waiting), True, "full")
    assert waiting.gate()["ending"] == "done_with_dead_letters"


def test_one_that_was_overtaken_is_not_approved_in_the_form_either(
    waiting: ByHand, drifted: tuple[Path, Path], asked: list[dict[str, Any]]
) -> None:
    ask(waiting)
    more = drifted[0].parent / "code" / "more.py"
    more.write_text("def more(than: int) -> int:\n    return than + 1\n", encoding="utf-8")
    try:
        later = ByHand(drifted[0], waiting.home, run_id="later")
        later.all()
    finally:
        more.unlink()
    with open_versions(waiting.home) as versions:
        versions.approve(version_of(later))
    with pytest.raises(ConfigError, match="was overtaken by"):
        answer(waiting, "Approve")
    assert state_of(waiting) == "AWAITING_APPROVAL"
    with open_versions(waiting.home) as versions:
        assert versions.show(None)["version"] == version_of(later)


def test_rejected_it_never_becomes_current(waiting: ByHand, asked: list[dict[str, Any]]) -> None:
    from airflow.sdk.exceptions import AirflowFailException

    ask(waiting)
    assert answer(waiting, "Reject", "docs are gone")["approved"] is False
    event = last_event(waiting)
    assert (event["action"], event["who"], event["note"]) == ("rejected", "mei", "docs are gone")
    assert waiting.told == []
    assert waiting.dag.get_task("approval").outlets == []
    assert state_of(waiting) == "CANCELLED"
    with pytest.raises(AirflowFailException, match="rejected"):
        waiting.gate()


@pytest.mark.parametrize("act", ["approve", "reject"])
def test_a_decision_elsewhere_ends_the_wait(
    waiting: ByHand, asked: list[dict[str, Any]], act: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dataflow_ops.airflow import approval

    trigger = ask(waiting)
    trigger.poke_interval = 0.02

    async def unanswered(self: Any) -> None:
        return None

    monkeypatch.setattr(approval.DecisionTrigger, "_answered", unanswered)

    async def decided() -> Any:
        async def first() -> Any:
            async for event in trigger.run():
                return event.payload

        waits = asyncio.create_task(first())
        await asyncio.sleep(0.2)
        assert not waits.done(), "nobody has decided yet"
        with open_versions(waiting.home) as versions:
            getattr(versions, act)(version_of(waiting), "tiny", who="otto", note="by command")
        return await asyncio.wait_for(waits, 30)

    event = asyncio.run(decided())
    result = waiting.dag.get_task("approval").execute_complete(waiting.context, event)
    assert result["approved"] is (act == "approve")
    assert len(waiting.told) == (act == "approve")
    assert last_event(waiting)["who"] == "otto", "the first decision stands"


def test_the_slower_of_two_answers_changes_nothing(waiting: ByHand, asked: list[dict[str, Any]]) -> None:
    ask(waiting)
    with open_versions(waiting.home) as versions:
        versions.reject(version_of(waiting), "tiny", who="otto", note="no")
    assert answer(waiting, "Approve")["approved"] is False
    assert last_event(waiting)["who"] == "otto"


def test_where_nobody_can_be_asked_it_is_skipped(
    waiting: ByHand, asked: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    from airflow.sdk.exceptions import AirflowSkipException
    from airflow.sdk.execution_time import task_runner
    from airflow.sdk.execution_time.supervisor import InProcessSupervisorComms

    comms = InProcessSupervisorComms(supervisor=SimpleNamespace())
    monkeypatch.setattr(task_runner, "SUPERVISOR_COMMS", comms, raising=False)
    with pytest.raises(AirflowSkipException, match="dataflow versions approve"):
        waiting.dag.get_task("approval").execute(waiting.context)
    assert asked == []
    assert state_of(waiting) == "AWAITING_APPROVAL"


@pytest.mark.parametrize("chosen", ["Approve", "Reject"])
def test_each_run_that_came_to_the_version_ends(
    waiting: ByHand, drifted: tuple[Path, Path], asked: list[dict[str, Any]], chosen: str
) -> None:
    again = ByHand(drifted[0], waiting.home, run_id="again")
    assert again.all()["version"] == version_of(waiting)
    again.context["ti"].id = uuid4()
    ask(again)
    answer(again, chosen)
    ended = "SUCCEEDED_WITH_DEAD" if chosen == "Approve" else "CANCELLED"
    assert state_of(again) == ended
    waiting.dag.get_task("approval").execute_complete(waiting.context, {"decided elsewhere": True})
    assert state_of(waiting) == ended
