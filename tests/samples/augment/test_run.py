"""A task against a real server and a real database: what it asks, what it keeps, what it asks again."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dataflow_ops.errors import ConfigError
from dataflow_ops.samples.augment import step
from dataflow_ops.samples.augment.tally import Tally
from dataflow_ops.state.samples.failures import Which, change_failures, edit_failure
from dataflow_ops.state.samples.store import SampleStore
from tests.samples.augment.augment_case import (
    Heard,
    answers,
    check_counts,
    check_each_has_one,
    put_samples,
    queue,
    run,
    template,
)
from tests.samples.augment.model_server import answer_to, model_server


def test_every_answer_turn_gets_a_result(store: SampleStore) -> None:
    put_samples(store, 25)
    with model_server() as server:
        ended = run(store, server)
    assert (ended.state, ended.message, ended.total) == ("SUCCESS", "25 answered", 25)
    check_each_has_one(store, {*range(2, 51, 2)})
    check_counts(store, ended)
    assert len(server.calls) == 25
    assert server.most_at_once <= 4
    row = answers(store)[0]
    (call,) = [call for call in server.calls if call.key == row["request_key"]]
    assert row["answer"] == answer_to(call.body)
    assert call.body["messages"][1]["content"].startswith("user: question ")
    assert json.loads(row["parameters"]) == {"temperature": 0.7, "max_tokens": 50}
    assert (row["model"], row["prompt_name"], row["result_as"]) == ("test-model", "better", "replacement")
    assert row["prompt_version"] == template().prompt_version
    assert row["prompt_tokens"] > 0 < row["completion_tokens"]
    task = store.sample_task(ended.task_id)
    assert (task.state, task.attempt) == ("SUCCESS", 1)
    # The samples themselves are as they were.
    cursor = store.sample_cursor(ended.task_id)
    assert cursor is not None
    assert (cursor.file_id, cursor.offset, cursor.processed_rows) == ("f1", 25, 25)


def test_a_stored_answer_is_never_asked_for_again(store: SampleStore) -> None:
    put_samples(store, 12)
    with model_server() as server:
        run(store, server)
        put_samples(store, 3, "f2", 1000)
        ended = run(store, server)
        assert (ended.state, ended.total) == ("SUCCESS", 15)
        assert ended.counts["reused"] == 12
        assert ended.counts["answered"] == 3
        assert "12 known from other tasks" in ended.message
        assert len(server.calls) == 15
        # Another model, other parameters, another text: other requests.
        for change in ({"model": "other"}, {"parameters": {"max_tokens": 51}}, {"draws": 2}):
            before = len(server.calls)
            run(store, server, template(**change))
            assert len(server.calls) == before + 15


def test_another_check_judges_stored_answers_and_asks_for_what_failed(store: SampleStore) -> None:
    put_samples(store, 20)
    with model_server(lambda key, nth: "empty" if int(key, 16) % 4 == 0 else "answer") as server:
        first = run(store, server)
        lost = len(queue(store))
        assert lost >= 2
        server.script = lambda key, nth: "answer"
        before = len(server.calls)
        # The same questions: what was answered is taken over, what failed is asked once more.
        other = template(check={"max_chars": 10_000})
        second = run(store, server, other)
        assert (second.counts["answered"], len(server.calls) - before) == (20, lost)
        assert run(store, server, other) == second
        # Under a check that none passes all are in the queue.
        strict = template(check={"max_chars": 5})
        states = [run(store, server, strict) for _ in range(3)]
        assert (states[0].state, states[-1].state) == ("FAILED", "SUCCESS")
        assert "WrongLength" in states[0].message
        assert states[-1].waiting == 20
        assert len(server.calls) == before + 2 * lost
    by_version: dict[str, list[dict[str, Any]]] = {}
    for row in answers(store):
        by_version.setdefault(row["prompt_version"], []).append(row)
    assert {version: len(rows) for version, rows in by_version.items()} == {
        template().prompt_version: 20 - lost,
        other.prompt_version: 20,
    }
    copies = [row for row in by_version[other.prompt_version] if row["prompt_tokens"] == 0]
    assert sorted(row["answer"] for row in copies) == sorted(
        row["answer"] for row in by_version[template().prompt_version]
    )
    assert first.counts["answered"] == 20 - lost


def test_a_done_task_has_nothing_to_ask(store: SampleStore) -> None:
    put_samples(store, 2)
    with model_server() as server:
        first = run(store, server)
        assert run(store, server) == first
    assert len(server.calls) == 2
    assert store.sample_task(first.task_id).attempt == 1


def test_draws_are_asked_with_seeds_of_their_own(store: SampleStore) -> None:
    put_samples(store, 4)
    with model_server() as server:
        ended = run(store, server, template(draws=3, seed=7))
    assert ended.total == 12
    check_each_has_one(store, {2, 4, 6, 8}, draws=3)
    assert sorted(call.body["seed"] for call in server.calls) == [7] * 4 + [8] * 4 + [9] * 4


def test_draws_without_a_seed_are_requests_of_their_own(store: SampleStore) -> None:
    put_samples(store, 2)
    with model_server() as server:
        run(store, server, template(draws=2))
    assert len({call.key for call in server.calls}) == 4


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        ("empty", "EmptyAnswer"),
        ("blank", "EmptyAnswer"),
        ("refusal", "Refused"),
        ("filtered", "Refused"),
        ("json", "UnreadableAnswer"),
        ("encoding", "UnreadableAnswer"),
        ("gzip_lie", "UnreadableAnswer"),
        ("too_long", "QuestionRefused"),
    ],
)
def test_what_is_no_result_goes_to_the_queue(store: SampleStore, fault: str, error: str) -> None:
    put_samples(store, 10)
    with model_server(lambda key, nth: fault if int(key, 16) % 3 == 0 else "answer") as server:
        ended = run(store, server)
    assert ended.state == "SUCCESS"
    check_each_has_one(store, {*range(2, 21, 2)})
    check_counts(store, ended)
    failed = queue(store)
    assert failed
    for row in failed:
        assert (row["error"], row["state"], row["attempts"]) == (error, "OPEN", 1)
        (call,) = [call for call in server.calls if call.key == row["request_key"]]
        assert json.loads(row["prompt"]) == call.body["messages"]
        assert row["raw_answer"]
    assert f"{len(failed)} in the failure queue" in ended.message


def test_failures_are_edited_put_back_and_asked_under_a_new_key(store: SampleStore) -> None:
    put_samples(store, 20)
    wanted = template()
    with model_server(lambda key, nth: "empty" if int(key, 16) % 4 == 0 else "answer") as server:
        ended = run(store, server, wanted)
        failed = queue(store)
        assert len(failed) >= 3
        server.script = lambda key, nth: "answer"
        edited, kept, dropped = failed[:3]
        new = [{"role": "user", "content": "Say it {{turn}} differently."}]
        with store.write() as connection:
            edit_failure(connection, store.db, edited["request_key"], new)
            change_failures(connection, store.db, Which(keys=(dropped["request_key"],)), "DROPPED", "ann")
            put_back = Which(keys=(edited["request_key"], kept["request_key"]))
            assert change_failures(connection, store.db, put_back, "REQUEUED", "ann") == {ended.task_id: 2}
        before = len(server.calls)
        again = run(store, server, wanted)
        assert (again.task_id, again.state) == (ended.task_id, "SUCCESS")
        asked = server.calls[before:]
        assert len(asked) == 2
    by_retry = {row["retry_of"]: row for row in answers(store) if row["retry_of"]}
    assert set(by_retry) == {edited["request_key"], kept["request_key"]}
    sent = {call.key: call.body["messages"] for call in asked}
    # Text that a person wrote is no template either.
    assert sent[by_retry[edited["request_key"]]["request_key"]] == new
    assert sent[by_retry[kept["request_key"]]["request_key"]] == json.loads(kept["prompt"])
    assert len(queue(store, "SOLVED")) == 2
    check_each_has_one(store, {*range(2, 41, 2)})
    check_counts(store, again)
    # The cursor stayed where it was, and a dropped one stays dropped.
    cursor = store.sample_cursor(ended.task_id)
    assert cursor is not None
    assert cursor.processed_rows == 20
    assert [row["request_key"] for row in queue(store, "DROPPED")] == [dropped["request_key"]]
    assert (again.waiting, again.counts["failed"]) == (len(failed) - 3, len(failed) - 2)
    assert "1 given up" in again.message


def test_a_failure_that_fails_again_is_one_entry(store: SampleStore) -> None:
    put_samples(store, 20)
    with model_server(lambda key, nth: "empty" if int(key, 16) % 4 == 0 else "answer") as server:
        run(store, server)
        first = queue(store)
        server.script = lambda key, nth: "refusal"
        with store.write() as connection:
            change_failures(connection, store.db, Which(), "REQUEUED", "ann")
        ended = run(store, server)
        assert ended.state == "FAILED"  # a batch without a success, with its reason
        assert "Refused" in ended.message
    check_each_has_one(store, {*range(2, 41, 2)})
    assert len(queue(store, "REPLACED")) == len(first)
    newest = queue(store, "OPEN")
    assert {row["retry_of"] for row in newest} == {row["request_key"] for row in first}
    assert {row["error"] for row in newest} == {"Refused"}


def test_what_is_put_back_while_the_task_runs_is_not_given_up(store: SampleStore) -> None:
    put_samples(store, 30)
    back: list[dict[str, int]] = []

    def put_back(tally: Tally) -> None:
        if tally.failed and not back:
            with store.write() as connection:
                back.append(change_failures(connection, store.db, Which(), "REQUEUED", "ann"))

    with model_server(lambda key, nth: "empty" if int(key, 16) % 4 == 0 else "answer") as server:
        ended = run(store, server, hears=Heard(put_back))
        number, left = back[0][ended.task_id], len(queue(store, "OPEN"))
        assert (ended.state, ended.counts["failed"]) == ("SUCCESS", number + left)
        assert ended.message.startswith(f"{30 - number - left} answered, {number} put back meanwhile")
        server.script = lambda key, nth: "answer"
        again = run(store, server)
    assert (again.counts["answered"], again.waiting) == (30 - left, left)
    check_counts(store, again)


def test_long_stretches_that_are_known_are_passed_while_an_answer_is_slow(
    store: SampleStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(step, "_MOST_OPEN", 3)
    put_samples(store, 200)
    with model_server() as server:
        wanted = template(limits={"concurrency": 16})
        run(store, server, wanted)
        put_samples(store, 1, "f0", 100_000)
        with store.write() as connection:  # the new file comes first
            connection.exec_driver_sql("UPDATE dataset_file SET created_at = 0 WHERE id = 'f0'")
        server.script = lambda key, nth: "slow"
        ended = run(store, server, wanted)
    assert (ended.state, ended.counts["reused"], ended.counts["answered"]) == ("SUCCESS", 200, 1)
    assert len(server.calls) == 201


def test_nothing_fits(store: SampleStore) -> None:
    put_samples(store, 5)
    with model_server() as server:
        ended = run(store, server, template(target={"roles": ["tool"]}))
    assert (ended.state, ended.total, server.calls) == ("SUCCESS", 0, [])


def test_no_samples(store: SampleStore) -> None:
    with model_server() as server, pytest.raises(ConfigError, match="samples import"):
        run(store, server)


def test_another_template_is_another_task(store: SampleStore) -> None:
    put_samples(store, 2)
    with model_server() as server:
        ended = run(store, server)
        with pytest.raises(ConfigError):
            run(store, server, template(model="other"), task_id=ended.task_id)
