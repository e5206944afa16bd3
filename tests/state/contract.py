"""What every state database must do. Subclasses supply ``url``: a fresh database with the schema in place."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import sqlalchemy as sa

from dataflow_ops.errors import (
    CommitUnknown,
    ConfigError,
    ConservationError,
    IllegalMove,
    LeaseLost,
    StateError,
    VersionError,
)
from dataflow_ops.state.store import StateStore
from dataflow_ops.state.tables import cursor, dead_letter, metric, outbox, rule_hit, task_output
from dataflow_ops.values import Claim, Counts, DeadLetter, Output, Slice, TaskSpec

EXPIRED = 0.0
"""A lease that is over as soon as it is given."""


def spec(name: str, step: str = "parse", partition: str | None = None) -> TaskSpec:
    return TaskSpec(hashlib.sha256(name.encode()).hexdigest(), step, "parse", partition or name)


def letter(path: str = "a.html", error: str = "ParserFailed", position: int = 7) -> DeadLetter:
    return DeadLetter(
        "document", "parse", "web", path, position, "", error, "bad", "html@1", "text/html", "h"
    )


def output(kind: str = "text", uri: str = "data/parse/x") -> Output:
    return Output(kind, uri, 10, 20, "ff", 3, (Slice("", 0, 10, "ff", 3),))


class StateStoreContract:
    @pytest.fixture
    def url(self) -> str:
        raise NotImplementedError

    @pytest.fixture
    def store(self, url: str) -> Iterator[StateStore]:
        with StateStore(url) as store:
            store.create_run("r1", "web", "job", "full", "{}", "2026-01-01")
            store.set_run_state("r1", "start")
            yield store

    def _task(self, store: StateStore, name: str = "t", run_id: str = "r1") -> str:
        store.enqueue(run_id, [spec(name)])
        return spec(name).key

    def _claim(self, store: StateStore, key: str, **more: object) -> Claim:
        claim = store.claim(key, "me", **more)  # type: ignore[arg-type]
        assert claim is not None
        return claim

    def _commit(self, store: StateStore, claim: Claim, dead: Sequence[DeadLetter] = ()) -> None:
        counts = Counts(4 + len(dead), 2, 1, len(dead), {"later": 1}, 2, 100, 7)
        store.commit(claim, [output("text"), output("rejects")], counts, {"m": 1.5}, {"rule": 1}, dead, 2.0)

    def _state(self, store: StateStore, key: str) -> str:
        return store.records([key])[key].state

    def _number(self, store: StateStore, table: sa.Table) -> int:
        with store.db.read() as connection:
            return connection.execute(sa.select(sa.func.count()).select_from(table)).scalar_one()

    def _topics(self, store: StateStore) -> list[str]:
        return [event.topic for event in store.pending_events()]

    # Runs

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
        assert self._topics(store) == ["run.running", "run.succeeded"]

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

    # Claims and leases

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
        assert self._topics(store) == ["run.running"]
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
        assert self._topics(store) == ["run.running", "task.paused", "task.success"]

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

    # Commit

    def test_a_commit_records_everything(self, store: StateStore) -> None:
        key = self._task(store)
        sliced = Output(
            "sliced", "u", 9, 5, "aa", 2, (Slice("1", 0, 4, "bb", 1), Slice("2", 4, 0, "", 0)), {"tokens": 5}
        )
        counts = Counts(4, 1, 1, 1, {"rejected_before": 1}, 3, 50, 9)
        store.commit(
            self._claim(store, key),
            [sliced, output()],
            counts,
            {"m": 2.0, "broken": float("nan"), "huge": float("inf")},
            {"r": 3},
            [letter()],
            1.25,
        )
        record = store.records([key])[key]
        assert record.outputs == (sliced, output())
        assert record.outputs[0].slices[1].name == "2"
        assert (record.counts, record.seconds, record.state) == (counts, 1.25, "SUCCESS")
        assert store.metrics_of_run("r1")["parse"].metrics == {"m": 2.0, "non_finite_metrics": 2.0}
        assert store.rule_hits_of_run("r1") == {"parse": {"r": 3}}

    def test_an_output_without_slices_stays_so(self, store: StateStore) -> None:
        key = self._task(store)
        bare = Output("text", "u", 1, 1, "a", 1)
        store.commit(self._claim(store, key), [bare], Counts(), {}, {}, [], 0.0)
        assert store.records([key])[key].outputs == (bare,)

    def test_a_second_commit_of_one_claim_is_refused(self, store: StateStore) -> None:
        key = self._task(store)
        claim = self._claim(store, key)
        assert not store.committed(claim)
        self._commit(store, claim, [letter()])
        assert store.committed(claim)
        with pytest.raises(LeaseLost):
            self._commit(store, claim, [letter()])
        assert self._number(store, task_output) == 2
        assert self._number(store, dead_letter) == 1
        assert self._topics(store).count("task.success") == 1

    def test_a_ghost_is_made_again_and_doubles_nothing(self, store: StateStore) -> None:
        key = self._task(store)
        self._commit(store, self._claim(store, key), [letter("a"), letter("b")])
        seen = store.records([key])[key]
        assert store.ghost(key, seen.epoch)
        assert not store.ghost(key, seen.epoch)
        assert store.metrics_of_run("r1")["parse"].counts.kept == 0
        claim = self._claim(store, key)
        assert claim.attempt == 1
        store.commit(claim, [output("only")], Counts(2, 1, dead=1), {}, {}, [letter("a")], 1.0)
        assert not store.ghost(key, seen.epoch), "the record that was found wanting is no longer the newest"
        assert [o.kind for o in store.records([key])[key].outputs] == ["only"]
        assert self._number(store, metric) == self._number(store, rule_hit) == 0
        assert [dead.letter.path for dead in store.dead_letters()] == ["a"]

    def test_counts_that_do_not_add_up_are_not_committed(self, store: StateStore) -> None:
        key = self._task(store)
        claim = self._claim(store, key)
        with pytest.raises(ConservationError, match="parse"):
            store.commit(claim, [output()], Counts(5, 1), {}, {}, [], 1.0)
        assert self._state(store, key) == "RUNNING"
        assert self._number(store, task_output) == 0
        store.heartbeat(claim)

    def test_a_connection_lost_in_commit_is_told_apart(
        self, store: StateStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        key = self._task(store)
        claim = self._claim(store, key)
        real = sa.RootTransaction.commit

        def cut_after(transaction: sa.RootTransaction) -> None:
            real(transaction)
            raise sa.exc.OperationalError("COMMIT", None, Exception("server closed the connection"))

        monkeypatch.setattr(sa.RootTransaction, "commit", cut_after)
        with pytest.raises(CommitUnknown):
            self._commit(store, claim)
        monkeypatch.undo()
        assert store.committed(claim), "it had gone through, and reading says so"

    # Races between processes

    def _race(self, url: str, deed: str, *rest: str, racers: int = 3) -> list[str]:
        script = Path(__file__).with_name("racer.py")
        root = str(Path(__file__).parents[2])
        processes = [
            subprocess.Popen(
                [sys.executable, str(script), url, deed, *rest],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                cwd=root,
            )
            for _ in range(racers)
        ]
        for process in processes:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
        for process in processes:
            assert process.stdin is not None
            process.stdin.write("\n")
            process.stdin.flush()
        return [process.communicate(timeout=60)[0].strip() for process in processes]

    def test_exactly_one_process_wins_each_claim(self, store: StateStore, url: str) -> None:
        specs = [spec(f"t{i}") for i in range(20)]
        store.enqueue("r1", specs)
        won = [int(n) for n in self._race(url, "claim", ",".join(s.key for s in specs))]
        assert sum(won) == 20
        records = store.records_of_step("r1", "parse").values()
        assert {(r.state, r.epoch, r.attempt) for r in records} == {("RUNNING", 1, 1)}

    def test_exactly_one_process_commits(self, store: StateStore, url: str) -> None:
        key = self._task(store)
        claim = self._claim(store, key)
        answers = self._race(url, "commit", key, str(claim.epoch))
        assert sorted(answers) == ["committed", "lost", "lost"]
        assert self._number(store, task_output) == 1

    @pytest.mark.crash
    def test_a_kill_inside_a_transaction_leaves_nothing(self, store: StateStore, url: str) -> None:
        key = self._task(store)
        assert self._race(url, "die_in_commit", key, racers=1) == [""]
        record = store.records([key])[key]
        assert (record.state, record.outputs, record.owner) == ("RUNNING", (), "doomed")
        assert self._topics(store) == ["run.running"]
        again = self._claim(store, key)
        assert again.attempt == 2
        self._commit(store, again)

    def test_cancel_against_enqueue_leaves_no_task_without_its_run(self, store: StateStore) -> None:
        """Whoever comes first, a task that a live run wants is never left cancelled."""
        specs = [spec(f"t{i}") for i in range(50)]
        for i in range(8):
            store.create_run(f"a{i}", "web", "job", "full", "{}", None)
            store.enqueue(f"a{i}", specs)
            store.create_run(f"b{i}", "web", "job", "full", "{}", None)
            start = threading.Barrier(2)

            def cancel(run_id: str = f"a{i}", start: threading.Barrier = start) -> None:
                start.wait()
                store.cancel(run_id)

            def enqueue(run_id: str = f"b{i}", start: threading.Barrier = start) -> None:
                start.wait()
                store.enqueue(run_id, specs)

            with ThreadPoolExecutor(2) as pool:
                for done in [pool.submit(cancel), pool.submit(enqueue)]:
                    done.result()
            assert store.states_of_run(f"b{i}") == {"parse": {"PENDING": 50}}

    # Records in bulk

    def test_records_of_unknown_keys(self, store: StateStore) -> None:
        key = self._task(store)
        assert store.records([]) == {}
        assert list(store.records(["nope", key])) == [key]

    # Dead letters

    def test_dead_letters_can_be_found_counted_retried_and_dropped(self, store: StateStore) -> None:
        key = self._task(store)
        odd = letter("\ud800\0.html", "UndecodableText")
        self._commit(store, self._claim(store, key), [letter("b"), letter("a"), odd])
        assert [d.letter.path for d in store.dead_letters("r1")] == ["a", "b", "\ufffd\ufffd.html"]
        assert store.dead_letters("r2") == []
        assert len(store.dead_letters(dataset="web", error="ParserFailed")) == 2
        assert store.dead_letters(dataset="code") == []
        assert len(store.dead_letters(limit=1)) == 1
        assert store.count_dead_letters("error") == {"ParserFailed": 2, "UndecodableText": 1}
        assert store.count_dead_letters("host", run_id="r1") == {"h": 3}
        with pytest.raises(ConfigError):
            store.count_dead_letters("message")  # type: ignore[arg-type]
        a, b, _ = store.dead_letters()
        assert store.retry_dead_letter([a.id]) == 1
        assert store.retry_dead_letter([a.id]) == 0
        assert store.drop_dead_letters([a.id, b.id]) == 1
        assert len(store.dead_letters()) == 1
        assert [d.id for d in store.dead_letters(state="retried")] == [a.id]

    def test_what_a_person_decided_outlives_a_rerun(self, store: StateStore) -> None:
        key = self._task(store)
        self._commit(store, self._claim(store, key), [letter("a"), letter("b")])
        a, _ = store.dead_letters()
        store.drop_dead_letters([a.id])
        store.ghost(key)
        self._commit(store, self._claim(store, key), [letter("a"), letter("b")])
        assert {d.letter.path: d.state for d in store.dead_letters(state=None)} == {
            "a": "dropped",
            "b": "open",
        }

    def test_letters_of_what_a_later_run_read_anew_are_past(self, store: StateStore) -> None:
        store.create_run("other", "code", "job", "full", "{}", "2026-01-01")
        for name, run_id in (("old", "r1"), ("kept", "r1"), ("code", "other")):
            partition = {"old": "p", "kept": "q", "code": "p"}[name]
            store.enqueue(run_id, [spec(name, partition=partition)])
            self._commit(store, self._claim(store, spec(name).key), [letter(name)])

        def paths() -> list[str]:
            found = [d.letter.path for d in store.dead_letters(newest=True)]
            assert sum(store.count_dead_letters("error", newest=True).values()) == len(found)
            return found

        assert paths() == ["code", "kept", "old"]
        store.create_run("r2", "web", "job", "full", "{}", "2026-01-02")
        store.enqueue("r2", [spec("listing", "discover")])
        assert paths() == ["code", "kept", "old"], "the new run has read nothing yet"
        store.enqueue("r2", [spec("new", partition="p"), spec("kept", partition="q")])
        assert paths() == ["code", "kept"]
        self._commit(store, self._claim(store, spec("new").key), [letter("new")])
        assert paths() == ["code", "kept", "new"]
        store.enqueue("r2", [spec("retried", partition="p")])
        assert paths() == ["code", "kept"], "the partition has a new key"
        assert len(store.dead_letters()) == 4

    def test_retrying_the_letter_of_a_dead_chunk_revives_it(self, store: StateStore) -> None:
        key = self._task(store)
        store.fail(self._claim(store, key), "X", "x", "", 1)
        (dead,) = store.dead_letters()
        assert store.retry_dead_letter([dead.id]) == 1
        assert self._state(store, key) == "PENDING"
        store.fail(self._claim(store, key), "X", "x", "", 1)
        assert [d.id for d in store.dead_letters()] == [dead.id], "dead again is open again"

    # Versions

    def test_versions(self, store: StateStore) -> None:
        first = store.add_version("web", "v1", "m1", "versions/v1", "r1", "PUBLISHED")
        assert (first.version_id, first.is_current) == ("v1", False)
        assert store.add_version("web", "v1b", "m1", "x", "r1", "PUBLISHED") == first
        assert store.add_version("web", "v1", "m1", "x", "r1", "PUBLISHED") == first
        with pytest.raises(VersionError, match="another manifest"):
            store.add_version("web", "v1", "m2", "x", "r1", "PUBLISHED")
        store.add_version("web", "v2", "m2", "versions/v2", "r1", "PUBLISHED")
        store.add_version("code", "v1", "m1", "versions/c1", "r1", "PUBLISHED")
        assert store.current("web") is None
        assert store.set_current("web", "v1", "ann").is_current
        store.set_current("web", "v2", "ann")
        assert [(v.version_id, v.is_current) for v in store.versions("web")] == [("v2", True), ("v1", False)]
        assert len(store.versions()) == 3
        with pytest.raises(VersionError, match="v9"):
            store.set_current("web", "v9")
        current = store.current("web")
        assert current is not None
        assert current.version_id == "v2"
        event = [e for e in store.pending_events() if e.topic == "version.current"][-1]
        assert event.payload == {"version": "v2", "before": "v1", "who": "ann"}

    def test_rollback(self, store: StateStore) -> None:
        for i in (1, 2, 3, 4):
            store.add_version("web", f"v{i}", f"m{i}", "u", "r1", "PUBLISHED")
        with pytest.raises(VersionError, match="no current"):
            store.rollback("web")
        store.set_version_state("web", "v2", "REJECTED")
        store.set_current("web", "v3")
        assert store.rollback("web").version_id == "v1"
        with pytest.raises(VersionError, match="no version before"):
            store.rollback("web")
        store.set_current("web", "v3")
        with pytest.raises(VersionError, match="not older"):
            store.rollback("web", "v4")
        with pytest.raises(VersionError, match="rejected"):
            store.rollback("web", "v2")
        assert store.rollback("web", "v1").version_id == "v1"
        with pytest.raises(VersionError, match="roll back first"):
            store.set_version_state("web", "v1", "REJECTED")

    # Sums

    def test_sums_of_a_run(self, store: StateStore) -> None:
        store.enqueue("r1", [spec("a"), spec("b"), spec("c")])
        store.enqueue("r1", [spec("d", step="filter")])
        for name in ("a", "b"):
            self._commit(store, self._claim(store, spec(name).key))
        sums = store.metrics_of_run("r1")
        assert list(sums) == ["parse", "filter"]
        parse = sums["parse"]
        assert parse.counts == Counts(8, 4, 2, 0, {"later": 2}, 4, 200, 14)
        assert (parse.metrics, parse.seconds) == ({"m": 3.0}, 4.0)
        assert parse.tasks == {"PENDING": 1, "SUCCESS": 2}
        assert parse.first_start is not None
        assert parse.last_end is not None
        assert parse.first_start <= parse.last_end
        assert store.rule_hits_of_run("r1") == {"parse": {"rule": 2}}
        assert store.metrics_of_run("nope") == {}

    # Outbox

    def test_events_are_sent_once_they_are_marked(self, store: StateStore) -> None:
        self._commit(store, self._claim(store, self._task(store)))
        events = store.pending_events()
        assert [e.topic for e in events] == ["run.running", "task.success"]
        assert events[1].payload["partition"] == "t"
        store.mark_sent([events[0].id])
        store.mark_sent([])
        assert [e.id for e in store.pending_events()] == [events[1].id]
        assert store.prune_events(older_than_s=60) == 0
        assert store.prune_events(older_than_s=-60) == 1
        assert self._number(store, outbox) == 1
        assert self._number(store, cursor) == 0
