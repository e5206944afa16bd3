"""What every state database must do with claims, leases, cursors and pauses."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from dataflow_ops.errors import (
    ConfigError,
    LeaseLost,
    StateError,
)
from dataflow_ops.state.store import StateStore
from dataflow_ops.state.tables import task_output
from tests.state.store_case import EXPIRED, StoreCase, spec


class ClaimsContract(StoreCase):
    def test_a_claim_holds(self, store: StateStore) -> None:
        key = self._task(store)
        claim = self._claim(store, key)
        assert (claim.epoch, claim.attempt) == (1, 1)
        assert store.claim(key, "other") is None
        record = store.records([key])[key]
        assert (record.state, record.owner, record.epoch) == ("RUNNING", "me", 1)
        assert record.heartbeat_at is not None
        assert store.running_owners() == ["me"]

    def test_no_such_task(self, store: StateStore) -> None:
        with pytest.raises(StateError, match="no task"):
            store.claim("nope", "me")

    def test_a_silent_holder_loses_its_task(self, store: StateStore) -> None:
        key = self._task(store)
        late = self._claim(store, key, lease_s=EXPIRED)
        claim = self._claim(store, key)
        assert (claim.epoch, claim.attempt) == (2, 2)
        with pytest.raises(LeaseLost):
            store.heartbeat(late)
        with pytest.raises(LeaseLost):
            store.checkpoint(late, 99, 99)
        with pytest.raises(LeaseLost):
            store.pause_task(late, 99)
        with pytest.raises(LeaseLost):
            store.fail(late, "X", "x", "", 3)
        with pytest.raises(LeaseLost):
            self._commit(store, late)
        assert store.read_cursor(key) is None
        assert self._number(store, task_output) == 0
        assert self._topics(store) == [
            "run.planned",
            "run.running",
            "task.pending",
            "task.running",
            "task.running",
        ]
        self._commit(store, claim)
        assert self._state(store, key) == "SUCCESS"

    def test_a_heartbeat_renews_the_lease(self, store: StateStore) -> None:
        key = self._task(store)
        claim = self._claim(store, key, lease_s=0.5)
        for _ in range(4):
            time.sleep(0.2)
            store.heartbeat(claim, {"rows": 3})
            assert store.claim(key, "other") is None
        time.sleep(0.7)
        assert store.claim(key, "other") is not None

    def test_a_holder_that_nobody_replaced_may_still_commit(self, store: StateStore) -> None:
        key = self._task(store)
        claim = self._claim(store, key, lease_s=EXPIRED)
        self._commit(store, claim)
        assert self._state(store, key) == "SUCCESS"

    def test_an_expired_lease_costs_an_attempt_only_without_progress(self, store: StateStore) -> None:
        key = self._task(store)
        first = self._claim(store, key, lease_s=EXPIRED)
        store.checkpoint(first, 10, 10)
        second = self._claim(store, key, lease_s=EXPIRED)
        assert second.attempt == 1
        store.checkpoint(second, 10, 10)  # the same place is no progress
        third = self._claim(store, key, lease_s=EXPIRED)
        assert (third.attempt, third.epoch) == (2, 3)

    def test_a_task_that_kills_its_workers_dies(self, store: StateStore) -> None:
        key = self._task(store)
        for attempt in (1, 2, 3):
            assert self._claim(store, key, lease_s=EXPIRED, max_attempts=3).attempt == attempt
        assert store.claim(key, "me", max_attempts=3) is None
        record = store.records([key])[key]
        assert (record.state, record.error_type) == ("DEAD", "WorkerDied")
        (dead,) = store.dead_letters("r1")
        assert (dead.letter.level, dead.letter.path, dead.letter.error) == ("chunk", "t", "WorkerDied")
        assert "task.dead" in self._topics(store)

    def test_leases_of_a_dead_owner_can_be_ended(self, store: StateStore) -> None:
        key = self._task(store)
        assert store.claim(key, "gone:1") is not None
        assert store.claim(key, "me") is None
        assert store.expire_leases("other") == 0
        assert store.expire_leases("gone:1") == 1
        assert self._claim(store, key).attempt == 2

    def test_failures_use_up_attempts(self, store: StateStore) -> None:
        key = self._task(store)
        assert (
            store.fail(self._claim(store, key), "ParserFailed", "bad \0 byte \udcff", "trace", 2) == "FAILED"
        )
        record = store.records([key])[key]
        assert (record.state, record.error_type, record.error_trace) == ("FAILED", "ParserFailed", "trace")
        assert record.error_message == "bad \ufffd byte \ufffd"
        claim = self._claim(store, key)
        assert claim.attempt == 2
        assert store.fail(claim, "ParserFailed", "bad", "trace", 2) == "DEAD"
        assert store.claim(key, "me") is None
        assert store.revive(key)
        assert not store.revive(key)
        assert store.dead_letters("r1") == []
        fresh = self._claim(store, key)
        assert fresh.attempt == 1
        self._commit(store, fresh)
        assert store.records([key])[key].error_type is None
        assert store.dead_letters("r1", state=None) == []

    def test_a_lowered_limit_buries_a_failed_task(self, store: StateStore) -> None:
        key = self._task(store)
        store.fail(self._claim(store, key), "X", "x", "", 5)
        assert store.claim(key, "me", max_attempts=1) is None
        assert self._state(store, key) == "DEAD"

    # Cursor and pause

    def test_a_pause_keeps_the_cursor_and_costs_nothing(self, store: StateStore) -> None:
        key = self._task(store)
        claim = self._claim(store, key)
        store.checkpoint(claim, 5, 5, {"staged": ["a"]})
        store.pause_task(claim, 8, 8, {"staged": ["a", "b"]}, file_id="f2")
        assert self._state(store, key) == "PAUSED"
        at = store.read_cursor(key)
        assert at is not None
        assert (at.file_id, at.offset, at.processed_rows, at.detail) == ("f2", 8, 8, {"staged": ["a", "b"]})
        with pytest.raises(LeaseLost):
            store.heartbeat(claim)
        again = self._claim(store, key)
        assert (again.attempt, again.epoch) == (1, 2)
        self._commit(store, again)
        assert store.read_cursor(key) is None
        assert self._topics(store)[2:] == [
            f"task.{state}" for state in ("pending", "running", "paused", "running", "success")
        ]

    def test_pause_flags(self, store: StateStore) -> None:
        assert store.paused("r1", "web") is None
        store.set_pause("all", who="ann", why="storage moves")
        store.set_pause("dataset", "web", "bob")
        store.set_pause("run", "r1", "eve", "look")
        store.set_pause("run", "r1", "eve", "look again")
        flag = store.paused("r1", "web")
        assert flag is not None
        assert (flag.scope, flag.who, flag.why) == ("run", "eve", "look again")
        assert len(store.pauses()) == 3
        assert store.clear_pause("run", "r1")
        assert not store.clear_pause("run", "r1")
        flag = store.paused("r1", "web")
        assert flag is not None
        assert flag.scope == "dataset"
        other = store.paused("r9", "code")
        assert other is not None
        assert other.scope == "all"
        with pytest.raises(ConfigError):
            store.set_pause("world", "x")
        with pytest.raises(ConfigError):
            store.set_pause("all", "x")
        with pytest.raises(ConfigError):
            store.set_pause("run")

    def test_a_task_that_another_live_run_wants_goes_on(self, store: StateStore) -> None:
        key = self._task(store)
        assert not store.wanted_elsewhere(key, "r1")
        store.create_run("r2", "code", "job", "full", "{}", None)
        store.enqueue("r2", [spec("t")])
        assert store.wanted_elsewhere(key, "r1")
        store.set_pause("dataset", "code")
        assert not store.wanted_elsewhere(key, "r1")
        store.clear_pause("dataset", "code")
        store.take_up("r2")
        assert store.wanted_elsewhere(key, "r1")
        store.set_run_state("r2", "pause")
        assert not store.wanted_elsewhere(key, "r1")

    def test_sixteen_threads_set_pauses(self, store: StateStore) -> None:
        def work(i: int) -> None:
            for j in range(5):
                store.set_pause("run", "r1", f"t{i}", str(j))
                store.set_pause("dataset", f"d{i}", "x")
                assert store.paused("r1", "web") is not None

        with ThreadPoolExecutor(16) as pool:
            list(pool.map(work, range(16)))
        assert len(store.pauses()) == 17
        assert self._topics(store).count("pause.set") == 160
