"""What every state database must do with commits, also in races between processes."""

from __future__ import annotations

import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import sqlalchemy as sa

from dataflow_ops.errors import (
    CommitUnknown,
    ConservationError,
    LeaseLost,
)
from dataflow_ops.state.store import StateStore
from dataflow_ops.state.tables import dead_letter, metric, rule_hit, task_output
from dataflow_ops.values import Counts, Output, Slice
from tests.state.store_case import StoreCase, letter, output, spec


class CommitsContract(StoreCase):
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
        assert self._topics(store)[-2:] == ["task.pending", "task.running"]
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
