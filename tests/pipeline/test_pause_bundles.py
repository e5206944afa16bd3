"""Several bundles of one step, as an orchestrator runs them: paused together, begun by none."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from dataflow_ops.engine.pool import Pool
from dataflow_ops.layers.filter.step import FilterStep
from dataflow_ops.pipeline.bundles import Started, finish_run, run_bundle, start_run
from dataflow_ops.pipeline.flow import STEP_NAMES, partitioning
from dataflow_ops.pipeline.home import open_home
from dataflow_ops.pipeline.pausing import progress_of
from dataflow_ops.pipeline.tally import RunPaused
from dataflow_ops.state.store import StateStore
from tests.pipeline import inside
from tests.pipeline.test_bundles import quiet, run_steps, shipped

RUN = "day-1"


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return inside.sources(tmp_path_factory.mktemp("bundles") / "in", files=6)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def started(job: Path, home: Path) -> Started:
    started = start_run(job, home, mode="full", run_id=RUN, log=quiet)
    run_steps(home, started, ("fetch", "parse"))
    return started


@pytest.fixture
def state(home: Path) -> Iterator[StateStore]:
    with StateStore(open_home(home).state_url) as state:
        yield state


def bundle(index: int, of: int) -> dict[str, object]:
    return {"run_id": RUN, "until": None, "index": index, "of": of}


def state_of(state: StateStore) -> str:
    row = state.get_run(RUN)
    assert row is not None
    return row.state


def test_a_bundle_that_finds_the_run_paused_starts_nothing(
    home: Path, started: Started, state: StateStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(*_: object) -> Iterator[None]:
        raise AssertionError("a pool was used")

    monkeypatch.setattr(Pool, "run", run)
    state.set_pause("dataset", "tiny", "ann", "disk")
    assert state_of(state) == "PAUSED", "between two steps nobody else would say so"
    for i in range(2):
        with pytest.raises(RunPaused, match="ann") as told:
            run_bundle(home, "filter", bundle(i, 2), 2, log=quiet)
        assert told.value.flag is not None
        assert told.value.flag.scope == "dataset"
    assert state_of(state) == "PAUSED"
    assert state.records_of_step(RUN, "filter") == {}


def test_a_bundle_that_ends_beside_a_paused_one_leaves_the_run_paused(
    job: Path,
    home: Path,
    started: Started,
    state: StateStore,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """While the first bundle works, another host's holds a task; each is the last to stop once."""
    process = FilterStep.process
    seen: list[str] = []

    def watched(self: FilterStep, batch, first_row, opened):  # type: ignore[no-untyped-def]
        if not seen:
            others = [k for k, r in state.records_of_step(RUN, "filter").items() if r.state == "PENDING"]
            seen.append(others[0])
            claim = state.claim(others[0], "elsewhere:1:1", 60.0)
            assert claim is not None
            state.set_pause("run", RUN, "ann")
            assert progress_of(state, RUN) == {"tasks_paused": 0, "tasks_open": 2}
            assert state_of(state) == "RUNNING"
            state.pause_task(claim, 0)
            assert state.settle_pause(RUN) is not None
            assert progress_of(state, RUN) == {"tasks_paused": 1, "tasks_open": 2}
            assert state_of(state) == "RUNNING", "this bundle works on"
            time.sleep(0.6)  # flags are looked up at most twice a second
        return process(self, batch, first_row, opened)

    monkeypatch.setattr(FilterStep, "process", watched)
    with pytest.raises(RunPaused):
        run_bundle(home, "filter", bundle(0, 1), 0, log=quiet)
    assert state_of(state) == "PAUSED"
    assert progress_of(state, RUN)["tasks_paused"] >= 1

    state.clear_pause("run", RUN)
    assert state_of(state) == "PAUSED", "nobody has gone on yet"
    run_bundle(home, "filter", bundle(0, 1), 0, log=quiet)
    assert state_of(state) == "RUNNING"
    run_steps(home, started, STEP_NAMES[4:])
    assert finish_run(home, RUN, log=quiet)["state"] == "SUCCEEDED"
    inside.run(job, tmp_path / "local")
    assert shipped(home) == shipped(tmp_path / "local")
    assert all(r.attempt == 1 for r in state.records_of_step(RUN, "filter").values())


def test_the_last_bundle_that_ends_normally_under_a_flag_leaves_the_run_paused(
    home: Path, started: Started, state: StateStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its task serves another run too, so it is not stopped; but afterwards nothing of this run goes on."""
    process = FilterStep.process

    def watched(self: FilterStep, batch, first_row, opened):  # type: ignore[no-untyped-def]
        row = state.get_run(RUN)
        assert row is not None
        if state.get_run("other") is None:
            state.create_run("other", "tiny", "other", "full", row.settings, None)
            state.set_run_state("other", "RUNNING")
            records = state.records_of_step(RUN, "filter").values()
            state.enqueue("other", [inside.spec_of(r) for r in records])
            state.set_pause("run", RUN, "ann")
        return process(self, batch, first_row, opened)

    monkeypatch.setattr(FilterStep, "process", watched)
    chunks = len(state.records_of_step(RUN, "parse"))
    run_bundle(home, "filter", bundle(0, chunks), 0, log=quiet)
    assert state_of(state) == "PAUSED"
    assert partitioning("filter") == "chunk"
