"""Paused at a batch boundary, gone on from the cursor, with the bytes of a run that was never paused."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dataflow_ops.cli.app import app
from dataflow_ops.layers.filter.step import FilterStep
from dataflow_ops.pipeline.home import open_home
from dataflow_ops.pipeline.run import resume_run
from dataflow_ops.state.store import StateStore
from tests.pipeline import child, inside, trouble
from tests.pipeline.inside import published

SMALL = {"batch_rows": 1, "stage_every_s": 0.0}


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return inside.sources(tmp_path_factory.mktemp("pause") / "in")


@pytest.fixture(scope="module")
def wanted(job: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    home = tmp_path_factory.mktemp("reference")
    inside.run(job, home)
    return published(home)


@pytest.fixture
def state(tmp_path: Path) -> StateStore:
    return StateStore(open_home(tmp_path / "home").state_url)


def once(act: Callable[[], None]) -> Callable[[], None]:
    done: list[bool] = []

    def first_time() -> None:
        if not done:
            done.append(True)
            act()
            time.sleep(0.6)  # flags are looked up at most twice a second

    return first_time


def test_a_flag_stops_at_the_next_batch_and_the_rest_is_done_once(
    job: Path, wanted: dict[str, str], state: StateStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows: list[int] = []
    process = FilterStep.process

    def counted(self: FilterStep, batch, first_row, opened):  # type: ignore[no-untyped-def]
        rows.append(batch.num_rows)
        return process(self, batch, first_row, opened)

    monkeypatch.setattr(FilterStep, "process", counted)
    home = tmp_path / "home"
    hooks = inside.At(
        "after stage filter",
        once(lambda: state.set_pause("run", state.list_runs()[0].run_id, "ann", "rush hour") and None),
    )
    ended = inside.run(job, home, tuning=SMALL, hooks=hooks)
    assert (ended.state, state.list_runs()[0].state) == ("PAUSED", "PAUSED")
    assert "ann (rush hour)" in ended.message
    tasks = state.records_of_step(ended.run_id, "filter").values()
    [paused] = [t for t in tasks if t.state == "PAUSED"]
    assert [t.state for t in tasks].count("PENDING") == len(tasks) - 1, "others were begun after the flag"
    cursor = state.read_cursor(paused.key)
    assert cursor is not None
    assert cursor.offset == sum(rows) > 0

    assert resume_run(home, None, 0, inside.Notes()).state == "SUCCEEDED"
    after = state.records([paused.key])[paused.key]
    assert (after.state, after.attempt) == ("SUCCESS", 1)
    assert sum(rows) == state.metrics_of_run(ended.run_id)["filter"].counts.documents_in
    assert published(home) == wanted


@pytest.mark.parametrize(("scope", "target"), [("all", ""), ("dataset", "tiny")])
def test_a_flag_that_is_there_before_the_start(
    job: Path, wanted: dict[str, str], state: StateStore, tmp_path: Path, scope: str, target: str
) -> None:
    home = tmp_path / "home"
    state.set_pause(scope, target, "bob", "move")
    result = CliRunner().invoke(app, ["run", str(job), "--home", str(home), "--workers", "0"])
    assert result.exit_code == 3
    assert "(move)" in result.output
    run_id = state.list_runs()[0].run_id
    assert state.states_of_run(run_id) == {}
    # What it says, word by word and line by line, gets it done.
    lines = re.findall(r"dataflow (resume .*)", result.output)
    codes = [CliRunner().invoke(app, [*line.split(), "--home", str(home)]).exit_code for line in lines]
    assert codes == [0] * len(lines)
    assert lines[-1] == f"resume {run_id}"
    assert state.list_runs()[0].state == "SUCCEEDED"
    assert shipped(published(home)) == shipped(wanted)


def shipped(files: dict[str, str]) -> list[str]:
    """Hashes of manifest and parts: the date of the run stands in the folder's name only."""
    return [sha for path, sha in files.items() if "part-" in path or path.endswith("manifest.json")]


def test_of_two_runs_that_share_tasks_one_is_paused(
    job: Path, wanted: dict[str, str], state: StateStore, tmp_path: Path
) -> None:
    """The task under way serves both and goes on; the paused run begins no other."""
    home = tmp_path / "home"

    def join_and_pause() -> None:
        run = state.list_runs()[0]
        state.create_run("other", run.dataset, "other", "full", run.settings, None)
        state.set_run_state("other", "RUNNING")
        records = state.records_of_step(run.run_id, "filter").values()
        state.enqueue("other", [inside.spec_of(r) for r in records])
        state.set_pause("run", run.run_id, "ann")

    hooks = inside.At("after stage filter", once(join_and_pause))
    ended = inside.run(job, home, tuning=SMALL, hooks=hooks)
    assert ended.state == "PAUSED"
    states = [t.state for t in state.records_of_step(ended.run_id, "filter").values()]
    assert (states.count("SUCCESS"), states.count("PENDING")) == (1, len(states) - 1)
    state.set_run_state("other", "fail")
    assert resume_run(home, ended.run_id, 0, inside.Notes()).state == "SUCCEEDED"
    assert published(home) == wanted


@pytest.mark.crash
def test_rows_staged_before_a_kill_are_not_processed_again(
    job: Path, wanted: dict[str, str], tmp_path: Path
) -> None:
    home, log = tmp_path / "home", tmp_path / "log"
    point = "before stage filter"
    killed = child.start(job, home, tuning=SMALL, hooks=trouble.Signal(point, tmp_path / "mark", nth=4))
    child.end(killed, expect=-9)
    done_before = (tmp_path / "mark").stat().st_size - 1  # the last was not staged
    inside.run(job, home, tuning=SMALL, hooks=trouble.Log(log))
    again = sum(line.endswith(point) for line in log.read_text().splitlines())
    state = StateStore(open_home(home).state_url)
    rows = state.metrics_of_run(state.list_runs()[0].run_id)["filter"].counts.documents_in
    assert done_before == 3
    assert again == rows - done_before
    assert published(home) == wanted
