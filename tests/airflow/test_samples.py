"""The samples DAG by hand: a whole run, the same again, pauses, budgets, cancels, tasks that Airflow ends."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from airflow.sdk.exceptions import (  # noqa: TID253 - what the tasks raise
    AirflowException,
    AirflowFailException,
    AirflowSkipException,
    TaskDeferred,
)

from dataflow_ops.errors import ConfigError, IllegalMove
from dataflow_ops.samples import uploading
from dataflow_ops.state.sample_tables import generation, sample_change
from tests.airflow.samples_hand import Samples, fires
from tests.airflow.test_killed import as_airflow_does
from tests.samples.augment.model_server import ModelServer, model_server

pytestmark = [pytest.mark.airflow, pytest.mark.xdist_group("airflow-samples")]
ALL = {"files": ["*.jsonl"], "template": "better"}


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with model_server(delay_s=0.05) as server:
        yield server


@pytest.fixture
def samples(tmp_path: Path, server: ModelServer) -> Samples:
    found = Samples(tmp_path, server.url)
    found.file("one.jsonl", 20, "a")
    found.file("two.jsonl", 10, "b")
    return found


def exported(samples: Samples, folder: str) -> list[dict[str, Any]]:
    """Records of an export."""
    parts = sorted((samples.home / folder).glob("part-*.jsonl"))
    return [json.loads(line) for part in parts for line in part.read_text("utf-8").splitlines()]


def at_call(server: ModelServer, number: int, do: Callable[[], object]) -> None:
    """Do something when the server is asked for the so-manieth time from now on."""
    asked = itertools.count(1)

    def script(key: str, nth: int) -> str:
        if next(asked) == number:
            do()
        return "answer"

    server.script = script


def count(samples: Samples, table: sa.Table) -> int:
    with samples.store() as store, store.read() as connection:
        return int(connection.execute(sa.select(sa.func.count()).select_from(table)).scalar_one())


def test_a_whole_run_and_the_same_again(samples: Samples, server: ModelServer) -> None:
    first = samples.run(**ALL)
    left = first.all()
    assert list(left) == ["import", "clean", "augment", "export"]
    assert left["import"]["counts"]["records"] == 30
    assert left["clean"]["counts"]["kept"] == 30
    assert left["augment"]["counts"]["answered"] == 30
    found = exported(samples, left["export"]["folder"])
    assert len(found) == 60, "the dialogues, and what the model made of them"
    assert sum("generated" in record for record in found) == 30
    assert first.note("augment")["task"] in left["augment"]["tasks"]
    with samples.store() as store:
        assert {task.who for task in store.sample_tasks("chat")} == {"ann"}
    calls, changes = len(server.calls), count(samples, sample_change)
    again = samples.run("r2", **ALL).all()
    assert again["export"] == left["export"]
    assert {name: one["tasks"] for name, one in again.items()} == {
        "import": [],
        **{name: one["tasks"] for name, one in left.items() if name != "import"},
    }
    assert (len(server.calls), count(samples, sample_change)) == (calls, changes)
    with samples.store() as store:
        assert {task.attempt for task in store.sample_tasks("chat")} == {1}


def test_what_has_changed_is_done_again(samples: Samples, server: ModelServer) -> None:
    left = samples.run(**ALL).all()
    calls = len(server.calls)
    samples.file("three.jsonl", 5, "c")
    more = samples.run("r2", **ALL).all()
    assert len(server.calls) == calls + 5, "a stored answer is not asked for again"
    assert len(exported(samples, more["export"]["folder"])) == 70
    stricter = samples.run("r3", clean_settings=["dialogue.max_turns=1"], **ALL).all()
    assert stricter["clean"]["counts"]["rejected"] == 35
    assert len(server.calls) == calls + 5
    back = samples.run("r4", **ALL).all()
    assert back["clean"]["tasks"] != more["clean"]["tasks"], "another clean-up has run since"
    assert back["export"]["tasks"] != more["export"]["tasks"]
    assert left["export"]["folder"] != more["export"]["folder"]


def test_only_what_the_form_wants(samples: Samples) -> None:
    run = samples.run(files=["one.jsonl"], clean=False, export=None)
    for task in ("clean", "augment", "export"):
        with pytest.raises(AirflowSkipException):
            run.task(task)
    assert run.all()["import"]["counts"]["records"] == 20
    left = samples.run("r2", clean=False, export="instruction", export_settings=["compression=gz"]).all()
    assert list(left) == ["export"]
    assert left["export"]["counts"]["records"] == 20


@pytest.mark.parametrize(
    ("form", "told"),
    [
        ({"files": ["../secret.jsonl"]}, "relative to"),
        ({"files": ["/etc/passwd"]}, "relative to"),
        ({"files": ["none-*.jsonl"]}, "there is none of this name"),
        ({"files": ["link.jsonl"]}, "leads out of"),
    ],
)
def test_files_elsewhere_are_refused(
    samples: Samples, tmp_path: Path, form: dict[str, Any], told: str
) -> None:
    (tmp_path / "elsewhere.jsonl").write_text("{}\n", encoding="utf-8")
    (samples.home / "samples" / "link.jsonl").symlink_to(tmp_path / "elsewhere.jsonl")
    with pytest.raises(ConfigError, match=told):
        samples.run(**form).task("import")


def test_an_upload_is_imported_into_its_own_data_set(samples: Samples) -> None:
    data = (samples.home / "samples" / "one.jsonl").read_bytes()
    with samples.store() as store:
        folder = samples.home / uploading.FOLDER
        begun = uploading.begin(store, "chat", "mine.jsonl", len(data), None, "ann")
        line = f"upload:{begun.upload_id}"
        with pytest.raises(IllegalMove, match="send the rest"):
            samples.run(files=[line]).task("import")
        uploading.add_part(store, folder, begun.upload_id, 0, data)
    with pytest.raises(ConfigError, match="has no upload"):
        samples.run("r2", dataset="other", files=[line]).task("import")
    assert samples.run("r3", files=[line]).task("import")["counts"]["records"] == 20
    assert samples.run("r4", files=[line, "one.jsonl"]).task("import")["tasks"] == [], "the same bytes"


@pytest.mark.parametrize(
    ("task", "form", "told"),
    [
        ("clean", {"clean_settings": ["dialogue.most=3"]}, "dialogue.most"),
        ("export", {"export_settings": ["compression=rar"]}, "compression"),
        ("clean", {"clean_settings": ["dialogue"]}, "section.key=value"),
    ],
)
def test_settings_that_are_wrong_are_named(
    samples: Samples, task: str, form: dict[str, Any], told: str
) -> None:
    run = samples.run(files=["one.jsonl"], **form)
    run.task("import")
    with pytest.raises(ConfigError, match=told):
        run.task(task)


def test_a_pause_hands_the_slot_back_and_costs_no_attempt(samples: Samples, server: ModelServer) -> None:
    run = samples.run(files=["*.jsonl"], template="better")
    run.task("import")
    with samples.store() as store:

        def pause() -> None:
            task = store.sample_tasks("chat", "augment")[0]
            store.set_pause("run", task.task_id, "li", "the endpoint is dear today")

        at_call(server, 4, pause)
        with pytest.raises(TaskDeferred) as deferred:
            run.task("augment")
        [task] = store.sample_tasks("chat", "augment")
        assert (task.state, task.attempt) == ("PAUSED", 1)
        asked = len(server.calls)
        assert 4 <= asked <= 4 + 10 + 4, "at most one batch more, and what was under way"
        assert not fires(deferred.value.trigger, 0.5)
        with pytest.raises(TaskDeferred):
            run.task("augment", "resumed")
        assert len(server.calls) == asked, "the flag holds: nothing is begun"
        store.clear_pause("run", task.task_id, "li")
        assert fires(deferred.value.trigger, 30)
        left = run.task("augment", "resumed")
        assert left["counts"]["answered"] == 30
        [task] = store.sample_tasks("chat", "augment")
        assert (task.state, task.attempt) == ("SUCCESS", 1)
    assert len(server.calls) == 30
    assert count(samples, generation) == 30


def test_a_paused_data_set_begins_nothing(samples: Samples) -> None:
    with samples.store() as store:
        store.set_pause("dataset", "chat", "li", "")
        run = samples.run(**ALL)
        with pytest.raises(TaskDeferred) as deferred:
            run.task("import")
        assert store.sample_tasks("chat") == []
        assert not fires(deferred.value.trigger, 0.5)
        store.clear_pause("dataset", "chat", "li")
    assert fires(deferred.value.trigger, 30)
    assert run.task("import", "resumed")["counts"]["records"] == 30


def test_a_budget_that_is_used_up_pauses_until_it_is_raised(samples: Samples, server: ModelServer) -> None:
    run = samples.run(files=["one.jsonl"], template="better", budget_tokens=400)
    run.task("import")
    with pytest.raises(TaskDeferred) as deferred:
        run.task("augment")
    asked = len(server.calls)
    assert 0 < asked < 20
    assert run.note("augment")["budget_tokens"] == 400
    with samples.store() as store:
        [task] = store.sample_tasks("chat", "augment")
        flag = store.paused(task.task_id, "chat")
        assert task.state == "PAUSED"
        assert flag is not None
        assert flag.who == "budget"
        assert flag.why.startswith("the budget is reached: ")
        assert flag.why == task.error_message
        assert not fires(deferred.value.trigger, 0.5)
    more = samples.run("r2", template="better", clean=False, budget_tokens=1_000_000)
    assert more.task("augment")["counts"]["answered"] == 20
    assert len(server.calls) == 20
    assert fires(deferred.value.trigger, 30), "what waits learns that it is done"
    assert run.task("augment", "resumed")["tasks"] == [task.task_id]


def test_a_cancelled_task_fails_its_run(samples: Samples, server: ModelServer) -> None:
    run = samples.run(files=["*.jsonl"], template="better")
    run.task("import")
    with samples.store() as store:

        def cancel() -> None:
            store.cancel_task(store.sample_tasks("chat", "augment")[0].task_id, "li")

        at_call(server, 4, cancel)
        with pytest.raises(AirflowFailException, match="cancelled by li"):
            run.task("augment")
        assert store.sample_tasks("chat", "augment")[0].state == "CANCELLED"


def test_a_task_that_airflow_ends_is_given_back(samples: Samples, server: ModelServer) -> None:
    run = samples.run(files=["*.jsonl"], template="better")
    run.task("import")

    at_call(server, 12, lambda: os.kill(os.getpid(), signal.SIGTERM))
    operator = run.operator("augment")
    with as_airflow_does(operator), pytest.raises(SystemExit):
        operator.execute(run.context)
    with samples.store() as store:
        [task] = store.sample_tasks("chat", "augment")
        assert task.state == "PAUSED"
        assert store.paused(task.task_id, "chat") is None
    again = samples.run(files=["*.jsonl"], template="better")
    assert again.task("augment")["counts"]["answered"] == 30
    assert len(server.calls) == 30, "no answer was lost"


def test_two_runs_share_one_task(samples: Samples, server: ModelServer) -> None:
    first, second = samples.run(files=["*.jsonl"], template="better"), samples.run("r2", template="better")
    first.task("import")
    with samples.store() as store:
        begun, may_end = threading.Event(), threading.Event()

        def hold() -> None:
            begun.set()
            may_end.wait(30)

        at_call(server, 1, hold)
        work = threading.Thread(target=first.task, args=("augment",))
        work.start()
        assert begun.wait(30)
        deferred: list[TaskDeferred] = []
        try:
            [task] = store.sample_tasks("chat", "augment")
            second.task("augment")
        except TaskDeferred as e:
            deferred.append(e)
        finally:
            may_end.set()
            work.join()
    assert deferred, "the second waits without a slot"
    assert fires(deferred[0].trigger, 30)
    assert second.task("augment", "resumed")["tasks"] == [task.task_id]
    assert len(server.calls) == 30


def test_a_worker_that_was_killed_is_not_waited_for(
    samples: Samples, server: ModelServer, capsys: pytest.CaptureFixture[str]
) -> None:
    dead = subprocess.run(
        [sys.executable, "-c", "from dataflow_ops.engine.context import owner_name; print(owner_name())"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    run = samples.run(files=["*.jsonl"], template="better")
    run.task("import")
    with samples.store() as store:
        at_call(server, 15, lambda: store.set_pause("dataset", "chat", "li"))
        with pytest.raises(TaskDeferred):
            run.task("augment")
        assert "paused by li, with all runs of chat. The slot is free" in capsys.readouterr().out
        store.clear_pause("dataset", "chat", "li")
        [task] = store.sample_tasks("chat", "augment")
        # As a process leaves it that was killed: held for an hour by somebody who is not there any more.
        claim = store.claim_task(task.task_id, dead, 3600.0)
        assert claim.cursor is not None
        assert claim.cursor.processed_rows >= 10
    again = samples.run(files=["*.jsonl"], template="better")
    assert again.task("augment")["counts"]["answered"] == 30
    assert len(server.calls) == 30


def test_one_that_another_took_and_left_is_not_done(samples: Samples, server: ModelServer) -> None:
    run = samples.run(files=["*.jsonl"], template="better")
    run.task("import")
    with samples.store() as store:

        def take() -> None:
            [task] = store.sample_tasks("chat", "augment")
            store.beat(task.task_id, task.epoch, 0.0)
            store.claim_task(task.task_id, "a host that is not ours:1", 0.0)

        at_call(server, 12, take)
        with pytest.raises(TaskDeferred) as deferred:
            run.task("augment")
    assert fires(deferred.value.trigger, 30)
    assert run.task("augment", "resumed")["counts"]["answered"] == 30


def test_two_clean_ups_of_a_data_set_take_turns(samples: Samples) -> None:
    run = samples.run(files=["*.jsonl"], template="better")
    run.task("import")
    with samples.store() as store:
        files = [file.id for file in store.sample_files("chat")]
        store.create_task("another", "chat", "clean", {}, files, "li")
        other = store.claim_task("another", "a host that is not ours:1")
        for task in ("clean", "augment"):
            with pytest.raises(TaskDeferred) as deferred:
                run.task(task)
            assert deferred.value.trigger.sample_task == "another"
        assert not fires(deferred.value.trigger, 0.5)
        store.finish_task(other)
    assert fires(deferred.value.trigger, 30)
    assert run.task("clean", "resumed")["counts"]["kept"] == 30


def test_an_endpoint_that_is_away_is_tried_again_and_one_that_answers_badly_is_not(
    samples: Samples, server: ModelServer
) -> None:
    run = samples.run(files=["one.jsonl"], template="better")
    run.task("import")
    server.script = lambda key, nth: "broken"
    with pytest.raises(AirflowException, match="no answer in a batch") as away:
        run.task("augment")
    assert not isinstance(away.value, AirflowFailException)
    server.script = lambda key, nth: "empty"
    with pytest.raises(AirflowFailException, match="no answer in a batch"):
        run.task("augment")
    server.script = lambda key, nth: "answer"
    counts = run.task("augment")["counts"]
    assert counts["answered"] > 0
    assert counts["failed"] >= 10, "a batch at least stands in the failure queue"
    assert counts["answered"] + counts["failed"] == 20
