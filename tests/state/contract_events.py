"""Every change of a state that people outside care about has its event, in the same transaction."""

from __future__ import annotations

import pytest

from dataflow_ops.errors import IllegalMove, LeaseLost
from dataflow_ops.state.machine import RUN_MOVES, RUN_STATES, TASK_STATES
from dataflow_ops.state.store import StateStore
from tests.state.store_case import EXPIRED, StoreCase, spec

_SETUP = 2
"""Events of the run that the fixture makes: planned, running."""


class EventsContract(StoreCase):
    """Topics and payloads."""

    def _said(self, store: StateStore, subject: str) -> list[str]:
        return [event.topic for event in store.pending_events() if event.subject == subject]

    def test_a_run_tells_each_of_its_states(self, store: StateStore) -> None:
        told: set[str] = set()
        paths = {
            "a": ["start", "pause", "resume", "succeed"],
            "b": ["start", "succeed_with_dead"],
            "c": ["start", "await_approval", "approve"],
            "d": ["fail", "start", "cancel"],
        }
        for run_id, events in paths.items():
            store.create_run(run_id, "web", "job", "full", "{}", None)
            before = "PLANNED"
            for event in events:
                store.set_run_state(run_id, event, "why")
                last = store.pending_events()[-1]
                after = RUN_MOVES[before, event]
                assert (last.topic, last.subject) == (f"run.{after.lower()}", run_id)
                assert last.payload == {
                    "from": before,
                    "event": event,
                    "dataset": "web",
                    "job": "job",
                    "detail": "why",
                }
                before = after
            told |= set(self._said(store, run_id))
        assert told == {f"run.{state.lower()}" for state in RUN_STATES}

    def test_a_move_that_is_refused_tells_nothing(self, store: StateStore) -> None:
        store.set_run_state("r1", "succeed")
        before = len(store.pending_events())
        with pytest.raises(IllegalMove):
            store.set_run_state("r1", "pause")
        store.set_run_state("r1", "SUCCEEDED", "the state that it has")
        assert len(store.pending_events()) == before

    def test_a_task_tells_each_of_its_states(self, store: StateStore) -> None:
        def fail(name: str, limit: int) -> None:
            store.fail(self._claim(store, spec(name).key), "Broken", "it broke", "trace", limit)

        for name in ("paused", "failed", "dead", "gone"):
            self._task(store, name)
        store.pause_task(self._claim(store, spec("paused").key), 5)
        self._commit(store, self._claim(store, spec("paused").key))
        fail("failed", 3)
        fail("dead", 1)
        store.revive(spec("dead").key)
        store.ghost(spec("paused").key)
        store.cancel("r1")
        store.set_run_state("r1", "start")
        self._task(store, "gone")
        expected = {
            "paused": ["pending", "running", "paused", "running", "success", "ghost", "cancelled"],
            "failed": ["pending", "running", "failed", "cancelled"],
            "dead": ["pending", "running", "dead", "revived", "cancelled"],
            "gone": ["pending", "cancelled", "pending"],
        }
        for name, states in expected.items():
            assert self._said(store, spec(name).key) == [f"task.{state}" for state in states]
        # What has no topic of its own name is PENDING again, under a name that says why.
        named = {state.upper() for states in expected.values() for state in states} - {"GHOST", "REVIVED"}
        assert named == TASK_STATES
        for event in store.pending_events()[_SETUP:]:
            if event.topic.startswith("task."):
                assert {"step", "partition", "runs"} <= set(event.payload)
                assert (event.payload["step"], event.payload["runs"]) == ("parse", ["r1"])

    def test_enqueueing_again_tells_nothing(self, store: StateStore) -> None:
        store.enqueue("r1", [spec("a"), spec("b")])
        before = store.pending_events()
        store.enqueue("r1", [spec("a"), spec("b")])
        store.create_run("r2", "web", "job", "full", "{}", None)
        store.enqueue("r2", [spec("a"), spec("b")])
        assert [e.topic for e in store.pending_events()[len(before) :]] == ["run.planned"]
        assert [e.subject for e in before[_SETUP:]] == sorted([spec("a").key, spec("b").key])

    def test_who_is_buried_and_who_is_fenced_off(self, store: StateStore) -> None:
        key = self._task(store)
        late = self._claim(store, key, lease_s=EXPIRED)
        assert store.claim(key, "other", max_attempts=1) is None
        assert self._said(store, key) == ["task.pending", "task.running", "task.dead"]
        with pytest.raises(LeaseLost):
            store.fail(late, "X", "x", "", 3)
        assert len(self._said(store, key)) == 3

    def test_versions_tell_what_was_decided(self, store: StateStore) -> None:
        store.add_version("web", "v1", "m1", "u", "r1", "AWAITING_APPROVAL")
        store.add_version_event("web", "v1", "published", "r1", "waits")
        assert self._said(store, "web") == ["version.added"]
        store.set_current("web", "v1", "ann", "approved", "fine")
        store.set_version_state("web", "v1", "PUBLISHED")
        store.set_version_state("web", "v1", "PUBLISHED")
        store.add_version("web", "v2", "m2", "u", "r1", "PUBLISHED")
        store.set_current("web", "v2", "r1")
        store.set_current("web", "v1", "ann", "rolled_back", "v2 was bad")
        store.set_version_state("web", "v2", "REJECTED", "rejected", "ann", "bad")
        assert self._said(store, "web")[1:] == [
            "version.approved",
            "version.state",
            "version.published",
            "version.current",
            "version.state",
            "version.state",
            "version.added",
            "version.published",
            "version.current",
            "version.rolled_back",
            "version.current",
            "version.rejected",
            "version.state",
        ]
        back = next(e for e in store.pending_events() if e.topic == "version.rolled_back")
        assert back.payload == {"version": "v1", "who": "ann", "note": "v2 was bad"}
