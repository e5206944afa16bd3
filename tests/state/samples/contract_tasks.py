"""What every database must do with sample tasks: claims, cursors, pauses, snapshots, alarms."""

from __future__ import annotations

import threading
import time

import pytest
import sqlalchemy as sa

from dataflow_ops.control.pause import PauseWatch
from dataflow_ops.errors import ConfigError, EndlessRead, IllegalMove, LeaseLost, StateError
from dataflow_ops.state.records import CursorRecord
from dataflow_ops.state.sample_tables import sample, sample_task
from dataflow_ops.state.samples.records import Claim, SampleTask
from dataflow_ops.state.samples.store import SampleStore
from dataflow_ops.state.tables import cursor
from tests.state.samples.sample_case import EXPIRED, SampleCase, put_file, put_turns

AT = CursorRecord("f1", 2, 4)


class TasksContract(SampleCase):
    def _clean(self, store: SampleStore, name: str = "t") -> SampleTask:
        put_file(store)
        put_turns(store, "f1", range(1, 9))
        return store.create_task(name, "chat", "clean", {"rules": ["a"]}, ["f1"], "ann")

    def _done(self, store: SampleStore, claim: Claim, at: CursorRecord = AT, **counts: float) -> None:
        with store.write() as connection:
            store.progress(connection, claim, at, counts)

    def test_asked_for_twice_is_one_task(self, store: SampleStore) -> None:
        task = self._clean(store)
        assert (task.state, task.attempt, task.who, task.files) == ("PENDING", 0, "ann", ("f1",))
        assert store.create_task("t", "chat", "clean", {"rules": ["a"]}, ["f1"], "bob") == task
        assert self._topics(store) == ["sample_task.pending"]
        for settings, files in (({"rules": []}, ["f1"]), ({"rules": ["a"]}, ["f2"])):
            with pytest.raises(ConfigError, match=r"whose (settings|files) differ"):
                store.create_task("t", "chat", "clean", settings, files, "ann")

    @pytest.mark.parametrize(
        ("kind", "files", "message"),
        [("clean", [], "no files"), ("clean", ["f", "f"], "twice"), ("boil", ["f"], "use one of")],
    )
    def test_what_is_no_task(self, store: SampleStore, kind: str, files: list[str], message: str) -> None:
        with pytest.raises(ConfigError, match=message):
            store.create_task("t", "chat", kind, {}, files, "ann")
        assert self._number(store, sample_task) == 0

    def test_no_such_task(self, store: SampleStore) -> None:
        with pytest.raises(StateError, match="no sample task"):
            store.claim_task("nope", "me")
        with pytest.raises(StateError, match="no sample task"):
            store.sample_task("nope")

    def test_a_claim_takes_the_snapshot_once(self, store: SampleStore) -> None:
        self._clean(store)
        put_file(store, "other")
        put_turns(store, "other", range(20, 30))
        claim = store.claim_task("t", "me", EXPIRED)
        assert (claim.task.highest_id, claim.task.snapshot_rows) == (29, 8)
        assert (claim.epoch, claim.task.attempt, claim.cursor) == (1, 1, None)
        put_turns(store, "other", range(30, 40), first=5)
        again = store.claim_task("t", "me")
        assert (again.task.highest_id, again.task.snapshot_rows) == (29, 8)

    def test_a_file_that_still_grows_is_not_worked_on(self, store: SampleStore) -> None:
        put_file(store, "f1", "IMPORTING")
        store.create_task("t", "chat", "clean", {}, ["f1"], "ann")
        with pytest.raises(StateError, match="IMPORTING, not READY"):
            store.claim_task("t", "me")
        assert store.sample_task("t").state == "PENDING"

    def test_one_clean_up_of_a_data_set_at_a_time(self, store: SampleStore) -> None:
        self._clean(store)
        store.create_task("second", "chat", "clean", {}, ["f1"], "bob")
        store.create_task("export", "chat", "export", {}, ["f1"], "bob")
        put_file(store, "elsewhere", dataset="mail")
        store.create_task("third", "mail", "clean", {}, ["elsewhere"], "bob")
        first = store.claim_task("t", "me")
        with pytest.raises(LeaseLost, match="t is cleaning data set chat"):
            store.claim_task("second", "you")
        assert store.sample_task("second").state == "PENDING"
        for other in ("export", "third"):
            store.claim_task(other, "you")
        store.finish_task(first)
        assert store.claim_task("second", "you").task.state == "RUNNING"

    def test_a_clean_up_whose_owner_is_silent_stands_in_no_way(self, store: SampleStore) -> None:
        self._clean(store)
        store.create_task("second", "chat", "clean", {}, ["f1"], "bob")
        store.claim_task("t", "me", EXPIRED)
        assert store.claim_task("second", "you").task.state == "RUNNING"
        with pytest.raises(LeaseLost, match="second is cleaning"):
            store.claim_task("t", "me")

    def test_held_by_another(self, store: SampleStore) -> None:
        self._clean(store)
        store.claim_task("t", "me")
        with pytest.raises(LeaseLost, match="held by me"):
            store.claim_task("t", "you")

    def test_of_many_who_claim_at_once_one_wins(self, store: SampleStore) -> None:
        self._clean(store)
        start = threading.Barrier(6)
        won: list[int] = []

        def race(number: int) -> None:
            start.wait()
            try:
                store.claim_task("t", str(number))
            except LeaseLost:
                return
            won.append(number)

        threads = [threading.Thread(target=race, args=(n,)) for n in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(won) == 1
        assert (store.sample_task("t").owner, store.sample_task("t").epoch) == (str(won[0]), 1)

    def test_a_late_owner_writes_nothing_more(self, store: SampleStore) -> None:
        self._clean(store)
        late = store.claim_task("t", "late", EXPIRED)
        assert store.sample_task("t").silent
        claim = store.claim_task("t", "me")
        assert claim.epoch == 2
        for move in (
            lambda: store.beat("t", late.epoch, 60),
            lambda: self._done(store, late, seen=1),
            lambda: store.pause_task(late, AT),
            lambda: store.finish_task(late),
            lambda: store.fail_task(late, ValueError("x")),
        ):
            with pytest.raises(LeaseLost):
                move()
        task = store.sample_task("t")
        assert (task.state, task.owner, task.counts) == ("RUNNING", "me", {})
        assert store.sample_cursor("t") is None

    def test_what_a_late_owner_wrote_in_the_transaction_is_undone(self, store: SampleStore) -> None:
        self._clean(store)
        late = store.claim_task("t", "late", EXPIRED)
        store.claim_task("t", "me")

        def write() -> None:
            with store.write() as connection:
                connection.execute(sa.update(sample).values(status="KEPT"))
                store.progress(connection, late, AT, {})

        with pytest.raises(LeaseLost):
            write()
        with store.read() as connection:
            assert set(connection.execute(sa.select(sample.c.status)).scalars()) == {"NEW"}

    def test_a_beat_keeps_a_task(self, store: SampleStore) -> None:
        self._clean(store)
        claim = store.claim_task("t", "me", 0.6)
        for _ in range(4):
            time.sleep(0.2)
            store.beat("t", claim.epoch, 0.6)
            with pytest.raises(LeaseLost):
                store.claim_task("t", "you")

    def test_counts_add_up_and_the_cursor_moves(self, store: SampleStore) -> None:
        self._clean(store)
        claim = store.claim_task("t", "me")
        self._done(store, claim, CursorRecord("f1", 1, 2), kept=1, seconds=0.5)
        self._done(store, claim, CursorRecord("f1", 2, 4), kept=2, changed=1)
        assert store.sample_task("t").counts == {"kept": 3, "seconds": 0.5, "changed": 1}
        assert store.sample_cursor("t") == CursorRecord("f1", 2, 4)
        store.finish_task(claim, {"kept": 4})
        task = store.sample_task("t")
        assert (task.state, task.counts["kept"]) == ("SUCCESS", 7)
        assert task.ended_at is not None
        assert self._topics(store)[-1] == "sample_task.success"
        with pytest.raises(IllegalMove):
            store.claim_task("t", "me")

    def test_a_failed_task_goes_on_from_its_cursor(self, store: SampleStore) -> None:
        self._clean(store)
        claim = store.claim_task("t", "me")
        self._done(store, claim, kept=1)
        store.fail_task(claim, ValueError("bad \0 byte"), {"kept": 2})
        task = store.sample_task("t")
        assert task.counts == {"kept": 3}
        assert (task.state, task.error_type, task.error_message) == ("FAILED", "ValueError", "bad � byte")
        again = store.claim_task("t", "me")
        assert (again.cursor, again.task.attempt, again.task.error_type) == (AT, 2, None)

    # A pause is a state: neither a failure nor a success

    def test_a_pause_is_no_failure_and_no_success(self, store: SampleStore) -> None:
        self._clean(store)
        claim = store.claim_task("t", "me")
        store.pause_task(claim, AT, {"kept": 2})
        task = store.sample_task("t")
        assert (task.state, task.error_type, task.attempt, task.counts) == ("PAUSED", None, 1, {"kept": 2})
        assert self._topics(store)[-1] == "sample_task.paused"
        again = store.claim_task("t", "me")
        assert (again.task.state, again.task.attempt, again.epoch, again.cursor) == ("RUNNING", 1, 2, AT)

    @pytest.mark.parametrize("broken", ["cursor", "outbox"])
    def test_a_pause_is_one_transaction(
        self, store: SampleStore, monkeypatch: pytest.MonkeyPatch, broken: str
    ) -> None:
        """Whatever breaks last, nothing of a pause was written: cursor, state and event belong together."""
        self._clean(store)
        claim = store.claim_task("t", "me")
        before = self._topics(store)

        def fault(*_: object) -> None:
            raise OSError("the machine died here")

        target = {"cursor": "cursors.write", "outbox": "emit"}[broken]
        monkeypatch.setattr(f"dataflow_ops.state.samples.tasks.{target}", fault)
        with pytest.raises(OSError, match="died here"):
            store.pause_task(claim, AT, {"kept": 2})
        monkeypatch.undo()
        assert (store.sample_task("t").state, store.sample_task("t").counts) == ("RUNNING", {})
        assert self._number(store, cursor) == 0
        assert self._topics(store) == before
        store.pause_task(claim, AT, {"kept": 2})
        assert store.sample_task("t").state == "PAUSED"

    def test_flags_of_a_task_its_data_set_and_all(self, store: SampleStore) -> None:
        self._clean(store)
        for scope, target in (("run", "t"), ("dataset", "chat"), ("all", "")):
            watch = PauseWatch(store, "t", "chat")
            assert watch.flag() is None
            store.set_pause(scope, target, "ann", "night")
            watch = PauseWatch(store, "t", "chat")
            flag = watch.should_stop("t")
            assert flag is not None
            assert (flag.scope, flag.who) == (scope, "ann")
            assert PauseWatch(store, "x", "other").flag() is None or scope == "all"
            assert store.clear_pause(scope, target)

    def test_a_cancelled_task(self, store: SampleStore) -> None:
        self._clean(store)
        claim = store.claim_task("t", "me")
        self._done(store, claim)
        store.cancel_task("t", "ann")
        with pytest.raises(LeaseLost):
            self._done(store, claim)
        with pytest.raises(IllegalMove):
            store.claim_task("t", "me")
        with pytest.raises(IllegalMove):
            store.cancel_task("t", "ann")
        assert self._topics(store)[-1] == "sample_task.cancelled"
        again = store.create_task("t", "chat", "clean", {"rules": ["a"]}, ["f1"], "ann")
        assert (again.state, again.error_message) == ("PENDING", None)
        assert self._topics(store)[-1] == "sample_task.pending"
        assert store.claim_task("t", "me").cursor == AT

    # Alarms

    def test_more_rows_than_the_snapshot_held_is_an_alarm(self, store: SampleStore) -> None:
        self._clean(store)
        claim = store.claim_task("t", "me")
        self._done(store, claim, CursorRecord("f1", 4, 8))
        with pytest.raises(EndlessRead, match="9 rows, but there were 8"):
            self._done(store, claim, CursorRecord("f1", 5, 9))
        assert store.sample_cursor("t") == CursorRecord("f1", 4, 8)

    def test_a_table_that_grows_under_an_update_is_an_alarm(self, store: SampleStore) -> None:
        self._clean(store)
        claim = store.claim_task("t", "me")
        put_turns(store, "f1", range(9, 11), first=4)
        with pytest.raises(EndlessRead, match="grown"):
            self._done(store, claim, CursorRecord("f1", 1, 2))
        assert store.sample_cursor("t") is None

    def test_lists(self, store: SampleStore) -> None:
        self._clean(store)
        store.create_task("i", "chat", "import", {}, ["f1"], "ann")
        store.create_task("o", "other", "import", {}, ["f1"], "ann")
        assert {t.task_id for t in store.sample_tasks()} == {"t", "i", "o"}
        assert {t.task_id for t in store.sample_tasks(dataset="chat")} == {"t", "i"}
        assert [t.task_id for t in store.sample_tasks("chat", "import")] == ["i"]
        assert store.sample_tasks(state="FAILED") == []
