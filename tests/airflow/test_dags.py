"""DAG files as Airflow's parser sees them: light to import, whole, and in the shape of the layers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dataflow_ops.pipeline.flow import STEPS

pytestmark = [pytest.mark.airflow, pytest.mark.xdist_group("airflow-dags")]
ROOT = Path(__file__).resolve().parents[2]
DEMO = {"DEMO_STDLIB": "/stdlib", "DEMO_SITE": "/site", "DEMO_CASES": "/cases"}
HEAVY = ("numba", "pyarrow", "numpy", "rapidfuzz", "resiliparse", "scipy", "tokenizers", "redis", "alembic")
SCRIPT = f"""
import json, sys
import airflow.sdk
import airflow.providers.standard.operators.hitl
before = set(sys.modules)
sys.path.insert(0, "dags")
import corpora, job_errors, maintenance, samples
found = {{"ours": sorted(m for m in set(sys.modules) - before if m.startswith("dataflow_ops"))}}
found["heavy"] = [m for m in {HEAVY!r} if m in sys.modules]
from airflow.dag_processing.dagbag import DagBag
bag = DagBag("dags")
found["errors"] = bag.import_errors
found["seconds"] = sum(s.duration.total_seconds() for s in bag.dagbag_stats)
found["dags"] = {{
    d: {{"tasks": sorted(dag.task_ids), "params": sorted(dag.params),
         "groups": sorted(g for g in dag.task_group.get_task_group_dict() if g),
         "edges": {{t.task_id: sorted(t.upstream_task_ids) for t in dag.tasks}}}}
    for d, dag in bag.dags.items()
}}
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def parsed() -> dict[str, Any]:
    """What one fresh process finds in dags/."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), "DATAFLOW_JOBS": str(ROOT / "jobs"), **DEMO},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    result: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return result


def test_a_dag_file_imports_nothing_heavy(parsed: dict[str, Any]) -> None:
    assert parsed["heavy"] == []
    # SQLAlchemy comes with Airflow; the rooms of ours that use it, or open files, stay shut.
    rooms = ("layers", "state", "engine", "storage", "control", "samples")
    shut = tuple(f"dataflow_ops.{room}" for room in rooms)
    assert not [m for m in parsed["ours"] if m.startswith(shut)]


def test_every_dag_file_loads(parsed: dict[str, Any]) -> None:
    assert parsed["errors"] == {}
    assert {"demo__full", "demo__incremental", "dataflow_maintenance", "samples"} == set(parsed["dags"])
    # Airflow gives up on a file after 30 s; ours are a YAML file and some objects.
    assert parsed["seconds"] < 10


def test_tasks_and_groups_follow_the_layers(parsed: dict[str, Any]) -> None:
    dag = parsed["dags"]["demo__full"]
    steps = [f"{layer}.{step}" for step, layer, _ in STEPS if step != "discover"]
    ranges = [f"ranges.{step}" for step, _, _ in STEPS if step != "discover"]
    assert dag["tasks"] == sorted(["start", "publish", "approval", "gate", *ranges, *steps])
    assert dag["groups"] == sorted({"ranges", *(layer for _, layer, _ in STEPS)})
    assert dag["params"] == ["dry_run", "overrides", "priority", "promote", "until"]
    assert parsed["dags"]["demo__incremental"] == dag


def test_samples_are_four_tasks_in_a_row(parsed: dict[str, Any]) -> None:
    dag = parsed["dags"]["samples"]
    assert dag["edges"] == {"import": [], "clean": ["import"], "augment": ["clean"], "export": ["augment"]}
    assert {"dataset", "files", "format", "clean", "template", "export"} <= set(dag["params"])


def test_steps_stand_one_after_the_other(parsed: dict[str, Any]) -> None:
    edges = parsed["dags"]["demo__full"]["edges"]
    chain = [f"{layer}.{step}" for step, layer, _ in STEPS if step != "discover"]
    for before, after in zip(["start", *chain], [*chain, "publish"], strict=True):
        assert before in edges[after]


def test_the_gate_is_the_only_leaf(parsed: dict[str, Any]) -> None:
    edges = parsed["dags"]["demo__full"]["edges"]
    leaves = set(edges) - {before for found in edges.values() for before in found}
    assert leaves == {"gate"}
    assert (edges["gate"], edges["approval"]) == (["approval"], ["publish"])
