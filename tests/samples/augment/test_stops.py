"""What stops a task before its end, and how it goes on: pauses, budgets, failures, a cancel."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import sqlalchemy as sa

from dataflow_ops.samples.augment import batches
from dataflow_ops.samples.augment.step import Pause
from dataflow_ops.samples.augment.tally import Tally
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
from tests.samples.augment.model_server import model_server, seeded


def first_keys(number: int) -> Callable[[str, int], str]:
    """A script in which the first so many requests (by key) fail for good."""
    seen: list[str] = []

    def script(key: str, nth: int) -> str:
        if key not in seen:
            seen.append(key)
        return "empty" if seen.index(key) < number else "answer"

    return script


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


@pytest.mark.parametrize("at_write", [3, 4, 5])
def test_an_interruption_behind_a_commit_counts_nothing_twice(
    store: SampleStore, monkeypatch: pytest.MonkeyPatch, at_write: int
) -> None:
    put_samples(store, 60)
    real, writes = store.db.write, itertools.count(1)

    @contextmanager
    def write() -> Iterator[sa.Connection]:
        with real() as connection:
            yield connection
        if threading.current_thread() is threading.main_thread() and next(writes) == at_write:
            raise KeyboardInterrupt  # the task was asked for and claimed: this was a batch

    monkeypatch.setattr(store.db, "write", write)
    with model_server() as server:
        ended = run(store, server)
        assert ended.pause == Pause("interrupt", "interrupted")
        check_counts(store, ended)
        at = store.sample_cursor(ended.task_id)
        assert at is not None
        assert at.processed_rows == 10 * (at_write - 2)
        ended = run(store, server)
    assert (ended.state, len(server.calls)) == ("SUCCESS", 60)
    check_counts(store, ended)


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
