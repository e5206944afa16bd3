"""A task against a real server and a real database: how it ends, what it asks, what it keeps."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from dataflow_ops.errors import ConfigError
from dataflow_ops.samples.augment import batches, step
from dataflow_ops.samples.augment.step import Pause
from dataflow_ops.samples.augment.tally import Tally
from dataflow_ops.state.samples.failures import Which, change_failures, edit_failure
from dataflow_ops.state.samples.store import SampleStore
from dataflow_ops.state.samples.targets import count_targets
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
from tests.samples.augment.model_server import answer_to, model_server, seeded

ASSISTANT = set(range(2, 10_000, 2))


@pytest.fixture
def store(sqlite_url: str) -> Iterator[SampleStore]:
    with SampleStore(sqlite_url, 5.0) as store:
        yield store


def first_keys(number: int) -> Callable[[str, int], str]:
    """A script in which the first so many requests (by key) fail for good."""
    seen: list[str] = []

    def script(key: str, nth: int) -> str:
        if key not in seen:
            seen.append(key)
        return "empty" if seen.index(key) < number else "answer"

    return script


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


def test_a_cancelled_task_stops_and_keeps_its_answers(store: SampleStore) -> None:
    put_samples(store, 60)
    cancelled: list[str] = []

    def cancel(tally: Tally) -> None:
        if tally.answered >= 12 and not cancelled:
            cancelled.extend(task.task_id for task in store.sample_tasks())
            store.cancel_task(cancelled[0], "ann")

    with model_server(delay_s=0.01) as server:
        ended = run(store, server, hears=Heard(cancel))
        assert (ended.state, store.sample_task(ended.task_id).state) == ("CANCELLED", "CANCELLED")
        assert "cancelled by ann" in ended.message
        assert 12 <= len(answers(store)) < 60
        # What was under way was asked for nothing, at most as many as are asked at once.
        assert len(server.calls) - len(answers(store)) <= 4


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


def test_a_batch_without_success_fails_the_task(store: SampleStore) -> None:
    put_samples(store, 30)
    with model_server(first_keys(10)) as server:
        one = template(limits={"concurrency": 1})
        ended = run(store, server, one)
        assert ended.state == "FAILED"
        assert "no answer in a batch of 10: 10 × EmptyAnswer: the answer is empty" in ended.message
        task = store.sample_task(ended.task_id)
        assert (task.state, task.error_type) == ("FAILED", "BatchFailed")
        assert task.error_message == ended.message
        assert task.counts["failed"] == len(queue(store, "OPEN")) == 10
        # What the model's answers were is known: the next run goes on behind them.
        ended = run(store, server, one)
        assert ended.state == "SUCCESS"
        assert (len(answers(store)), len(queue(store))) == (20, 10)
        assert len(server.calls) == 30
    check_counts(store, ended)


def test_an_endpoint_that_is_away_loses_no_row(store: SampleStore) -> None:
    put_samples(store, 25)
    wanted = template(endpoint={"tries": 2})
    with model_server(lambda key, nth: "broken") as server:
        ended = run(store, server, wanted)
        assert ended.state == "FAILED"
        assert "EndpointAway: the endpoint answers 500" in ended.message
        assert "are asked again by the next run" in ended.message
        put_back = queue(store)
        assert {row["state"] for row in put_back} == {"REQUEUED"}
        assert 10 <= len(put_back) <= 14
        again = run(store, server, wanted)
        assert again.state == "FAILED"
        assert len(queue(store, "REPLACED")) >= 10
        server.script = lambda key, nth: "answer"
        ended = run(store, server, wanted)
    assert (ended.state, ended.counts["failed"]) == ("SUCCESS", 0)
    check_each_has_one(store, {*range(2, 51, 2)})
    check_counts(store, ended)
    assert queue(store, "OPEN", "REQUEUED") == []


def test_a_refused_key_stops_the_task_at_once(store: SampleStore) -> None:
    put_samples(store, 40)
    with model_server(api_key="right") as server:
        ended = run(store, server)
        assert ended.state == "FAILED"
        assert "refuses all questions" in ended.message
        assert "401" in ended.message
        asked = len(server.calls)
        assert asked <= 4  # as many as are asked at once
        server.api_key = None
        ended = run(store, server)
    assert ended.state == "SUCCESS"
    check_each_has_one(store, {*range(2, 81, 2)})


def test_a_pause_is_a_state_and_uses_no_attempt(store: SampleStore) -> None:
    put_samples(store, 60)
    wanted = template()
    with model_server(delay_s=0.02) as server:

        def pause(tally: Tally) -> None:
            if tally.answered >= 17 and not flagged:
                flagged.append(tally.answered)
                store.set_pause("dataset", "chat", "ann", "lunch")

        flagged: list[int] = []
        ended = run(store, server, wanted, Heard(pause))
        assert ended.state == "PAUSED"
        assert "paused by ann" in ended.message
        task = store.sample_task(ended.task_id)
        assert (task.state, task.attempt, task.error_type) == ("PAUSED", 1, None)
        assert "lunch" in str(task.error_message)
        # Within one batch: no more than what was under way.
        assert len(server.calls) <= flagged[0] + 10
        assert len(answers(store)) == len(server.calls)
        check_counts(store, ended)
        cursor = store.sample_cursor(ended.task_id)
        assert cursor is not None
        assert cursor.processed_rows <= len(answers(store))
        assert cursor.processed_rows % 10 == 0
        again = run(store, server, wanted)
        assert (again.state, again.message, again.pause) == ("PAUSED", ended.message, ended.pause)
        assert ended.pause == Pause("flag", str(task.error_message))
        store.clear_pause("dataset", "chat")
        ended = run(store, server, wanted)
    assert ended.state == "SUCCESS"
    assert store.sample_task(ended.task_id).attempt == 1
    assert len(server.calls) == 60
    assert len({call.key for call in server.calls}) == 60
    check_counts(store, ended)
    topics = [event.topic for event in store.pending_events() if event.subject == ended.task_id]
    assert topics.count("sample_task.paused") == 1
    assert "sample_task.failed" not in topics


def test_a_pause_does_not_wait_for_a_back_off(store: SampleStore) -> None:
    put_samples(store, 10)
    transient = template(endpoint={"back_off_s": 3600.0})
    with model_server(lambda key, nth: "broken") as server:

        def pause(tally: Tally) -> None:
            if len(server.calls) >= 4:
                store.set_pause("all", "", "ann")

        ended = run(store, server, transient, Heard(pause))
    assert ended.state == "PAUSED"
    assert (answers(store), queue(store)) == ([], [])


@pytest.mark.parametrize("limit", ["tokens", "cost"])
def test_a_budget_pauses_the_task_and_is_never_passed(store: SampleStore, limit: str) -> None:
    put_samples(store, 60)
    prices = {"prompt": 1_000_000.0, "completion": 1_000_000.0}  # a token costs one
    budget = {"budget_tokens": 3000} if limit == "tokens" else {"budget_cost": 3000.0}
    small = template(prices=prices, limits={"concurrency": 4, **budget})
    with model_server(seeded(3, {"cut": 0.2})) as server:
        ended = run(store, server, small)
        assert ended.state == "PAUSED"
        task = store.sample_task(ended.task_id)
        assert task.state == "PAUSED"
        assert str(task.error_message).startswith("the budget is reached: ")
        assert ended.pause == Pause("budget", str(task.error_message))
        assert ended.message == f"{task.error_message}; then the same command goes on"
        counts = ended.counts
        used = sum(counts[n] for n in ("prompt_tokens", "completion_tokens", "lost_tokens", "cut_tokens"))
        assert 2000 < used <= 3000
        assert counts["cost"] + counts["lost_cost"] + counts["cut_cost"] == used
        # Asked once more with the same budget nothing is spent.
        before = len(server.calls)
        assert run(store, server, small).state == "PAUSED"
        assert len(server.calls) - before <= 4
        ended = run(store, server, template(prices=prices))
    assert ended.state == "SUCCESS"
    check_each_has_one(store, {*range(2, 121, 2)})
    check_counts(store, ended)


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


def test_a_task_is_kept_while_it_is_counted(store: SampleStore, monkeypatch: pytest.MonkeyPatch) -> None:
    put_samples(store, 5)
    silent: list[bool] = []

    def slow(*arguments: Any) -> int:
        time.sleep(1.0)
        silent.append(store.sample_tasks()[0].silent)
        return count_targets(*arguments)

    monkeypatch.setattr(batches, "count_targets", slow)
    with model_server() as server:
        assert run(store, server, lease_s=0.6).state == "SUCCESS"
    assert silent == [False]


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


def test_a_fault_of_ours_fails_the_task_and_is_raised(store: SampleStore) -> None:
    put_samples(store, 5)

    def broken(tally: Tally) -> None:
        raise ZeroDivisionError("broken")

    with model_server() as server:
        with pytest.raises(ZeroDivisionError):
            run(store, server, hears=Heard(broken))
        (task,) = store.sample_tasks()
        assert (task.state, task.error_type) == ("FAILED", "ZeroDivisionError")
        assert run(store, server).state == "SUCCESS"
    assert len({call.key for call in server.calls}) == len(server.calls) == 5
