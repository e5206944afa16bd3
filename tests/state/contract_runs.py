"""What every state database must do with runs and their queue of tasks."""

from __future__ import annotations

import time

import pytest

from dataflow_ops.errors import (
    IllegalMove,
    LeaseLost,
    StateError,
)
from dataflow_ops.state.store import StateStore
from tests.state.store_case import StoreCase, spec


class RunsContract(StoreCase):
    def test_a_run_and_its_moves(self, store: StateStore) -> None:
        run = store.get_run("r1")
        assert run is not None
        assert (run.state, run.dataset, run.data_date, run.ended_at) == ("RUNNING", "web", "2026-01-01", None)
        assert run.started_at is not None
        assert abs(run.created_at - time.time()) < 60
        assert store.live_run("web") == run
        done = store.set_run_state("r1", "succeed", "all good")
        assert (done.state, done.detail) == ("SUCCEEDED", "all good")
        assert done.ended_at is not None
        assert store.live_run("web") is None
        with pytest.raises(IllegalMove):
            store.set_run_state("r1", "RUNNING")
        assert self._topics(store) == ["run.planned", "run.running", "run.succeeded"]

    def test_a_run_can_be_told_a_state(self, store: StateStore) -> None:
        store.set_run_state("r1", "PAUSED", "wait")
        assert store.set_run_state("r1", "PAUSED").detail == "wait"
        assert store.set_run_state("r1", "resume").state == "RUNNING"
        assert store.set_run_state("r1", "FAILED", "disk full").ended_at is not None
        assert store.set_run_state("r1", "start").ended_at is None

    def test_runs_are_listed_newest_first(self, store: StateStore) -> None:
        store.create_run("r2", "code", "job", "full", "{}", None)
        store.create_run("r3", "web", "job", "incremental", "{}", None)
        assert [run.run_id for run in store.list_runs()] == ["r3", "r2", "r1"]
        assert [run.run_id for run in store.list_runs("web", limit=1)] == ["r3"]

    def test_unknown_and_doubled_runs(self, store: StateStore) -> None:
        assert store.get_run("nope") is None
        with pytest.raises(StateError, match="nope"):
            store.set_run_state("nope", "start")
        with pytest.raises(StateError, match="exists"):
            store.create_run("r1", "web", "job", "full", "{}", None)
        with pytest.raises(IllegalMove, match="neither"):
            store.set_run_state("r1", "explode")

    # Queue

    def test_enqueue_is_idempotent_and_keeps_what_is_done(self, store: StateStore) -> None:
        specs = [spec("b"), spec("a")]
        store.enqueue("r1", specs)
        claim = self._claim(store, specs[0].key)
        self._commit(store, claim)
        store.enqueue("r1", specs)
        records = store.records_of_step("r1", "parse")
        assert list(records) == [s.key for s in specs]
        assert [r.state for r in records.values()] == ["SUCCESS", "PENDING"]
        assert store.states_of_run("r1") == {"parse": {"PENDING": 1, "SUCCESS": 1}}

    def test_a_partition_follows_its_new_key(self, store: StateStore) -> None:
        store.enqueue("r1", [spec("old", partition="p")])
        store.enqueue("r1", [spec("new", partition="p")])
        assert list(store.records_of_step("r1", "parse")) == [spec("new").key]

    def test_a_shared_task_serves_both_runs(self, store: StateStore) -> None:
        key = self._task(store)
        self._commit(store, self._claim(store, key))
        store.create_run("r2", "web", "job", "full", "{}", None)
        store.enqueue("r2", [spec("t")])
        assert store.records_of_step("r2", "parse")[key].state == "SUCCESS"

    def test_enqueue_needs_a_run_that_is_not_cancelled(self, store: StateStore) -> None:
        with pytest.raises(StateError, match="does not exist"):
            store.enqueue("nope", [spec("t")])
        store.cancel("r1")
        with pytest.raises(StateError, match="cancelled"):
            store.enqueue("r1", [spec("t")])
        assert store.records([spec("t").key]) == {}

    def test_cancel_stops_what_nobody_else_wants(self, store: StateStore) -> None:
        store.enqueue("r1", [spec(n) for n in ("done", "waiting", "running", "shared", "shared_done_run")])
        keys = {n: spec(n).key for n in ("done", "waiting", "running", "shared", "shared_done_run")}
        self._commit(store, self._claim(store, keys["done"]))
        claim = self._claim(store, keys["running"])
        store.create_run("r2", "web", "job", "full", "{}", None)
        store.enqueue("r2", [spec("shared")])
        store.create_run("r3", "web", "job", "full", "{}", None)
        store.enqueue("r3", [spec("shared_done_run")])
        store.set_run_state("r3", "fail")
        assert store.cancel("r1", "not needed") == 3
        states = {name: self._state(store, key) for name, key in keys.items()}
        assert states == {
            "done": "SUCCESS",
            "waiting": "CANCELLED",
            "running": "CANCELLED",
            "shared": "PENDING",
            "shared_done_run": "CANCELLED",
        }
        with pytest.raises(LeaseLost):
            store.heartbeat(claim)
        with pytest.raises(LeaseLost):
            self._commit(store, claim)
        assert store.claim(keys["waiting"], "me") is None
        store.set_run_state("r3", "start")
        store.enqueue("r3", [spec("waiting")])
        assert self._state(store, keys["waiting"]) == "PENDING"
        assert self._claim(store, keys["waiting"]).attempt == 1

    def test_an_ended_run_cannot_be_cancelled(self, store: StateStore) -> None:
        store.set_run_state("r1", "succeed")
        with pytest.raises(IllegalMove):
            store.cancel("r1")
