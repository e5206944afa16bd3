"""Operators with dictionaries as contexts: what fails, what ends green, and what travels between tasks."""

from __future__ import annotations

import asyncio
import errno
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from dataflow_ops.errors import ConfigError, StorageFull
from dataflow_ops.layers.filter.step import FilterStep
from dataflow_ops.pipeline.flow import STEPS
from dataflow_ops.pipeline.home import open_home
from dataflow_ops.pipeline.refusals import refusals
from dataflow_ops.pipeline.status import status_of
from dataflow_ops.pipeline.versions import open_versions
from dataflow_ops.state.store import StateStore
from dataflow_ops.storage.local import LocalStore
from tests.airflow.hand import ByHand
from tests.pipeline import corpus

pytestmark = [pytest.mark.airflow, pytest.mark.xdist_group("airflow-operators")]
XCOM_BYTES = 1_000
"""A reference to a run and a bundle is about a hundred bytes long; a text would be thousands."""


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return corpus.build(tmp_path_factory.mktemp("sources") / "in", code=12, docs=24)


@pytest.fixture(scope="module")
def made(job: Path, tmp_path_factory: pytest.TempPathFactory) -> ByHand:
    run = ByHand(job, tmp_path_factory.mktemp("made"))
    run.all()
    return run


def state_of(home: Path) -> str:
    return str(status_of(home, None)["state"])


def test_a_run_ends_with_a_current_version(made: ByHand) -> None:
    published = made.xcoms.values["publish"]
    assert published["current"] is True
    assert published["version"].startswith("t-full-2026-01-01-"), "the date is that of the data interval"
    assert (made.home / published["manifest"]).is_file()
    assert state_of(made.home) == "SUCCEEDED_WITH_DEAD"  # one line of the corpus is no JSON


def test_only_references_travel_between_tasks(made: ByHand) -> None:
    steps = {name.partition(".")[0] for name in made.xcoms.values}
    assert {"start", "ranges", "parse", "verify", "export", "publish"} <= steps
    for name, value in made.xcoms.values.items():
        rows = value if isinstance(value, list) else [value]
        for row in rows:
            assert len(json.dumps(row)) < XCOM_BYTES, f"{name} carries more than a reference"
        assert len(rows) <= 256


def test_the_same_run_again_skips_everything(made: ByHand, job: Path) -> None:
    again = ByHand(job, made.home, run_id="r2")
    assert again.all()["version"] == made.xcoms.values["publish"]["version"]
    for name, value in again.xcoms.values.items():
        if isinstance(value, dict) and "tasks" in value:
            assert value["skipped"] == value["tasks"], name


def test_a_retried_start_is_the_same_run(made: ByHand, job: Path) -> None:
    first, second = (ByHand(job, made.home, run_id="r3").start() for _ in range(2))
    assert first == second


def test_a_dead_chunk_leaves_its_bundle_green(
    job: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[int] = []
    genuine = FilterStep.process

    def process(self: FilterStep, batch: pa.Table, first_row: int, state: object) -> Any:
        calls.append(batch.num_rows)
        if len(calls) == 1:
            raise RuntimeError("this chunk can't be filtered")
        return genuine(self, batch, first_row, state)

    monkeypatch.setattr(FilterStep, "process", process)
    run = ByHand(job, tmp_path, overrides=["run.max_attempts=1"], promote=True)
    result = run.all()
    found = status_of(tmp_path, None)
    by_step = {row["step"]: row for row in found["steps"]}
    assert by_step["filter"]["dead"] == 1
    assert by_step["sign"]["tasks"] == by_step["filter"]["tasks"] - 1
    assert found["state"] == result["state"] == "SUCCEEDED_WITH_DEAD"
    assert result["current"] is True


def test_a_systemic_fault_fails_the_task_and_the_run(
    job: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = ByHand(job, tmp_path)
    run.start()
    [reference, *_] = run.bundles("fetch")

    def full(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as broken:
        broken.setattr(LocalStore, "publish", full)
        with pytest.raises(StorageFull, match="space"):
            run.bundle("fetch", reference)
    assert state_of(tmp_path) == "FAILED"
    # There is room again, and Airflow retries the task.
    assert run.bundle("fetch", reference)["dead"] == 0
    assert state_of(tmp_path) == "RUNNING"


def test_an_empty_source_is_a_successful_run(tmp_path: Path) -> None:
    (tmp_path / "nothing").mkdir()
    job = tmp_path / "job.yaml"
    job.write_text(f"dataset: {{id: empty}}\nsources:\n  - {{kind: files, path: {tmp_path}/nothing}}\n")
    run = ByHand(job, tmp_path / "home")
    result = run.all()
    assert run.xcoms.values["start"]["bundles"]["chunk"] == 1, "a step over nothing still has its one task"
    assert result["state"] == "SUCCEEDED"
    with open_versions(tmp_path / "home") as versions:
        assert versions.show(None)["documents"] == 0


def test_until_stops_early(job: Path, tmp_path: Path) -> None:
    run = ByHand(job, tmp_path, until="filter")
    result = run.all()
    assert (result["version"], result["state"], result["current"]) == ("", "SUCCEEDED_WITH_DEAD", False)
    assert run.told == [], "no version, no event"
    assert {row["step"] for row in status_of(tmp_path, None)["steps"]} == {
        "discover",
        "fetch",
        "parse",
        "filter",
    }


def row_of(run: ByHand) -> Any:
    with StateStore(f"sqlite:///{run.home}/state.db") as state:
        row = state.get_run(run.run_id)
    assert row is not None
    return row


def test_the_run_knows_where_it_came_from_and_what_was_asked(job: Path, tmp_path: Path) -> None:
    run = ByHand(job, tmp_path, run_id="manual__2026-01-01T00:00:00+00:00", priority="urgent", until="parse")
    assert run.start()["run_id"] == "airflow-tiny__full-manual__2026-01-01T00:00:00+00:00"
    row = row_of(run)
    assert (row.urgent, row.until_layer, row.data_date, row.mode) == (True, "parse", "2026-01-01", "full")
    assert json.loads(row.origin) == {
        "kind": "airflow",
        "dag_id": "tiny__full",
        "run_id": "manual__2026-01-01T00:00:00+00:00",
    }


@pytest.mark.parametrize(
    ("mode", "conf", "date"),
    [
        ("incremental", None, "2026-01-01"),
        ("incremental", {"data_date": None}, "2026-01-01"),
        ("incremental", {"data_date": "2025-03-09"}, "2025-03-09"),
        # A full run by hand is of the day on which it was asked for, not of the last whole week.
        ("full", None, "2026-01-07"),
    ],
)
def test_a_run_is_of_its_interval_or_of_the_day_that_is_asked_for(
    job: Path, tmp_path: Path, mode: str, conf: Any, date: str
) -> None:
    import datetime as dt

    run = ByHand(job, tmp_path, mode=mode, conf=conf)
    run.context["logical_date"] = dt.datetime(2026, 1, 7, 15, tzinfo=dt.UTC)
    run.start()
    assert row_of(run).data_date == date


def test_a_dry_run_begins_nothing(job: Path, tmp_path: Path) -> None:
    from airflow.sdk.exceptions import AirflowSkipException

    run = ByHand(job, tmp_path / "home", dry_run=True)
    started = run.start()
    assert started["dry_run"] is True
    assert run.bundles("fetch") == run.bundles("unite") == []
    with pytest.raises(AirflowSkipException):
        run.finish()
    looked = started["looked"]
    assert looked["sources"] == 4
    assert 0 < looked["chunks"] <= looked["files"] < looked["bytes"]
    judged = run.gate()
    assert judged["ending"] == "dry_run"
    assert f"files {looked['files']:,}, bytes {looked['bytes']:,}" in judged["message"]
    assert not (tmp_path / "home").exists()


def test_an_unknown_layer_or_override_is_told(job: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no such layer; there are ingest, parse"):
        ByHand(job, tmp_path, until="cleaning").start()
    with pytest.raises(ConfigError, match="unknown key"):
        ByHand(job, tmp_path, overrides=["mixing.sneed=2"]).start()


def test_overrides_make_a_version_that_waits_for_promotion(made: ByHand, job: Path) -> None:
    before = made.xcoms.values["publish"]["version"]
    bound = ["clean.boilerplate_filter.min_text_len=3000", "drift.max_domain_shift=1"]
    bound.append("drift.max_language_shift=1")
    strict = ByHand(job, made.home, run_id="strict", overrides=bound).all()
    assert strict["version"] != before
    assert strict["current"] is False
    with open_versions(made.home) as versions:
        assert [v["version"] for v in versions.list() if v["current"]] == [before]
    promoted = ByHand(job, made.home, run_id="wanted", overrides=bound, promote=True).all()
    assert promoted == {**strict, "current": True, "waits": []}


@pytest.mark.parametrize(("scope", "target"), [("dataset", "tiny"), ("all", "")])
def test_a_run_that_is_not_there_yet_waits_too(job: Path, tmp_path: Path, scope: str, target: str) -> None:
    from airflow.sdk.exceptions import TaskDeferred

    run = ByHand(job, tmp_path)
    with StateStore(f"sqlite:///{tmp_path}/state.db") as state:
        state.set_pause(scope, target, "somebody", "lunch")
        with pytest.raises(TaskDeferred):
            run.start()
        assert state.get_run(run.run_id) is None, "nothing was listed, nothing begun"
        state.clear_pause(scope, target)
    assert run.start()["bundles"]["chunk"] == 1


def test_a_pause_before_publishing_holds(job: Path, tmp_path: Path) -> None:
    from airflow.sdk.exceptions import TaskDeferred

    run = ByHand(job, tmp_path)
    run.start()
    for step, _, _ in STEPS[1:]:
        for reference in run.bundles(step):
            run.bundle(step, reference)
    with StateStore(f"sqlite:///{tmp_path}/state.db") as state:
        state.set_pause("run", run.run_id, "somebody", "wait")
        with pytest.raises(TaskDeferred):
            run.finish()
        assert row_of(run).state == "PAUSED"
        assert state.versions("tiny") == []
        state.clear_pause("run", run.run_id)
    assert run.finish()["current"] is True


def test_the_same_task_delivered_twice_does_its_work_once(job: Path, tmp_path: Path) -> None:
    from concurrent.futures import ThreadPoolExecutor

    run = ByHand(job, tmp_path)
    run.start()
    for step, _, _ in STEPS[1:]:
        for reference in run.bundles(step):
            with ThreadPoolExecutor(2) as pool:
                twins = [pool.submit(run.operator(step, reference).execute, run.context) for _ in range(2)]
            one, other = (twin.result() for twin in twins)
            assert {k: one[k] for k in ("tasks", "kept", "rejected")} == {
                k: other[k] for k in ("tasks", "kept", "rejected")
            }
    with StateStore(f"sqlite:///{tmp_path}/state.db") as state:
        attempts = {
            record.attempt
            for step, _, _ in STEPS
            for record in state.records_of_step(run.run_id, step).values()
        }
    assert attempts == {1}, "each task was claimed once"
    with ThreadPoolExecutor(2) as pool:
        ends = [pool.submit(run.dag.get_task("publish").execute, run.context) for _ in range(2)]
    assert ends[0].result()["version"] == ends[1].result()["version"]
    with open_versions(tmp_path) as versions:
        assert len(versions.list("tiny")) == 1
    assert run.gate()["ending"] == "done_with_dead_letters"


def test_days_take_their_turn_at_the_ordered_steps(job: Path, tmp_path: Path) -> None:
    from airflow.sdk.exceptions import TaskDeferred

    first = ByHand(job, tmp_path, "one", "incremental", {"data_date": "2026-01-01"})
    second = ByHand(job, tmp_path, "two", "incremental", {"data_date": "2026-01-02"})
    for run in (first, second):
        run.start()
        for step in ("fetch", "parse", "filter", "sign"):
            for reference in run.bundles("fetch"):
                run.bundle(step, reference)
    [reference, *_] = second.bundles("exact")
    with pytest.raises(TaskDeferred) as deferred:
        second.bundle("exact", reference)
    assert deferred.value.trigger.turn is True
    first.all()
    assert second.bundle("exact", reference)["tasks"] > 0


def test_only_what_another_attempt_helps_is_tried_again() -> None:
    from airflow.sdk import RetryAction

    from dataflow_ops.airflow.retry import OnlyWhereItHelps
    from dataflow_ops.errors import DatabaseUnavailable

    decide = OnlyWhereItHelps().evaluate
    assert decide(StorageFull("no space left"), 1, 3).action == RetryAction.FAIL
    assert decide(ConfigError("unknown key"), 1, 3).action == RetryAction.FAIL
    assert decide(DatabaseUnavailable("away"), 1, 3).action == RetryAction.DEFAULT
    assert decide(DatabaseUnavailable("away"), 8, 8).action == RetryAction.DEFAULT
    assert decide(ConnectionResetError("a server restarts"), 8, 8).action == RetryAction.DEFAULT
    assert decide(SystemExit("killed"), 8, 8).action == RetryAction.DEFAULT
    assert decide(RuntimeError("nobody foresaw it"), 2, 8).action == RetryAction.DEFAULT
    assert decide(RuntimeError("nobody foresaw it"), 3, 8).action == RetryAction.FAIL


def test_a_paused_run_defers_and_goes_on(job: Path, tmp_path: Path) -> None:
    from airflow.sdk.exceptions import TaskDeferred

    run = ByHand(job, tmp_path)
    run_id = run.start()["run_id"]
    [reference, *_] = run.bundles("fetch")
    with StateStore(f"sqlite:///{tmp_path}/state.db") as state:
        state.set_pause("run", run_id, "somebody", "lunch")
        with pytest.raises(TaskDeferred) as deferred:
            run.bundle("fetch", reference)
        assert state.get_run(run_id).state == "PAUSED"
        trigger = deferred.value.trigger
        assert deferred.value.method_name == "execute"
        again = type(trigger)(**trigger.serialize()[1])

        async def fires() -> str:
            async for event in again.run():
                return str(event.payload)
            return "never"

        async def waits_then_fires() -> str:
            waiting = asyncio.create_task(fires())
            await asyncio.sleep(0.3)
            assert not waiting.done(), "the flag still holds"
            state.clear_pause("run", run_id)
            return await asyncio.wait_for(waiting, 30)

        assert asyncio.run(waits_then_fires()) == "resumed"
        assert run.bundle("fetch", reference)["tasks"] > 0
        assert state.get_run(run_id).state == "RUNNING"


def test_a_start_whose_settings_are_refused_says_so_outside_its_log(job: Path, tmp_path: Path) -> None:
    run = ByHand(job, tmp_path, overrides=["dedup.shingle_size=9"])
    with pytest.raises(ConfigError, match="shingle_size"):
        run.start()
    [told] = refusals(open_home(tmp_path))
    assert (told.run_id, told.dag_run_id, told.mode, told.dry_run) == (run.run_id, "r1", "full", False)
    assert "shingle_size" in told.why
    ByHand(job, tmp_path).start()
    assert refusals(open_home(tmp_path)) == []
