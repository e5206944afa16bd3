"""What every state database must do with sums by step that are kept, and with verdicts on documents."""

from __future__ import annotations

import pytest
import sqlalchemy as sa

from dataflow_ops.errors import ConfigError
from dataflow_ops.state.store import StateStore
from dataflow_ops.state.tables import step_total
from dataflow_ops.state.totals import StepTotals
from tests.state.store_case import StoreCase, letter, spec


class TotalsContract(StoreCase):
    def _total(self, store: StateStore, run_id: str = "r1") -> StepTotals:
        found = store.total_of_step(run_id, "parse")
        assert found is not None
        return found

    def test_sums_are_those_of_the_rollup_and_kept_when_the_step_has_settled(self, store: StateStore) -> None:
        assert store.total_of_step("r1", "parse") is None
        one, two = self._task(store, "a"), self._task(store, "b")
        self._commit(store, self._claim(store, one), [letter()])
        found = self._total(store)
        assert (found.tasks, found.settled, found.number) == ({"PENDING": 1, "SUCCESS": 1}, False, 2)
        assert store.kept_totals("r1") == {}
        self._commit(store, self._claim(store, two))
        found = self._total(store)
        assert store.kept_totals("r1") == {"parse": found}
        counts = store.metrics_of_run("r1")["parse"].counts
        names = ("documents_in", "kept", "rejected", "dead", "documents_out", "bytes_in", "tokens_out")
        assert {n: getattr(found, n) for n in names} == {n: getattr(counts, n) for n in names}
        assert found.documents_in - found.business == sum(counts.skipped.values()) == 2
        assert found.seconds == 4.0
        assert found.fresh["tasks"] == 2
        assert store.hits_of_step("r1", "parse", settled=True) == {"rule": 2}
        assert store.hits_of_step("r1", "parse", settled=True) == {"rule": 2}
        assert store.steps_of_run("r1") == ["parse"]
        assert store.steps_of_run("r0") == []

    def test_a_task_of_an_earlier_run_is_not_this_runs_own_work(self, store: StateStore) -> None:
        self._commit(store, self._claim(store, self._task(store)))
        store.create_run("r2", "web", "job", "full", "{}", "2026-01-02")
        self._task(store, run_id="r2")
        found = self._total(store, "r2")
        assert (found.done, found.documents_in, found.fresh["tasks"]) == (1, 4, 0)
        assert (found.fresh["first"], found.fresh["documents_in"]) == (None, 0)

    @pytest.mark.parametrize("move", ["ghost", "revive", "retry", "enqueue", "unlink", "rekeyed"])
    def test_whatever_moves_a_settled_step_makes_its_sums_void(self, store: StateStore, move: str) -> None:
        key = self._task(store, "a")
        if move in ("revive", "retry"):
            claim = self._claim(store, key)
            store.fail(claim, "ParserFailed", "bad", "", 1)
        else:
            self._commit(store, self._claim(store, key))
        self._commit(store, self._claim(store, self._task(store, "b")))
        store.create_run("r2", "web", "job", "full", "{}", "2026-01-02")
        store.enqueue("r2", [spec("a")])
        for run_id in ("r1", "r2"):
            assert self._total(store, run_id).settled
            store.hits_of_step(run_id, "parse", settled=True)
        shared = move in ("ghost", "revive", "retry")
        if move == "ghost":
            assert store.ghost(key)
        elif move == "revive":
            assert store.revive(key)
        elif move == "retry":
            store.retry_dead_letter([d.id for d in store.dead_letters()])
        elif move == "enqueue":
            self._task(store, "c")
        elif move == "unlink":
            assert store.keep_partitions("r1", "parse", ["b"]) == 1
        else:
            store.enqueue("r1", [spec("d", partition="a")])
        assert store.kept_totals("r1") == {}
        assert ("parse" in store.kept_totals("r2")) is not shared
        with store.db.read() as connection:
            rows = connection.execute(sa.select(step_total.c.hits).where(step_total.c.run_id == "r1"))
            assert list(rows.scalars()) == [None]

    def test_enqueueing_the_same_again_leaves_the_sums(self, store: StateStore) -> None:
        self._commit(store, self._claim(store, self._task(store)))
        self._total(store)
        self._task(store)
        assert set(store.kept_totals("r1")) == {"parse"}

    def test_sums_added_up_before_a_change_are_not_kept_after_it(self, store: StateStore) -> None:
        key = self._task(store)
        self._commit(store, self._claim(store, key))
        with store.db.read() as connection:
            epoch = connection.execute(sa.select(step_total.c.epoch)).scalar_one()
        store.ghost(key)
        store._keep("r1", "parse", epoch, sums="{}")
        assert store.kept_totals("r1") == {}

    def test_the_last_word_on_a_document_counts(self, store: StateStore) -> None:
        store.set_review("web", "d1", "length", "r1", "keep", "ann", "good text")
        store.set_review("web", "d1", "length", "r1", "drop", "bob")
        store.set_review("web", "d2", "length", "r1", "keep", "ann")
        store.set_review("web", "d2", "captcha", "r0", "keep", "ann")
        store.set_review("code", "d2", "length", "r1", "keep", "ann")
        assert store.count_reviews("web") == {"captcha": {"keep": 1}, "length": {"drop": 1, "keep": 1}}
        assert store.count_reviews("web", "r1") == {"length": {"drop": 1, "keep": 1}}
        first = next(r for r in store.reviews_of("web", "r1") if r.doc_id == "d1")
        assert (first.verdict, first.who, first.note) == ("drop", "bob", "")
        store.set_review("web", "d1", "length", "r1", "", "bob")
        assert [r.doc_id for r in store.reviews_of("web", "r1")] == ["d2"]
        with pytest.raises(ConfigError):
            store.set_review("web", "d1", "length", "r1", "maybe", "bob")
        assert self._topics(store)[-1] == "review.cleared"
