"""What every state database must do with the order of days, and with backfills."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
import sqlalchemy as sa

from dataflow_ops.errors import StateError
from dataflow_ops.state.store import StateStore
from dataflow_ops.state.tables import run, task
from tests.state.store_case import StoreCase, spec

ALL = ("dedup", "mix", "export")
AIRFLOW = '{"kind": "airflow", "dag_id": "web__incremental", "run_id": "x"}'


def day_run(store: StateStore, day: str, state: str = "RUNNING", **more: object) -> str:
    run_id = f"run-{day}-{len(store.list_runs(limit=99))}"
    mode = str(more.pop("mode", "incremental"))
    dataset = str(more.pop("dataset", "web"))
    store.create_run(run_id, dataset, "job", mode, "{}", day, **more)  # type: ignore[arg-type]
    if state != "PLANNED":
        store.set_run_state(run_id, "RUNNING")
    if state not in ("PLANNED", "RUNNING"):
        store.set_run_state(run_id, state)
    return run_id


def plan(
    store: StateStore, backfill_id: str = "b1", days: tuple[str, ...] = ("2026-01-01", "2026-01-02")
) -> None:
    store.create_backfill(
        backfill_id,
        dataset="web",
        job="jobs/web.yaml",
        reprocess="none",
        settings={"overrides": ["a.b=1"], "until": None},
        who="ann",
        first_day=days[0],
        last_day=days[-1],
        days=days,
    )


class DaysContract(StoreCase):
    # Which days are open

    def test_earlier_runs_of_the_data_set_are_open(self, store: StateStore) -> None:
        first = day_run(store, "2026-01-01", "PLANNED", origin=AIRFLOW)
        second = day_run(store, "2026-01-02", "PAUSED")
        third = day_run(store, "2026-01-03", "FAILED")
        for other in ("SUCCEEDED", "SUCCEEDED_WITH_DEAD", "CANCELLED", "AWAITING_APPROVAL"):
            day_run(store, "2026-01-01", other)
        day_run(store, "2026-01-05")
        day_run(store, "2026-01-06")
        day_run(store, "2026-01-01", dataset="code")
        day_run(store, "2026-01-01", mode="full")
        found = store.open_days_before("web", "2026-01-05", ALL)
        assert [(d.day, d.run_id, d.state, d.orchestrated) for d in found] == [
            ("2026-01-01", first, "PLANNED", True),
            ("2026-01-02", second, "PAUSED", False),
            ("2026-01-03", third, "FAILED", False),
        ]
        assert all(-1 < d.silent_s < 60 for d in found)

    def test_a_run_that_stops_early_blocks_nobody(self, store: StateStore) -> None:
        day_run(store, "2026-01-01", until_layer="filter")
        late = day_run(store, "2026-01-01", until_layer="export")
        assert [d.run_id for d in store.open_days_before("web", "2026-01-02", ALL)] == [late]

    def test_signs_of_life(self, store: StateStore) -> None:
        busy, waits, silent = (day_run(store, "2026-01-01") for _ in range(3))
        key = self._task(store, run_id=busy)
        self._claim(store, key)
        with store.db.write() as connection:
            connection.execute(sa.update(run).values(updated_at=run.c.updated_at - 1000))
        store.run_waits(waits, "waits for another day")
        age = {d.run_id: d.silent_s for d in store.open_days_before("web", "2026-01-02", ALL)}
        assert age[busy] < 60
        assert age[waits] < 60
        assert age[silent] > 900
        with store.db.write() as connection:
            connection.execute(sa.update(task).where(task.c.key == spec("t").key).values(heartbeat_at=1.0))
        age = {d.run_id: d.silent_s for d in store.open_days_before("web", "2026-01-02", ALL)}
        assert age[busy] > 900

    def test_waiting_is_noted_only_at_a_running_run(self, store: StateStore) -> None:
        done = day_run(store, "2026-01-01", "SUCCEEDED")
        store.run_waits(done, "another day")
        row = store.get_run(done)
        assert row is not None
        assert row.detail is None
        waiting = day_run(store, "2026-01-02")
        store.run_waits(waiting, "another day")
        row = store.get_run(waiting)
        assert row is not None
        assert row.detail == "waits: another day"
        store.run_goes_on(waiting)
        row = store.get_run(waiting)
        assert row is not None
        assert row.detail == ""

    def test_days_that_a_running_backfill_plans_are_open(self, store: StateStore) -> None:
        plan(store, "b1", ("2026-01-01", "2026-01-02", "2026-01-03", "2026-01-04"))
        store.move_day("b1", "2026-01-01", "DONE")
        begun = day_run(store, "2026-01-02")
        store.move_day("b1", "2026-01-02", "RUNNING", run_id=begun)
        store.move_day("b1", "2026-01-03", "RUNNING", run_id="not-there-yet")
        found = store.open_days_before("web", "2026-01-05", ALL)
        assert [(d.day, d.run_id, d.backfill_id) for d in found] == [
            ("2026-01-02", begun, ""),
            ("2026-01-03", "", "b1"),
            ("2026-01-04", "", "b1"),
        ]
        assert store.move_backfill("b1", "PAUSED", only_from=("RUNNING",)) is not None
        assert [d.run_id for d in store.open_days_before("web", "2026-01-05", ALL)] == [begun]

    def test_a_planned_day_that_another_did_meanwhile_is_open_only_if_all_are_wanted(
        self, store: StateStore
    ) -> None:
        for reprocess in ("none", "all"):
            store.create_backfill(
                reprocess,
                dataset="web",
                job="j",
                reprocess=reprocess,
                settings={},
                who="ann",
                first_day="2026-01-01",
                last_day="2026-01-02",
                days=["2026-01-01", "2026-01-02"],
            )
        day_run(store, "2026-01-01", "SUCCEEDED")
        day_run(store, "2026-01-02", "SUCCEEDED", until_layer="filter")
        found = store.open_days_before("web", "2026-01-05", ALL)
        assert [(d.day, d.backfill_id) for d in found] == [
            ("2026-01-01", "all"),
            ("2026-01-02", "all"),
            ("2026-01-02", "none"),
        ]

    def test_to_be_passed_over_is_noted_once_and_is_no_sign_of_life(self, store: StateStore) -> None:
        failed = day_run(store, "2026-01-01", "FAILED")
        plan(store, "b1", ("2026-01-02",))
        before = store.get_run(failed)
        for _ in range(2):
            for open_day in store.open_days_before("web", "2026-01-05", ALL):
                store.pass_over(open_day, "run-5", "it failed")
        after = store.get_run(failed)
        assert before is not None
        assert after is not None
        assert after.detail == "passed over by run-5: it failed"
        assert after.updated_at == before.updated_at
        (day,) = store.backfill_days("b1")
        assert day.detail == "passed over by run-5: it failed"
        assert self._topics(store).count("day.passed_over") == 2

    # Backfills

    def test_a_backfill_is_kept_as_it_was_asked_for(self, store: StateStore) -> None:
        plan(store)
        record = store.get_backfill("b1")
        assert record is not None
        assert record.settings == {"overrides": ["a.b=1"], "until": None}
        assert (record.state, record.first_day, record.last_day) == ("RUNNING", "2026-01-01", "2026-01-02")
        assert [(d.day, d.state) for d in store.backfill_days("b1")] == [
            ("2026-01-01", "PENDING"),
            ("2026-01-02", "PENDING"),
        ]
        assert store.get_backfill("b2") is None
        with pytest.raises(StateError, match="exists already"):
            plan(store)
        plan(store, "b2")
        assert [b.backfill_id for b in store.list_backfills("web")] == ["b2", "b1"]
        assert store.list_backfills("code") == []

    def test_moves_happen_only_from_where_they_may(self, store: StateStore) -> None:
        plan(store)
        assert store.move_backfill("b1", "PAUSED", "by ann", only_from=("RUNNING",)) is not None
        assert store.move_backfill("b1", "DONE", only_from=("RUNNING",)) is None
        assert store.move_day("b1", "2026-01-01", "DONE", "v1", run_id="r1") is not None
        assert store.move_day("b1", "2026-01-01", "RUNNING") is None
        assert store.move_day("b1", "2026-01-09", "RUNNING") is None
        first = store.backfill_days("b1")[0]
        assert (first.state, first.detail, first.run_id) == ("DONE", "v1", "r1")

    def test_one_of_sixteen_moves_a_day(self, store: StateStore) -> None:
        plan(store)

        def move(i: int) -> bool:
            moved = store.move_day("b1", "2026-01-01", "RUNNING", run_id=f"r{i}", only_from=("PENDING",))
            return moved is not None

        with ThreadPoolExecutor(16) as pool:
            assert sum(pool.map(move, range(16))) == 1

    def test_runs_by_day_newest_first_with_their_versions(self, store: StateStore) -> None:
        old = day_run(store, "2026-01-01", "SUCCEEDED")
        new = day_run(store, "2026-01-01", "FAILED")
        day_run(store, "2026-01-03")
        day_run(store, "2026-01-02", mode="full")
        day_run(store, "2026-01-01", dataset="code")
        store.add_version("web", "v1", "ff", "versions/v1/manifest.json", old, "PUBLISHED")
        found = store.day_runs("web", "2026-01-01", "2026-01-02")
        assert list(found) == ["2026-01-01"]
        assert [(r.run_id, r.state, r.version_id, r.version_state) for r in found["2026-01-01"]] == [
            (new, "FAILED", "", ""),
            (old, "SUCCEEDED", "v1", "PUBLISHED"),
        ]
