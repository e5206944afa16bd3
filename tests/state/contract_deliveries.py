"""Deliveries: in order per subject, claimed by one relay at a time, never lost."""

from __future__ import annotations

import threading
from collections import Counter

import pytest
import sqlalchemy as sa

from dataflow_ops.state.deliveries import Due, Interest, Outcome
from dataflow_ops.state.outbox import emit
from dataflow_ops.state.store import StateStore
from dataflow_ops.state.tables import delivery, outbox
from tests.state.store_case import StoreCase

DESK = Interest("desk", ("note.*",))


class DeliveriesContract(StoreCase):
    """What a relay asks of the state."""

    def _emit(self, store: StateStore, *subjects: str, topic: str = "note.new") -> None:
        with store.db.write() as connection:
            for i, subject in enumerate(subjects):
                emit(connection, store.db, topic, subject, {"n": i})

    def _hand_out(self, store: StateStore, interest: Interest = DESK, limit: int = 5_000) -> int:
        after: int | None = 0
        made = 0
        while after is not None:
            number, after = store.hand_out(interest, after, limit)
            made += number
        return made

    def _next(
        self, store: StateStore, *outcomes: Outcome, owner: str = "a", room: int = 10, lease_s: float = 60.0
    ) -> list[Due]:
        return store.exchange("desk", owner, outcomes, room, lease_s)

    def _sent(self, *due: Due) -> list[Outcome]:
        return [Outcome(one.event.id, "SENT") for one in due]

    def _subjects(self, due: list[Due]) -> list[str]:
        return [one.event.subject for one in due]

    def test_what_is_wanted_is_handed_out_once(self, store: StateStore) -> None:
        self._emit(store, "a", "b", "c")
        self._emit(store, "a", topic="other.new")
        self._emit(store, "a", topic="note_x.new")  # an underscore is no wildcard, nor is a prefix a pattern
        assert self._hand_out(store, limit=2) == 3
        assert self._hand_out(store) == 0
        assert self._hand_out(store, Interest("second", ("note.new", "other.*"))) == 4
        assert self._hand_out(store, Interest("third", ("*",), since=4e9)) == 0
        assert self._hand_out(store, Interest("fourth", ())) == 0
        # What came before the endpoint wanted it is handed out as well.
        assert self._hand_out(store, Interest("desk", ("note.*", "other.*"))) == 1

    def test_an_event_that_was_committed_late_is_not_passed_over(self, store: StateStore) -> None:
        """Ids are given when a row is written, not when it is seen."""
        self._emit(store, "a", "b")
        with store.db.write() as connection:
            connection.execute(sa.delete(outbox).where(outbox.c.subject == "a"))
        assert self._hand_out(store) == 1
        first = next(e.id for e in store.pending_events() if e.subject == "b")
        with store.db.write() as connection:
            connection.execute(
                sa.insert(outbox).values(
                    id=first - 1, topic="note.new", subject="b", payload="{}", created_at=store.db.now
                )
            )
        assert store.settled_event(0, 60.0) == 0
        assert store.settled_event(0, -60.0) == first
        assert self._hand_out(store) == 1
        assert [one.event.id for one in self._next(store)] == [first - 1]

    def test_a_subject_goes_in_order_and_holds_up_no_other(self, store: StateStore) -> None:
        self._emit(store, "x", "x", "y", "x", "y")
        self._hand_out(store, limit=2)
        due = self._next(store)
        assert self._subjects(due) == ["x", "y"]
        assert self._next(store) == []  # claimed
        x, y = due
        again = Outcome(x.event.id, "PENDING", "answered 500", wait_s=3600)
        due = self._next(store, again, *self._sent(y))
        assert self._subjects(due) == ["y"]
        assert self._next(store, *self._sent(*due)) == []
        assert store.retry_deliveries([x.event.id]) == 1
        due = self._next(store)
        assert [(one.event.id, one.attempts) for one in due] == [(x.event.id, 1)]
        due = self._next(store, Outcome(x.event.id, "DEAD", "answered 410"))
        assert self._subjects(due) == ["x"]
        assert due[0].event.id > x.event.id

    def test_outcomes_count_once(self, store: StateStore) -> None:
        self._emit(store, "x")
        self._hand_out(store)
        (one,) = self._next(store)
        failed = Outcome(one.event.id, "PENDING", "away", counted=False)
        (one,) = self._next(store, failed)
        assert one.attempts == 0
        failed = Outcome(one.event.id, "PENDING", "answered 500", wait_s=60)
        self._next(store, failed)
        self._next(store, failed)
        (record,) = store.deliveries()
        assert (record.attempts, record.last_error, record.state) == (1, "answered 500", "PENDING")

    def test_a_claim_ends_with_its_lease_or_its_owner(self, store: StateStore) -> None:
        self._emit(store, "x", "y")
        self._hand_out(store)
        due = self._next(store, room=1, lease_s=0.0)
        assert self._subjects(due) == ["x"]
        assert self._subjects(self._next(store, owner="b")) == ["y", "x"]
        # The one before learns too late that it failed; that says nothing of the other's try.
        self._next(store, Outcome(due[0].event.id, "DEAD", "late"), room=0)
        assert store.deliveries("DEAD") == []
        assert store.delivery_owners() == ["b"]
        assert self._next(store, owner="c") == []
        assert store.free_deliveries("b") == 2
        assert sorted(self._subjects(self._next(store, owner="c"))) == ["x", "y"]
        # But what was accepted is true, whoever says so.
        self._next(store, *self._sent(*due), room=0)
        assert [record.event_id for record in store.deliveries("SENT")] == [due[0].event.id]

    def test_relays_at_once_never_claim_one_event_twice(self, url: str, store: StateStore) -> None:
        subjects = [f"s{i % 7}" for i in range(140)]
        self._emit(store, *subjects)
        claimed: Counter[int] = Counter()
        order: dict[str, list[int]] = {}
        lock = threading.Lock()
        faults: list[BaseException] = []

        def relay(owner: str) -> None:
            try:
                with StateStore(url, patience_s=30.0) as mine:
                    outcomes: list[Outcome] = []
                    idle = 0
                    while idle < 20:
                        self._hand_out(mine, limit=9)
                        due = mine.exchange("desk", owner, outcomes, 3, 60.0)
                        idle = 0 if due or outcomes else idle + 1
                        with lock:
                            claimed.update(one.event.id for one in due)
                            for one in due:
                                order.setdefault(one.event.subject, []).append(one.event.id)
                        outcomes = self._sent(*due)
            except BaseException as e:
                faults.append(e)
                raise

        threads = [threading.Thread(target=relay, args=(name,)) for name in "abc"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert faults == []
        assert set(claimed.values()) == {1}
        assert len(claimed) == len(subjects)
        assert all(ids == sorted(ids) for ids in order.values())
        assert store.backlog([DESK])[0].sent == len(subjects)

    def test_dead_ones_are_tried_anew_or_dropped(self, store: StateStore) -> None:
        self._emit(store, "x", "x", "y")
        self._hand_out(store)
        x, y = self._next(store)
        self._next(store, *(Outcome(one.event.id, "DEAD", "answered 404") for one in (x, y)), room=0)
        assert [d.event_id for d in store.deliveries("DEAD")] == [x.event.id, y.event.id]
        assert store.retry_deliveries([y.event.id], "elsewhere") == 0
        assert store.retry_deliveries(None) == 2
        assert store.deliveries("DEAD") == []
        # The earlier one goes first again, though the later one had its turn already.
        due = self._next(store)
        assert {one.event.id for one in due} == {x.event.id, y.event.id}
        assert {one.attempts for one in due} == {0}
        assert store.drop_deliveries([x.event.id]) == 1
        assert store.drop_deliveries(None) == 0
        assert self._hand_out(store) == 0  # what was dropped is not made again
        due = self._next(store, owner="b")
        assert self._subjects(due) == ["x"]
        assert due[0].event.id > x.event.id
        assert store.drop_deliveries(None, "desk") == 2
        assert self._next(store) == []
        assert [b.waiting for b in store.backlog([DESK])] == [0]

    def test_the_backlog_counts_what_no_relay_has_looked_at(self, store: StateStore) -> None:
        assert store.backlog() == []
        self._emit(store, "x", "x", "y")
        (fresh,) = store.backlog([DESK])
        assert (fresh.waiting, fresh.dead, fresh.sent, fresh.last_error) == (3, 0, 0, None)
        assert fresh.oldest_s is not None
        assert 0 <= fresh.oldest_s < 60
        self._hand_out(store)
        x, y = self._next(store)
        self._next(store, Outcome(x.event.id, "PENDING", "answered 500", wait_s=60), *self._sent(y), room=0)
        self._emit(store, "z")
        (now,) = store.backlog([DESK])
        assert (now.waiting, now.dead, now.sent, now.last_error) == (3, 0, 1, "answered 500")
        assert now.last_sent_at is not None
        assert [b.endpoint for b in store.backlog([Interest("new", ("*",))])] == ["desk", "new"]

    def test_events_go_with_their_deliveries_once_none_waits(self, store: StateStore) -> None:
        self._emit(store, "x", "y", "z")
        self._hand_out(store)
        x, y, z = self._next(store)
        self._next(store, *self._sent(x), Outcome(y.event.id, "DEAD", "answered 404"), room=0)
        store.prune_events(older_than_s=-60)
        left = [event.id for event in store.pending_events()]
        assert left == [z.event.id]
        assert self._number(store, delivery) == 1
        self._next(store, *self._sent(z), room=0)
        assert store.prune_events(older_than_s=-60) == 0  # the newest
        self._emit(store, "w")
        assert store.pending_events()[-1].id > z.event.id
        assert self._hand_out(store) == 1

    @pytest.mark.parametrize("pattern", ["*", "note.*", "note.new", "*.new", "n*w"])
    def test_patterns(self, store: StateStore, pattern: str) -> None:
        self._emit(store, "x")
        made = self._hand_out(store, Interest("desk", (pattern,)))
        assert made == (3 if pattern == "*" else 1)
