"""What every database must do with answers, failures and the turns that are asked about."""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest
import sqlalchemy as sa

from dataflow_ops.errors import LeaseLost, StateError
from dataflow_ops.state.sample_tables import generation, generation_failure, sample
from dataflow_ops.state.samples.failures import (
    Which,
    change_failures,
    count_failures,
    edit_failure,
    list_failures,
    one_failure,
    reopen_task,
    requeue_keys,
)
from dataflow_ops.state.samples.generations import (
    Asked,
    Spent,
    Usage,
    known,
    record_answer,
    record_failure,
    spent,
)
from dataflow_ops.state.samples.records import Claim
from dataflow_ops.state.samples.store import SampleStore
from dataflow_ops.state.samples.targets import (
    Wanted,
    count_targets,
    next_targets,
    read_dialogues,
    read_turns,
    ready_files,
)
from tests.state.samples.sample_case import EXPIRED, SampleCase, put_file, put_turns

USAGE = Usage(10, 5, 0.5, 3, 0.25)


def asked(number: int, retry_of: str | None = None) -> Asked:
    key = f"{number:064x}"
    return Asked(
        key, retry_of, 2, "f1", 0, 1, 0, "better", "v1", "m", [{"role": "user", "content": "你"}], {"n": 1}
    )


class GenerationsContract(SampleCase):
    def _claimed(self, store: SampleStore, name: str = "t") -> Claim:
        if not store.sample_tasks():
            put_file(store)
            put_turns(store, "f1", range(1, 9))
        store.create_task(name, "chat", "augment", {}, ["f1"], "ann")
        return store.claim_task(name, "me")

    def _answer(self, store: SampleStore, claim: Claim, what: Asked, text: str = "better") -> None:
        with store.write() as connection:
            store.hold(connection, claim)
            task_id = claim.task.task_id
            record_answer(connection, store.db, task_id, what, text, "replacement", None, USAGE, 1.5)

    def _failure(self, store: SampleStore, claim: Claim, what: Asked, error: str = "EmptyAnswer") -> None:
        with store.write() as connection:
            store.hold(connection, claim)
            task_id = claim.task.task_id
            record_failure(connection, store.db, task_id, what, error, "no 答", "raw \0 bytes", USAGE, 2)

    def test_an_answer_is_stored_once(self, store: SampleStore) -> None:
        claim = self._claimed(store)
        self._answer(store, claim, asked(1))
        self._answer(store, claim, asked(1), "another")
        with store.read() as connection:
            (row,) = connection.execute(sa.select(generation)).mappings()
            assert known(connection, [asked(1).key, asked(2).key]).keys() == {asked(1).key}
            assert spent(connection, "t") == Spent(1, 0, USAGE)
        assert (row["answer"], row["prompt_tokens"], row["lost_tokens"]) == ("better", 10, 3)

    @pytest.mark.parametrize("text", ["", " \n"])
    def test_an_empty_answer_is_never_stored(self, store: SampleStore, text: str) -> None:
        claim = self._claimed(store)
        with pytest.raises(ValueError, match="never a result"):
            self._answer(store, claim, asked(1), text)
        assert self._number(store, generation) == 0

    def test_an_answer_or_a_failure_never_both(self, store: SampleStore) -> None:
        claim = self._claimed(store)
        self._answer(store, claim, asked(1))
        self._failure(store, claim, asked(1))
        self._failure(store, claim, asked(2))
        self._answer(store, claim, asked(2))
        assert self._number(store, generation) == 2
        assert self._number(store, generation_failure) == 0

    def test_two_tasks_at_once_leave_one_word_for_a_key(self, store: SampleStore) -> None:
        first, second = self._claimed(store, "t"), self._claimed(store, "u")
        for number in range(1, 16):
            start = threading.Barrier(2)

            def race(
                claim: Claim, answers: bool, number: int = number, start: threading.Barrier = start
            ) -> None:
                start.wait()
                (self._answer if answers else self._failure)(store, claim, asked(number))

            threads = [threading.Thread(target=race, args=a) for a in ((first, True), (second, False))]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        assert self._number(store, generation) == 15
        assert self._number(store, generation_failure) == 0

    def test_a_late_owner_records_nothing(self, store: SampleStore) -> None:
        self._claimed(store)
        store.beat("t", 1, EXPIRED)
        late = replace(store.claim_task("t", "late", EXPIRED))
        store.claim_task("t", "me")
        with pytest.raises(LeaseLost):
            self._answer(store, late, asked(1))
        with pytest.raises(LeaseLost):
            self._failure(store, late, asked(2))
        assert self._number(store, generation) == self._number(store, generation_failure) == 0

    def test_a_failure_that_is_solved_leaves_the_queue(self, store: SampleStore) -> None:
        claim = self._claimed(store)
        self._failure(store, claim, asked(1))
        with store.write() as connection:
            failure = one_failure(connection, "0000")
            assert (failure.state, failure.raw_answer, failure.message) == (
                "OPEN",
                "raw \ufffd bytes",
                "no 答",
            )
            assert (failure.prompt, failure.attempts) == ([{"role": "user", "content": "你"}], 2)
            assert change_failures(connection, store.db, Which(keys=(failure.key,)), "REQUEUED", "ann") == {
                "t": 1
            }
        self._answer(store, claim, asked(2, failure.key))
        with store.read() as connection:
            assert one_failure(connection, failure.key).state == "SOLVED"
            assert spent(connection, "t") == Spent(1, 0, USAGE + USAGE)
        with pytest.raises(StateError, match="asked again since"), store.write() as connection:
            edit_failure(connection, store.db, failure.key, [])

    def test_a_failure_that_fails_again_is_replaced(self, store: SampleStore) -> None:
        claim = self._claimed(store)
        self._failure(store, claim, asked(1))
        self._failure(store, claim, asked(2, asked(1).key), "CutShort")
        with store.read() as connection:
            assert count_failures(connection, Which(task_id="t")) == [
                ("OPEN", "CutShort", 1),
                ("REPLACED", "EmptyAnswer", 1),
            ]
            assert spent(connection, "t").failed == 1

    def test_the_queue_by_pages_and_kinds(self, store: SampleStore) -> None:
        claim = self._claimed(store)
        for number in range(1, 8):
            self._failure(store, claim, asked(number), "EmptyAnswer" if number % 2 else "CutShort")
        with store.write() as connection:
            first = list_failures(connection, Which(), 4)
            rest = list_failures(connection, Which(), 4, first[-1].key)
            assert [f.key for f in first + rest] == [asked(n).key for n in range(1, 8)]
            cut_short = Which(error="CutShort", state="OPEN")
            assert change_failures(connection, store.db, cut_short, "DROPPED", "ann") == {"t": 3}
            assert change_failures(connection, store.db, cut_short, "DROPPED", "ann") == {}
            requeue_keys(connection, store.db, [asked(1).key, asked(2).key])
            states = {f.key: f.state for f in list_failures(connection, Which(), 10)}
        assert [states[asked(n).key] for n in (1, 2, 3)] == ["REQUEUED", "DROPPED", "OPEN"]
        with pytest.raises(StateError, match="more than one"), store.read() as connection:
            one_failure(connection, "000")
        with pytest.raises(StateError, match="no failure"), store.read() as connection:
            one_failure(connection, "f%")
        assert self._topics(store).count("generation_failure.dropped") == 1

    def test_a_done_task_runs_again_only_where_something_waits(self, store: SampleStore) -> None:
        claim = self._claimed(store)
        self._failure(store, claim, asked(1))

        def reopened() -> bool:
            with store.write() as connection:
                return reopen_task(connection, store.db, "t")

        assert not reopened()
        store.finish_task(claim)
        assert not reopened()
        with store.write() as connection:
            requeue_keys(connection, store.db, [asked(1).key])
        assert reopened()
        assert not reopened()
        assert store.sample_task("t").state == "PENDING"
        event = store.pending_events()[-1]
        assert event.topic == "sample_task.pending"
        assert (event.payload["kind"], event.payload["dataset"]) == ("augment", "chat")

    def test_targets(self, store: SampleStore) -> None:
        put_file(store, "f1")
        put_file(store, "f2", "IMPORTING")
        put_turns(store, "f1", range(1, 25), turns=6)  # four dialogues, each user, assistant, …
        put_turns(store, "f2", range(30, 40))
        with store.write() as connection:
            connection.execute(sa.update(sample).where(sample.c.id.in_([2, 24])).values(status="REJECTED"))
            connection.execute(sa.update(sample).where(sample.c.id == 6).values(deleted_at=1.0))
            assert ready_files(connection, "chat") == ["f1"]

            def ids(
                turns: str, start: tuple[int, int] = (0, 0), limit: int = 99, highest: int = 24
            ) -> list[int]:
                wanted = Wanted(turns, ("assistant",), ("NEW", "KEPT"), highest)
                found = next_targets(connection, wanted, "f1", start, limit)
                if start == (0, 0) and limit == 99:
                    assert count_targets(connection, wanted, ["f1"]) == len(found)
                return [turn.sample_id for turn in found]

            assert ids("each") == [4, 8, 10, 12, 14, 16, 18, 20, 22]
            assert ids("first") == [4, 8, 14, 20]
            assert ids("last") == [4, 12, 18, 22]
            assert ids("each", (1, 2), 3) == [10, 12, 14]
            assert ids("each", highest=13) == [4, 8, 10, 12]
            assert ids("last", highest=11) == [4, 10]
            dialogues = read_dialogues(connection, "f1", [0, 3, 3], 24)
            assert {row: [t.sample_id for t in turns] for row, turns in dialogues.items()} == {
                0: [1, 2, 3, 4, 5],
                3: [19, 20, 21, 22, 23, 24],
            }
            assert read_turns(connection, [6, 4])[6].content == "text 6"
