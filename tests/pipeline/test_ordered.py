"""Days take their turn at the ordered steps: never two at once, the earlier one first while it lives."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import sqlalchemy as sa

from dataflow_ops.pipeline.ordered import (
    GATE,
    Patience,
    Turn,
    WaitsForTurn,
    enter_ordered,
    in_turn,
    is_ordered,
    leave_ordered,
    needs_turn,
)
from dataflow_ops.pipeline.tally import RunPaused
from dataflow_ops.state.records import RunRecord
from dataflow_ops.state.store import StateStore
from dataflow_ops.state.tables import run as run_table

AIRFLOW = '{"kind": "airflow", "dag_id": "web__incremental", "run_id": "x"}'


def begun(state: StateStore, day: str, run_id: str = "", **more: object) -> RunRecord:
    run_id = run_id or f"run-{day[-2:]}"
    mode = str(more.pop("mode", "incremental"))
    state.create_run(run_id, "web", "job", mode, "{}", day, **more)  # type: ignore[arg-type]
    return state.set_run_state(run_id, "RUNNING")


def silent(state: StateStore, run_id: str, seconds: float) -> None:
    """As if nothing had been heard of a run for so long."""
    with state.db.write() as connection:
        connection.execute(
            sa.update(run_table)
            .where(run_table.c.run_id == run_id)
            .values(updated_at=run_table.c.updated_at - seconds)
        )


def detail(state: StateStore, run_id: str) -> str:
    row = state.get_run(run_id)
    assert row is not None
    return row.detail or ""


def test_which_steps_and_runs_take_part(sqlite_store: StateStore) -> None:
    assert [is_ordered(s) for s in ("fetch", "sign", "exact", "export", "publish")] == [
        False,
        False,
        True,
        True,
        True,
    ]
    assert needs_turn(begun(sqlite_store, "2026-01-01", "a"))
    assert needs_turn(begun(sqlite_store, "2026-01-01", "b", until_layer="dedup"))
    assert not needs_turn(begun(sqlite_store, "2026-01-01", "c", until_layer="filter"))
    full = begun(sqlite_store, "2026-01-01", "d", mode="full")
    assert not needs_turn(full)
    assert enter_ordered(sqlite_store, full) is None
    assert sqlite_store.lease("web", GATE, "") is None


def test_the_earlier_day_goes_first(sqlite_store: StateStore) -> None:
    state = sqlite_store
    first, second = begun(state, "2026-01-01"), begun(state, "2026-01-02")
    why = enter_ordered(state, second)
    assert why == "2026-01-01 comes first: run run-01 is RUNNING"
    assert detail(state, "run-02") == f"waits: {why}"
    assert enter_ordered(state, first) is None
    assert enter_ordered(state, first) is None, "the same run may ask again"
    assert enter_ordered(state, second) == why
    state.set_run_state("run-01", "SUCCEEDED")
    leave_ordered(state, first)
    assert enter_ordered(state, second) is None
    assert detail(state, "run-02") == ""


def test_an_earlier_day_that_comes_late_waits_for_the_one_inside(sqlite_store: StateStore) -> None:
    state = sqlite_store
    second = begun(state, "2026-01-02")
    assert enter_ordered(state, second) is None
    first = begun(state, "2026-01-01")
    assert enter_ordered(state, first) == ("run run-02 (2026-01-02) is at the steps that days take in turn")
    assert enter_ordered(state, second) is None, "who is inside keeps its turn"
    leave_ordered(state, second)
    assert enter_ordered(state, first) is None


def test_two_runs_of_one_day_are_never_inside_together(sqlite_store: StateStore) -> None:
    one, two = begun(sqlite_store, "2026-01-01", "one"), begun(sqlite_store, "2026-01-01", "two")
    assert enter_ordered(sqlite_store, one) is None
    assert "run one" in (enter_ordered(sqlite_store, two) or "")
    leave_ordered(sqlite_store, two)
    assert "run one" in (enter_ordered(sqlite_store, two) or ""), "only the holder gives a turn back"


def test_a_paused_day_is_waited_for(sqlite_store: StateStore) -> None:
    state = sqlite_store
    begun(state, "2026-01-01")
    state.set_run_state("run-01", "PAUSED")
    silent(state, "run-01", 1e6)
    why = enter_ordered(state, begun(state, "2026-01-02"))
    assert why == (
        "2026-01-01 comes first: run run-01 is PAUSED; `dataflow resume run-01`, or `dataflow cancel run-01`"
    )
    state.cancel("run-01")
    later = state.get_run("run-02")
    assert later is not None
    assert enter_ordered(state, later) is None


@pytest.mark.parametrize(("origin", "limit"), [(None, 300), (AIRFLOW, 3600)])
def test_a_day_without_a_sign_of_life_is_passed_over(
    sqlite_store: StateStore, origin: str | None, limit: int
) -> None:
    state = sqlite_store
    begun(state, "2026-01-01", origin=origin)
    second = begun(state, "2026-01-02")
    silent(state, "run-01", limit - 30)
    assert enter_ordered(state, second) is not None
    silent(state, "run-01", 60)
    assert enter_ordered(state, second) is None
    assert detail(state, "run-01").startswith("passed over by run-02: this run showed no sign of life")


def test_a_failed_day_is_passed_over_once_nobody_tries_it_again(sqlite_store: StateStore) -> None:
    state = sqlite_store
    begun(state, "2026-01-01", "local")
    state.set_run_state("local", "FAILED", "the disk is full")
    begun(state, "2026-01-01", "scheduled", origin=AIRFLOW)
    state.set_run_state("scheduled", "FAILED")
    second = begun(state, "2026-01-02")
    assert enter_ordered(state, second) == (
        "2026-01-01 comes first: run scheduled is FAILED and may be tried again"
    )
    silent(state, "scheduled", 301)
    assert enter_ordered(state, second) is None
    assert detail(state, "local") == "the disk is full; passed over by run-02: this run failed"


def test_a_run_that_ended_inside_does_not_keep_the_gate(sqlite_store: StateStore) -> None:
    state = sqlite_store
    for ending in ("SUCCEEDED", "FAILED", "CANCELLED"):
        holder = begun(state, "2026-01-03", f"holder-{ending}")
        assert enter_ordered(state, holder) is None
        next_ = begun(state, "2026-01-02", f"next-{ending}")
        assert enter_ordered(state, next_) is not None
        state.set_run_state(holder.run_id, ending)
        assert enter_ordered(state, next_) is None
        leave_ordered(state, next_)
        state.set_run_state(next_.run_id, "SUCCEEDED")
    held = begun(state, "2026-01-03", "scheduled", origin=AIRFLOW)
    assert enter_ordered(state, held) is None
    state.set_run_state("scheduled", "FAILED")
    last = begun(state, "2026-01-02", "last")
    assert enter_ordered(state, last) is not None, "an orchestrator may try it again"
    assert enter_ordered(state, last, patience=Patience(failed_s=-1)) is None


def test_planned_days_come_first_while_their_backfill_moves(sqlite_store: StateStore) -> None:
    state = sqlite_store
    state.create_backfill(
        "b1",
        dataset="web",
        job="job.yaml",
        reprocess="none",
        settings={},
        who="ann",
        first_day="2026-01-01",
        last_day="2026-01-09",
        days=["2026-01-01", "2026-01-09"],
    )
    later = begun(state, "2026-01-05")
    why = enter_ordered(state, later)
    assert why is not None
    assert "2026-01-01 comes first, which backfill b1 has not begun" in why
    assert "`dataflow backfills pause b1`" in why
    assert (
        enter_ordered(state, begun(state, "2026-01-06", "urgent", urgent=True), patience=Patience())
        is not None
    )
    leave_ordered(state, later)
    assert enter_ordered(state, later, patience=Patience(planned_s=-1)) is None
    assert state.backfill_days("b1")[0].detail.startswith(
        "passed over by run-05: the backfill made no progress"
    )


def test_an_urgent_run_goes_before_days_that_are_only_planned(sqlite_store: StateStore) -> None:
    state = sqlite_store
    state.create_backfill(
        "b1",
        dataset="web",
        job="job.yaml",
        reprocess="none",
        settings={},
        who="ann",
        first_day="2026-01-01",
        last_day="2026-01-01",
        days=["2026-01-01"],
    )
    assert enter_ordered(state, begun(state, "2026-01-05", urgent=True)) is None
    assert state.backfill_days("b1")[0].detail == "passed over by run-05: that run is urgent"


# The two callers


def test_a_turn_waits_says_so_and_goes_on(sqlite_store: StateStore) -> None:
    state, said = sqlite_store, list[str]()
    first, second = begun(state, "2026-01-01"), begun(state, "2026-01-02")

    def later() -> str:
        with Turn(state, second, said.append, every_s=0.05) as turn:
            turn.take()
            turn.take()
            gate = state.lease("web", GATE, "")
            assert gate is not None
            return gate.owner

    with Turn(state, first, said.append) as turn, ThreadPoolExecutor(1) as pool:
        turn.take()
        waiting = pool.submit(later)
        while not said:
            time.sleep(0.01)
        assert not waiting.done()
        state.set_run_state("run-01", "SUCCEEDED")
        leave_ordered(state, first)
        assert waiting.result(timeout=30) == "run-02"
    assert said == ["Waits for its turn: 2026-01-01 comes first: run run-01 is RUNNING"]
    gate = state.lease("web", GATE, "")
    assert gate is not None
    assert not gate.held


def test_a_pause_ends_the_waiting(sqlite_store: StateStore) -> None:
    begun(sqlite_store, "2026-01-01")
    second = begun(sqlite_store, "2026-01-02")
    sqlite_store.set_pause("run", "run-02", "ann")
    with (
        pytest.raises(RunPaused, match="paused while it waited: 2026-01-01 comes first"),
        Turn(sqlite_store, second, print, every_s=0.05) as turn,
    ):
        turn.take()


def test_a_turn_is_renewed_while_it_is_kept(
    sqlite_store: StateStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dataflow_ops.pipeline.ordered.PROCESS_S", 0.6)
    state = sqlite_store
    with Turn(state, begun(state, "2026-01-02"), print) as turn:
        turn.take()
        before = state.lease("web", GATE, "")
        assert before is not None
        while True:
            now = state.lease("web", GATE, "")
            assert now is not None
            assert now.owner == "run-02"
            if now.until > before.until + 1.0:
                break
            time.sleep(0.05)
    names = [t.name for t in threading.enumerate()]
    assert f"lease-{GATE}" not in names


def test_a_bundle_goes_on_only_in_its_turn(sqlite_store: StateStore) -> None:
    state = sqlite_store
    first, second = begun(state, "2026-01-01", origin=AIRFLOW), begun(state, "2026-01-02", origin=AIRFLOW)
    with in_turn(state, second, "filter"):
        pass
    with pytest.raises(WaitsForTurn, match="2026-01-01 comes first"), in_turn(state, second, "exact"):
        raise AssertionError("it is not its turn")
    for step in ("exact", "match"):
        with in_turn(state, first, step):
            gate = state.lease("web", GATE, "")
            assert gate is not None
            assert gate.owner == "run-01"
    gate = state.lease("web", GATE, "")
    assert gate is not None
    assert gate.held, "the turn is kept between two bundles"


@pytest.mark.parametrize("days", [8])
def test_many_days_at_once_go_through_in_order(sqlite_store: StateStore, days: int) -> None:
    state = sqlite_store
    runs = [begun(state, f"2026-01-{d:02}") for d in range(1, days + 1)]
    inside: list[str] = []
    order: list[str] = []

    def drive(run: RunRecord) -> None:
        with Turn(state, run, lambda _: None, every_s=0.01) as turn:
            turn.take()
            inside.append(run.run_id)
            assert inside == [run.run_id]
            order.append(run.run_id)
            inside.remove(run.run_id)
            state.set_run_state(run.run_id, "SUCCEEDED")

    with ThreadPoolExecutor(days) as pool:
        list(pool.map(drive, reversed(runs)))
    assert order == [run.run_id for run in runs]
