"""Sample tasks and failure queues through Airflow's real app: three rights, and what a task belongs to."""

from __future__ import annotations

import pytest

from tests.ui.conftest import Ui

pytestmark = [pytest.mark.airflow, pytest.mark.timeout(280)]


def test_messages_and_prompts_are_texts(ui: Ui) -> None:
    named = {"dataset": "tiny", "task": ui.samples.task}
    seen = ui.get("viewer", "/api/samples/failures", **named)
    assert (seen.status_code, "secret" in seen.text) == (200, False)
    assert seen.json()["failures"][0]["key"] == ui.samples.failure
    assert "secret" in ui.get("texts", "/api/samples/failures", **named).text
    one = {**named, "key": ui.samples.failure}
    assert ui.get("hands", "/api/samples/failure", **one).status_code == 403
    whole = ui.get("texts", "/api/samples/failure", **one).json()
    assert (whole["prompt"][0]["role"], whole["raw_answer"]) == ("user", "raw")


def test_editing_takes_both_rights_and_answering_one(ui: Ui) -> None:
    named = {"dataset": "tiny", "task": ui.samples.task}
    edit = {**named, "key": ui.samples.failure, "prompt": [{"role": "user", "content": "other words"}]}
    for user in ("hands", "texts", "viewer", "elsewhere"):
        assert ui.post(user, "/api/samples/failure/edit", **edit).status_code == 403, user
    assert ui.post("user", "/api/samples/failure/edit", **edit).status_code == 200
    wrong = {**edit, "prompt": [{"role": "user", "content": ""}]}
    assert ui.post("user", "/api/samples/failure/edit", **wrong).status_code == 400
    one = {**named, "key": ui.samples.failure}
    assert (
        ui.get("texts", "/api/samples/failure", **one).json()["edited_prompt"][0]["content"] == "other words"
    )
    assert ui.post("texts", "/api/samples/failures/requeue", **one).status_code == 403
    ui.post("hands", "/api/samples/failures/requeue", **one)  # where another test has dropped it
    assert ui.post("hands", "/api/samples/failures/drop", **one).json()["code"] == "failures_dropped"
    assert ui.post("hands", "/api/samples/failures/requeue", **one).json()["changed"] == 1


def test_a_right_on_one_data_set_opens_no_task_of_another(ui: Ui) -> None:
    there = {"dataset": "other", "task": ui.samples.task}
    assert ui.get("elsewhere", "/api/samples/failures", **there).status_code == 404
    assert ui.post("elsewhere", "/api/samples/task/cancel", **there).status_code == 404
    assert ui.get("elsewhere", "/api/samples/datasets").json() == {"datasets": []}
    [found] = ui.get("viewer", "/api/samples/datasets").json()["datasets"]
    assert found["dataset"] == "tiny"


def test_a_pause_shows_and_a_wider_one_takes_wider_rights(ui: Ui) -> None:
    named = {"dataset": "tiny", "task": ui.samples.task}

    def shown() -> dict[str, object]:
        tasks = ui.get("viewer", "/api/samples/tasks", dataset="tiny").json()["tasks"]
        [found] = [one for one in tasks if one["task"] == ui.samples.task]
        return dict(found)

    assert ui.post("hands", "/api/samples/task/pause", **named, why="too dear").status_code == 200
    pause = shown()["pause"]
    assert isinstance(pause, dict)
    assert (pause["who"], pause["why"], pause["scope"]) == ("hands", "too dear", "run")
    assert ui.post("hands", "/api/samples/task/resume", **named).status_code == 200
    assert shown()["pause"] is None
    for scope in ("dataset", "all"):
        assert ui.post("hands", "/api/samples/task/pause", **named, scope=scope).status_code == 403, scope
        assert ui.post("user", "/api/samples/task/pause", **named, scope=scope).status_code == 200
        assert ui.post("user", "/api/samples/task/resume", **named, scope=scope).status_code == 200
    assert shown()["pause"] is None


def test_a_run_of_the_dag_shows_to_who_may_read_it(ui: Ui) -> None:
    assert ui.get("viewer", "/api/samples/run", dag_run="none").json() == {"tasks": []}
    assert ui.get("elsewhere", "/api/samples/run", dag_run="none").status_code == 403
