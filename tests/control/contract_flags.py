"""What pause flags must do on every state database, with Redis beside it, without, and with a broken one."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from dataflow_ops.control.flags import PauseFlags
from dataflow_ops.control.redis_copy import key_of
from dataflow_ops.errors import ConfigError
from dataflow_ops.state.store import StateStore
from dataflow_ops.values import TaskSpec
from tests.control.redis_server import RedisServer

NOWHERE = "redis://127.0.0.1:1/0"


class FlagsContract:
    @pytest.fixture
    def url(self) -> str:
        raise NotImplementedError

    @pytest.fixture
    def state(self, url: str) -> Iterator[StateStore]:
        with StateStore(url) as state:
            for run_id, dataset in (("r1", "web"), ("r2", "web"), ("r3", "code")):
                state.create_run(run_id, dataset, "job", "full", "{}", None)
                state.set_run_state(run_id, "start")
            yield state

    def told(self, state: StateStore, run_id: str, dataset: str) -> str:
        flag = state.paused(run_id, dataset)
        return "" if flag is None else f"{flag.scope}:{flag.who}"

    def test_each_scope_covers_its_runs_and_the_narrowest_is_told(self, state: StateStore) -> None:
        flags = PauseFlags(state, None)
        flags.pause("run", "r1", "ann", "look")
        flags.pause("dataset", "web", "bob", "")
        assert [self.told(state, r, d) for r, d in (("r1", "web"), ("r2", "web"), ("r3", "code"))] == [
            "run:ann",
            "dataset:bob",
            "",
        ]
        flags.pause("all", "", "eve", "move")
        assert self.told(state, "r3", "code") == "all:eve"
        assert flags.resume("run", "r1", "ann")
        held = flags.effective("r1", "web")
        assert held is not None
        assert (held.scope, held.told) == ("dataset", "paused by bob, with all runs of web")
        assert flags.resume("dataset", "web", "bob")
        assert flags.resume("all", "", "eve")
        assert not flags.resume("all", "", "eve"), "there is none any more"
        assert flags.effective("r1", "web") is None
        assert [f["scope"] for f in self._cleared(state)] == ["run", "dataset", "all"]
        assert [f["who"] for f in self._cleared(state)] == ["ann", "bob", "eve"]

    def test_a_scope_and_its_target_go_together(self, state: StateStore) -> None:
        flags = PauseFlags(state, None)
        for scope, target in (("world", "x"), ("all", "x"), ("run", ""), ("dataset", "")):
            with pytest.raises(ConfigError):
                flags.pause(scope, target, "ann", "")
            with pytest.raises(ConfigError):
                flags.resume(scope, target, "ann")

    def test_without_redis_everything_works_and_a_person_is_told(
        self, state: StateStore, caplog: pytest.LogCaptureFixture
    ) -> None:
        flags = PauseFlags(state, NOWHERE)
        with caplog.at_level(logging.WARNING):
            flags.pause("run", "r1", "ann", "look")
            assert self.told(state, "r1", "web") == "run:ann"
            assert flags.resume("run", "r1", "ann")
        assert [r.message.partition(";")[0] for r in caplog.records] == [
            "pause flag run r1 is in the database",
            "the copy of pause flag run r1 could not be removed",
        ]
        assert self.told(state, "r1", "web") == ""

    @pytest.mark.redis
    def test_the_copy_follows_the_row(self, state: StateStore, redis_server: RedisServer) -> None:
        flags = PauseFlags(state, redis_server.url)
        flag = flags.pause("run", "r1", "安娜", "看一下")
        flags.pause("all", "", "bob", "")
        assert redis_server.keys() == ["dataflow:pause:all", "dataflow:pause:run:r1"]
        with redis_server.client() as client:
            copied = json.loads(client.get(key_of("run", "r1")))
        assert copied == {"who": "安娜", "why": "看一下", "since": flag.created_at}
        flags.resume("run", "r1", "bob")
        assert redis_server.keys() == ["dataflow:pause:all"]
        redis_server.flush()
        assert self.told(state, "r1", "web") == "all:bob", "what Redis lost holds all the same"
        flags.resume("all", "", "bob")
        with redis_server.client() as client:
            client.set(key_of("run", "r1"), "left behind")
        assert not flags.resume("run", "r1", "bob"), "a copy without a row was no flag"
        assert redis_server.keys() == []

    # What becomes of runs

    def test_runs_that_nobody_works_on_are_paused_at_once(self, state: StateStore) -> None:
        state.create_run("r4", "web", "job", "full", "{}", None)
        self._claim(state, "r2", "a")
        PauseFlags(state, None).pause("dataset", "web", "ann", "disk")
        assert self._states(state) == {"r1": "PAUSED", "r2": "RUNNING", "r3": "RUNNING", "r4": "PAUSED"}
        row = state.get_run("r1")
        assert row is not None
        assert row.detail == "paused by ann, with all runs of web: disk"

    def test_a_run_says_which_flag_holds_it_still(self, state: StateStore) -> None:
        flags = PauseFlags(state, None)
        flags.pause("run", "r1", "ann", "look")
        flags.pause("dataset", "web", "bob", "disk")
        flags.resume("run", "r1", "ann")
        row = state.get_run("r1")
        assert row is not None
        assert (row.state, row.detail) == ("PAUSED", "paused by bob, with all runs of web: disk")
        flags.resume("dataset", "web", "bob")
        row = state.get_run("r1")
        assert row is not None
        assert row.state == "PAUSED", "whoever works on it takes it up"

    def test_the_last_task_to_stop_pauses_the_run(self, state: StateStore) -> None:
        first, second = self._claim(state, "r1", "a"), self._claim(state, "r1", "b")
        state.set_pause("run", "r1", "ann")
        state.pause_task(first, 0)
        assert state.settle_pause("r1") is not None
        assert self._states(state)["r1"] == "RUNNING", "one of two tasks goes on"
        state.pause_task(second, 3)
        assert state.settle_pause("r1") is not None
        assert self._states(state)["r1"] == "PAUSED"

    def test_a_task_of_a_silent_worker_keeps_no_run_from_being_paused(self, state: StateStore) -> None:
        self._claim(state, "r1", "a", lease_s=0.0)
        state.set_pause("run", "r1", "ann")
        assert self._states(state)["r1"] == "PAUSED"

    def test_a_task_that_goes_on_for_another_run_does_not_count(self, state: StateStore) -> None:
        self._claim(state, "r1", "a")
        state.enqueue("r2", [self._spec("a")])
        state.set_pause("run", "r1", "ann")
        assert self._states(state) == {"r1": "PAUSED", "r2": "RUNNING", "r3": "RUNNING"}
        state.clear_pause("run", "r1")
        assert state.take_up("r1") is None
        state.set_pause("dataset", "web", "ann")
        assert self._states(state)["r1"] == "RUNNING", "nobody wants it without a pause any more"

    def test_a_run_goes_on_only_when_no_flag_holds(self, state: StateStore) -> None:
        state.set_pause("run", "r1", "ann")
        state.set_pause("dataset", "web", "bob")
        state.clear_pause("run", "r1")
        held = state.take_up("r1")
        assert held is not None
        assert (held.scope, self._states(state)["r1"]) == ("dataset", "PAUSED")
        state.clear_pause("dataset", "web")
        assert state.settle_pause("r1") is None
        assert self._states(state)["r1"] == "PAUSED", "settling starts nothing"
        assert state.take_up("r1") is None
        assert self._states(state)["r1"] == "RUNNING"

    def test_what_has_ended_stays_as_it_ended(self, state: StateStore) -> None:
        state.set_run_state("r1", "succeed")
        state.set_run_state("r2", "fail", "disk")
        state.set_pause("all", "", "ann")
        assert state.settle_pause("r2") is not None
        assert self._states(state) == {"r1": "SUCCEEDED", "r2": "FAILED", "r3": "PAUSED"}
        assert state.take_up("r2") is not None
        assert self._states(state)["r2"] == "FAILED"
        state.clear_pause("all", "")
        assert state.take_up("r2") is None
        assert state.take_up("r1") is None
        assert self._states(state) == {"r1": "SUCCEEDED", "r2": "RUNNING", "r3": "PAUSED"}

    def test_bundles_on_many_hosts_pause_and_go_on_together(self, url: str, state: StateStore) -> None:
        """Each bundle has a store of its own, as on a host of its own; whoever is last moves the run."""
        hosts, rounds = 6, 5
        state.enqueue("r1", [self._spec(str(i)) for i in range(hosts)])
        together = threading.Barrier(hosts + 1)

        def bundle(i: int) -> None:
            with StateStore(url) as own:
                for _ in range(rounds):
                    together.wait()
                    assert own.take_up("r1") is None
                    claim = own.claim(self._spec(str(i)).key, f"host{i}")
                    assert claim is not None
                    together.wait()  # all work; the flag is set
                    together.wait()
                    own.pause_task(claim, 0)
                    flag = own.settle_pause("r1")
                    assert flag is not None
                    assert own.take_up("r1") is not None, "a late bundle begins nothing, and starts no run"
                    together.wait()

        with ThreadPoolExecutor(hosts) as pool:
            ended = [pool.submit(bundle, i) for i in range(hosts)]
            try:
                for _ in range(rounds):
                    together.wait()
                    together.wait()
                    assert self._states(state)["r1"] == "RUNNING"
                    state.set_pause("run", "r1", "ann")
                    assert self._states(state)["r1"] == "RUNNING"
                    together.wait()
                    together.wait()
                    assert self._states(state)["r1"] == "PAUSED"
                    state.clear_pause("run", "r1")
            except BaseException:
                together.abort()
                raise
            for one in ended:
                one.result()

    def _spec(self, name: str) -> TaskSpec:
        return TaskSpec((name * 64)[:64], "parse", "parse", name)

    def _claim(self, state: StateStore, run_id: str, name: str, lease_s: float = 60.0):  # type: ignore[no-untyped-def]
        state.enqueue(run_id, [self._spec(name)])
        claim = state.claim(self._spec(name).key, "me", lease_s)
        assert claim is not None
        return claim

    def _states(self, state: StateStore) -> dict[str, str]:
        return {run.run_id: run.state for run in sorted(state.list_runs(), key=lambda r: r.run_id)}

    def _cleared(self, state: StateStore) -> list[dict[str, str]]:
        return [dict(e.payload) for e in state.pending_events() if e.topic == "pause.cleared"]  # type: ignore[arg-type]
