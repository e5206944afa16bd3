"""Whole runs of the samples DAG by Airflow itself, on SQLite, of the DAG file as it is."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dataflow_ops.cli import airflow_process
from tests.airflow.samples_hand import TASKS, Samples
from tests.pipeline.harness import ROOT
from tests.samples.augment.model_server import model_server

pytestmark = [pytest.mark.airflow, pytest.mark.xdist_group("airflow-run"), pytest.mark.timeout(290)]


def run(folder: Path, env: dict[str, str], *runs: dict[str, Any]) -> list[dict[str, Any]]:
    """Run the DAG, once for each form; what Airflow's database says of the runs."""
    out, log = folder / "found.json", folder / "airflow.log"
    asked = [
        json.dumps({"dag": "samples", "date": f"2026-01-0{number}", "conf": form})
        for number, form in enumerate(runs, 1)
    ]
    with log.open("ab") as told:
        done = subprocess.run(
            [sys.executable, "-m", "tests.airflow.in_airflow", str(out), *asked],
            env=env,
            cwd=ROOT,
            stdout=told,
            stderr=told,
            check=False,
        )
    assert done.returncode == 0, "\n".join(airflow_process.last_lines(log, 40))
    found: list[dict[str, Any]] = json.loads(out.read_text(encoding="utf-8"))
    return found


def notes(env: dict[str, str], run_id: str) -> list[list[Any]]:
    """The sample tasks of a run, as the page is told of them."""
    script = (
        "import json, sys; from airflow.utils.session import create_session;"
        " from dataflow_ui.sample_runs import tasks_of_run\n"
        "with create_session() as session: print(json.dumps(tasks_of_run(session, sys.argv[1])))"
    )
    path = os.pathsep.join([str(ROOT), str(ROOT / "plugins")])
    done = subprocess.run(
        [sys.executable, "-c", script, run_id],
        env={**env, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=True,
    )
    found: list[list[Any]] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_a_run_and_the_same_again_and_one_that_wants_little(tmp_path: Path) -> None:
    with model_server() as server:
        samples = Samples(tmp_path, server.url)
        samples.file("one.jsonl", 12)
        more = {
            "PYTHONPATH": str(ROOT),
            "DATAFLOW_HOME": str(samples.home),
            "DATAFLOW_TEMPLATES": str(samples.templates),
            "DATAFLOW_JOBS": str(tmp_path),
            "DATAFLOW_TASK_RETRIES": "0",
        }
        env = airflow_process.environment(tmp_path / "airflow", ROOT / "dags", more)
        log = tmp_path / "airflow.log"
        with airflow_process.only_one(tmp_path / "airflow") as lock:
            assert airflow_process.migrate(env, log, lock, lambda note: None) == 0
        form = {"dataset": "chat", "files": ["*.jsonl"], "template": "better"}
        found = run(tmp_path, env, form, form, {"dataset": "chat", "clean": False, "export": "instruction"})
        assert [one["state"] for one in found] == ["success"] * 3
        states = [{task["id"]: task["state"] for task in one["tasks"]} for one in found]
        assert states[0] == states[1] == dict.fromkeys(TASKS, "success")
        assert states[2] == {**dict.fromkeys(TASKS, "skipped"), "export": "success"}
        assert len(server.calls) == 12, "the second run asked nothing"
        noted = notes(env, found[1]["run_id"].removeprefix("airflow-samples-"))
        assert [(task, dataset) for task, _, dataset, _ in noted] == [(t, "chat") for t in TASKS[1:]]
        assert noted[1][3] == {"budget_tokens": None, "budget_cost": None, "currency": "USD"}
    folders = {path.parent.name for path in (samples.home / "exports" / "chat").glob("*/manifest.json")}
    assert len(folders) == 2
    with samples.store() as store:
        assert {task.state for task in store.sample_tasks("chat")} == {"SUCCESS"}
