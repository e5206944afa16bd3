"""What somebody marked as done, and was not: no step goes on without it, and no version is made."""

from __future__ import annotations

from pathlib import Path

import pytest

from dataflow_ops.errors import ConfigError, DataFlowError
from dataflow_ops.pipeline.bundles import finish_run, start_run
from dataflow_ops.pipeline.flow import STEP_NAMES
from dataflow_ops.pipeline.tally import RunFailed
from dataflow_ops.state.store import StateStore
from tests.pipeline import inside
from tests.pipeline.test_bundles import quiet, run_steps, start

FOLLOWED = {
    "filter": "sign",
    "exact": "unite",
    "match": "gather",
    "gather": "verify",
    "verify": "unite",
    "unite": "collect",
    "collect": "confirm",
    "confirm": "score",
    "scatter": "export",
}
"""Step -> the first that gathers from it, or misses it."""


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return inside.sources(tmp_path_factory.mktemp("sources") / "in", files=4)


@pytest.mark.parametrize("left_out", sorted(FOLLOWED))
def test_no_step_goes_on_without_one_that_was_left_out(job: Path, tmp_path: Path, left_out: str) -> None:
    started = start(job, tmp_path)
    names = [name for name in STEP_NAMES[1:] if name not in (left_out, "supersede", "recall")]
    before, after = names[: names.index(FOLLOWED[left_out])], FOLLOWED[left_out]
    run_steps(tmp_path, started, tuple(before))
    with pytest.raises(Exception, match=f"'{left_out}'"):
        run_steps(tmp_path, started, (after,))
    with StateStore(f"sqlite:///{tmp_path}/state.db") as state:
        row = state.get_run("day-1")
        assert row is not None
        assert row.state == "FAILED"
        assert left_out in (row.detail or "")


def test_no_version_is_made_without_its_shards(job: Path, tmp_path: Path) -> None:
    started = start(job, tmp_path)
    run_steps(tmp_path, started, tuple(name for name in STEP_NAMES[1:] if name != "export"))
    with pytest.raises(RunFailed, match="step 'export'"):
        finish_run(tmp_path, "day-1", log=quiet)
    assert not list((tmp_path / "versions").glob("*/manifest.json"))
    run_steps(tmp_path, started, ("export",))
    assert finish_run(tmp_path, "day-1", log=quiet)["state"] == "SUCCEEDED"


def test_a_run_that_is_cleared_and_then_fails_has_failed(tmp_path: Path) -> None:
    job = inside.sources(tmp_path / "in", files=2)
    home = tmp_path / "home"
    started = start(job, home)
    run_steps(home, started, STEP_NAMES[1:])
    assert finish_run(home, "day-1", log=quiet)["state"] == "SUCCEEDED"
    for folder in [path for path in job.parent.iterdir() if path.is_dir()]:
        folder.rename(tmp_path / f"away-{folder.name}")
    with pytest.raises(DataFlowError):
        start(job, home)
    with StateStore(f"sqlite:///{home}/state.db") as state:
        row = state.get_run("day-1")
        assert row is not None
        assert row.state == "FAILED"


def test_a_job_that_is_about_something_else_is_refused(job: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="not about 'other'"):
        start_run(job, tmp_path / "home", mode="full", run_id="r", log=quiet, dataset="other")
    assert not (tmp_path / "home").exists()
