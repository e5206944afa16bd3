"""Runs that never began: what was wrong is told, and no row among the runs misleads anybody."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from dataflow_ops.errors import ConfigError
from dataflow_ops.pipeline.home import open_home
from dataflow_ops.pipeline.refusals import KEPT, SILENT, Refusal, lost, refusal_of, refusals, refusals_told
from dataflow_ops.pipeline.status import runs_of, status_of
from dataflow_ops.pipeline.tally import RunPaused
from dataflow_ops.state.store import StateStore

ASKED = Refusal(
    "airflow-web__full-manual__2026-11-30T08:00:00+00:00", "web", "web", "full", "web__full", "manual"
)


def refuse(home: Path, asked: Refusal = ASKED, why: str = "dedup.shingle: there is no such setting") -> None:
    with pytest.raises(ConfigError, match="no such setting"), refusals_told(home, asked):
        raise ConfigError(why)


def test_it_is_told_and_listed_and_makes_no_row(tmp_path: Path) -> None:
    refuse(tmp_path)
    home = open_home(tmp_path)
    found = refusal_of(home, ASKED.run_id)
    assert found is not None
    assert (found.why, found.dataset, found.at > 0) == (
        "dedup.shingle: there is no such setting",
        "web",
        True,
    )
    with StateStore(home.state_url) as state:
        assert state.list_runs() == []
    rows, total = runs_of(tmp_path, None, 10)
    assert total == 1
    assert (rows[0]["run"], rows[0]["state"], rows[0]["detail"]) == (ASKED.run_id, "NOT_BEGUN", found.why)
    assert runs_of(tmp_path, "other", 10) == ([], 0)
    with pytest.raises(ConfigError, match="failed before it began"):
        status_of(tmp_path, ASKED.run_id)


def test_once_it_begins_nothing_is_left_of_it(tmp_path: Path) -> None:
    refuse(tmp_path)
    with refusals_told(tmp_path, ASKED):
        pass
    assert refusals(open_home(tmp_path)) == []


def test_a_pause_is_no_refusal(tmp_path: Path) -> None:
    with pytest.raises(RunPaused), refusals_told(tmp_path, ASKED):
        raise RunPaused("paused")
    assert refusals(open_home(tmp_path)) == []


def test_a_run_that_has_a_row_keeps_its_reason_there(tmp_path: Path) -> None:
    home = open_home(tmp_path)
    with StateStore(home.state_url) as state:
        state.create_run(ASKED.run_id, "web", "web", "full", "{}", None)
        refuse(tmp_path)
        row = state.get_run(ASKED.run_id)
        assert row is not None
        assert (row.state, row.detail) == ("FAILED", "ConfigError: dedup.shingle: there is no such setting")
        refuse(tmp_path, why="no such setting either")
        assert state.get_run(ASKED.run_id).detail == "ConfigError: no such setting either"  # type: ignore[union-attr]
        state.set_run_state(ASKED.run_id, "start")
        refuse(tmp_path, why="no such setting: told by a second delivery of the task")
        assert state.get_run(ASKED.run_id).state == "RUNNING"  # type: ignore[union-attr]
    assert refusals(home) == []


def test_what_the_orchestrator_gave_up_is_told_without_a_reason(tmp_path: Path) -> None:
    home = open_home(tmp_path)
    lost(tmp_path, ASKED)
    assert runs_of(tmp_path, "web", 10)[0][0]["detail"] == SILENT
    refuse(tmp_path)
    lost(tmp_path, ASKED)
    assert [one.why for one in refusals(home)] == ["dedup.shingle: there is no such setting"]
    with StateStore(home.state_url) as state:
        state.create_run("begun", "web", "web", "full", "{}", None)
    lost(tmp_path, replace(ASKED, run_id="begun"))
    assert refusal_of(home, "begun") is None


def test_only_the_newest_are_kept(tmp_path: Path) -> None:
    for i in range(KEPT + 3):
        lost(tmp_path, replace(ASKED, run_id=f"run {i}"))
    kept = refusals(open_home(tmp_path))
    assert len(kept) == KEPT
    assert {one.run_id for one in kept} == {f"run {i}" for i in range(3, KEPT + 3)}
