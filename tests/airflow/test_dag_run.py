"""Whole runs by Airflow itself, on SQLite, of the DAG files as they are."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from dataflow_ops.airflow.weights import AHEAD
from dataflow_ops.cli import airflow_process
from dataflow_ops.pipeline.flow import STEPS
from dataflow_ops.pipeline.status import status_of
from tests.pipeline import corpus
from tests.pipeline.harness import ROOT, once, published

pytestmark = [pytest.mark.airflow, pytest.mark.xdist_group("airflow-run"), pytest.mark.timeout(290)]
OURS = {"start", "publish", "approval", "gate"}


@dataclass
class Stage:
    """An Airflow of its own, with one job file.

    Args:
        folder: for everything.
    """

    folder: Path

    def __post_init__(self) -> None:
        self.source = corpus.build(self.folder / "in", code=12, docs=24)
        (self.folder / "jobs").mkdir()
        self.job = self.folder / "jobs" / "tiny.yaml"
        shutil.copyfile(self.source, self.job)
        self.home = self.folder / "home"
        self.log = self.folder / "airflow.log"
        hooks = ROOT / "dataflow_ops" / "airflow" / "config"
        more = {
            "PYTHONPATH": os.pathsep.join([str(ROOT), str(hooks)]),
            "DATAFLOW_HOME": str(self.home),
            "DATAFLOW_JOBS": str(self.folder / "jobs"),
            "DATAFLOW_CORES_PER_TASK": "2",
            "DATAFLOW_TASK_RETRIES": "0",
        }
        self.env = airflow_process.environment(self.folder / "airflow", ROOT / "dags", more)

    def test(self, **run: Any) -> dict[str, Any]:
        """Run a DAG in a process; what Airflow's database says of the run."""
        out = self.folder / "found.json"
        run = {"dag": "tiny__full", "date": "2026-01-01", "conf": {}, **run}
        with open(self.log, "ab") as log:
            done = subprocess.run(
                [sys.executable, "-m", "tests.airflow.in_airflow", str(out), json.dumps(run)],
                env=self.env,
                cwd=ROOT,
                stdout=log,
                stderr=log,
                check=False,
            )
        assert done.returncode == 0, "\n".join(airflow_process.last_lines(self.log, 40))
        [found] = json.loads(out.read_text(encoding="utf-8"))
        return dict(found)


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Stage:
    """A prepared database, and one full run of 2026-01-01 by ``airflow dags test``."""
    stage = Stage(tmp_path_factory.mktemp("stage"))
    folder, notes = stage.folder / "airflow", list[str]()
    with airflow_process.only_one(folder) as lock:
        # As a process killed in the middle of the migration leaves it: a file, and no mark beside it.
        (folder / "airflow.db").write_bytes(b"not a database at all, " * 100)
        assert airflow_process.migrate(stage.env, stage.log, lock, notes.append) == 0
        assert len(notes) == 2, notes
        assert airflow_process.migrate(stage.env, stage.log, lock, notes.append) == 0
        assert len(notes) == 2, "a database that was marked as ready is left alone"
        command = ["dags", "test", "tiny__full", "2026-01-01"]
        code = airflow_process.run_airflow(command, stage.env, stage.log, lock)
    assert code == 0, "\n".join(airflow_process.last_lines(stage.log, 40))
    return stage


def states(found: dict[str, Any]) -> dict[str, set[str]]:
    """Task -> states of its instances."""
    by_task: dict[str, set[str]] = {}
    for task in found["tasks"]:
        by_task.setdefault(task["id"], set()).add(task["state"])
    return by_task


def gate_of(found: dict[str, Any]) -> dict[str, Any]:
    """What the gate said."""
    [said] = [json.loads(value) for task, value in found["xcom"] if task == "gate"]
    return dict(json.loads(said) if isinstance(said, str) else said)


def test_a_dag_run_and_a_local_run_give_the_same_bytes(stage: Stage, tmp_path: Path) -> None:
    once(stage.source, tmp_path / "local")  # of 2026-01-01
    assert published(stage.home) == published(tmp_path / "local")
    assert os.listdir(stage.home / "data")


def test_an_empty_day_succeeds_with_no_documents(stage: Stage) -> None:
    found = stage.test(dag="tiny__incremental", date="2026-01-03T12:00:00")
    assert found["state"] == "success"
    by_task = states(found)
    assert [by_task.pop(task) for task in ("start", "publish", "gate")] == [{"success"}] * 3
    # A step over no chunks has nothing to do and gets no task of its own.
    assert set().union(*by_task.values()) == {"success", "skipped"}
    assert by_task.pop("parse.parse") == by_task.pop("approval") == {"skipped"}
    assert gate_of(found)["ending"] == "done"
    assert status_of(stage.home, found["run_id"])["state"] == "SUCCEEDED"
    [event] = found["events"]
    extra = event["extra"]
    manifest = json.loads((stage.home / "versions" / extra["version"] / "manifest.json").read_text("utf-8"))
    assert (extra["mode"], extra["base"]) == ("incremental", manifest["base"]["version"])
    assert (manifest["own"]["documents"], extra["documents"]) == (0, manifest["totals"]["documents"])
    assert event["extra"]["data_date"] == "2026-01-02", "the day at which the data interval begins"


def test_a_dry_run_maps_over_nothing_and_is_green(stage: Stage) -> None:
    found = stage.test(date="2026-01-04", conf={"dry_run": True})
    assert found["state"] == "success"
    by_task = states(found)
    for step, layer, _ in STEPS[1:]:
        assert by_task[f"{layer}.{step}"] == {"skipped"}
    assert (by_task["publish"], by_task["approval"], by_task["gate"]) == (
        {"skipped"},
        {"skipped"},
        {"success"},
    )
    assert gate_of(found)["ending"] == "dry_run"
    assert found["events"] == []


def test_a_version_that_waits_ends_an_urgent_run_without_an_event(stage: Stage) -> None:
    told = stage.job.read_text("utf-8").replace("run: {", "run: {chunks_per_bundle: 1, ", 1)
    stricter = "clean: {boilerplate_filter: {min_text_len: 3000}}\n"
    stage.job.write_text(told + stricter, encoding="utf-8")
    found = stage.test(date="2026-01-05", conf={"priority": "urgent", "overrides": None})
    assert found["state"] == "success", "nobody can be asked in this process: it must not wait for ever"
    by_task = states(found)
    assert (by_task["publish"], by_task["approval"]) == ({"success"}, {"skipped"})
    said = gate_of(found)
    assert said["ending"] == "awaiting_approval"
    assert "share of domain 'web'" in said["message"]
    assert found["events"] == [], "a training DAG must not start on it"
    # All of them, those that were made when their list was known too.
    assert {(t["queue"], t["pool"]) for t in found["tasks"]} == {("urgent", "urgent")}
    assert all(t["weight"] > AHEAD for t in found["tasks"])
    mapped = [t for t in found["tasks"] if t["index"] > 0]
    assert mapped
    names = {t["name"].partition(" · ")[0] for t in mapped}
    most = max(t["index"] for t in mapped) + 1
    assert names >= {f"2 of {most}", f"{most} of {most}"}


def test_the_event_says_what_was_published(stage: Stage) -> None:
    found = stage.test(date="2026-01-06", conf={"overrides": ["clean.boilerplate_filter.min_text_len=100"]})
    assert found["events"] == [], "made with overrides, not promoted: not current"
    found = stage.test(
        date="2026-01-07",
        conf={"overrides": ["clean.boilerplate_filter.min_text_len=100"], "promote": True},
    )
    [event] = found["events"]
    assert (event["name"], event["task"]) == ("dataflow://tiny", "publish")
    extra = event["extra"]
    assert set(extra) == {
        "dataset",
        "version",
        "base",
        "manifest",
        "mode",
        "data_date",
        "documents",
        "tokens",
        "current",
    }
    assert extra["current"] is True
    assert (stage.home / extra["manifest"]).is_file()
