"""The whole stack, for real: one start serves all tests of this file."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from dataflow_ops.pipeline.home import open_home
from dataflow_ops.stack import processes
from tests.stack.live import LiveStack, live_stack, missing

pytestmark = [pytest.mark.stack, pytest.mark.timeout(900), pytest.mark.xdist_group("stack")]

_DAG = """
import os
from airflow.sdk import dag, task

@dag(schedule=None, is_paused_upon_creation=False)
def probe():
    @task(queue="cpu")
    def normal():
        return {name: os.environ.get(name) for name in ("DATAFLOW_HOME", "DATAFLOW_JOBS", "COLOUR")}

    @task(queue="urgent", pool="urgent")
    def urgent():
        return os.environ["DATAFLOW_CORES_PER_TASK"]

    normal()
    urgent()

probe()
"""


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveStack]:
    why = missing()
    if why:
        if os.environ.get("DATAFLOW_REQUIRE_STACK") == "1":
            pytest.fail(why)
        pytest.skip(why)
    # pytest keeps its folders to itself, and root lends PostgreSQL an account that must get in.
    base = tmp_path_factory.mktemp("stack")
    (base / "dags").mkdir()
    (base / "dags" / "probe.py").write_text(_DAG, encoding="utf-8")
    with live_stack(
        base / "home",
        dags=base / "dags",
        environment={"COLOUR": "it's $blue"},
        airflow={"dag_refresh_s": 5},
        urgent={"concurrency": 1, "cores_per_task": 3},
    ) as live:
        yield live
        assert processes.leftovers(live.layout.folder, live.status()) != []
        down = live.down()
        assert down.returncode == 0, down.stderr
        assert processes.leftovers(live.layout.folder, [*live.status(), "supervisor"]) == []
        assert "down" in {row["state"] for row in live.status().values()}


def _run(stack: LiveStack, timeout_s: float = 120) -> dict[str, Any]:
    """One run of the probe DAG; what each task returned."""
    with stack.client() as client:
        stack.wait("the DAG", lambda: client.get("/api/v2/dags/probe").status_code == 200)
        answer = client.post("/api/v2/dags/probe/dagRuns", json={"logical_date": None})
        run = answer.raise_for_status().json()["dag_run_id"]
        where = f"/api/v2/dags/probe/dagRuns/{run}"

        def ended() -> str:
            state = client.get(where).raise_for_status().json()["state"]
            return state if state in ("success", "failed") else ""

        assert stack.wait("the end of the run", ended, timeout_s) == "success"
        return {
            name: client.get(f"{where}/taskInstances/{name}/xcomEntries/return_value").json()["value"]
            for name in ("normal", "urgent")
        }


def test_all_components_are_healthy_and_their_files_private(stack: LiveStack) -> None:
    rows = stack.status()
    assert {row["state"] for row in rows.values()} == {"healthy", "done"}
    assert {"worker-1", "worker-2", "worker-urgent", "triggerer", "dag-processor"} <= set(rows)
    for path in ("secrets.json", "airflow.env", "api.json", "connect.json", "plan.json", "redis/redis.conf"):
        assert (stack.layout.folder / path).stat().st_mode & 0o077 == 0, path


def test_a_run_goes_through_workers_with_the_stacks_environment(stack: LiveStack) -> None:
    found = _run(stack)
    jobs = json.loads(json.dumps(found["normal"]))
    assert jobs["DATAFLOW_HOME"] == str(stack.home)
    assert jobs["COLOUR"] == "it's $blue"
    assert Path(jobs["DATAFLOW_JOBS"]).is_dir()
    assert found["urgent"] == "3"  # the urgent worker's own setting


def test_pools_are_as_large_as_the_workers(stack: LiveStack) -> None:
    pools = {pool["name"]: pool["slots"] for pool in stack.get("/api/v2/pools")["pools"]}
    assert pools == {"default_pool": 4, "urgent": 1}


def test_up_again_starts_nothing(stack: LiveStack) -> None:
    before = {name: row["pid"] for name, row in stack.status().items()}
    again = stack.up()
    assert again.returncode == 0, again.stderr
    assert {name: row["pid"] for name, row in stack.status().items()} == before


def test_other_settings_are_refused_while_it_runs(stack: LiveStack) -> None:
    text = stack.settings.read_text(encoding="utf-8")
    try:
        stack.settings.write_text(text.replace("COLOUR", "COLOR"), encoding="utf-8")
        refused = stack.up()
    finally:
        stack.settings.write_text(text, encoding="utf-8")
    assert refused.returncode == 2
    assert "settings changed since these started" in refused.stderr
    assert "scheduler" in refused.stderr


def test_a_shell_that_sources_the_environment_talks_to_this_stack(stack: LiveStack) -> None:
    script = (
        f"set -a; . {stack.layout.environment}; {sys.executable} -c "
        '\'from airflow.configuration import conf; print(conf.get("core", "executor"))\''
    )
    done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=False)
    assert done.stdout.splitlines()[-1] == "CeleryExecutor", done.stderr


def test_the_home_alone_leads_to_the_stacks_state(stack: LiveStack, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DATAFLOW_STATE_URL", "DATAFLOW_REDIS_URL", "DATAFLOW_ROOT"):
        monkeypatch.delenv(name, raising=False)
    home = open_home(stack.home)
    own = stack.environment()
    assert home.state_url == own["DATAFLOW_STATE_URL"]
    assert home.redis_url == own["DATAFLOW_REDIS_URL"]
    assert not (stack.home / "state.db").exists()


def test_workers_have_loaded_what_tasks_need_and_nothing_that_starts_threads(stack: LiveStack) -> None:
    for name in ("worker-1", "worker-urgent"):
        maps = Path(f"/proc/{stack.pid(name)}/maps")
        if not maps.exists():
            pytest.skip("only Linux tells what a process has loaded")
        loaded = maps.read_text(encoding="utf-8")
        assert "_sqlalchemy" in loaded or "sqlalchemy" in loaded  # it did load Airflow
        assert [part for part in ("/pyarrow/", "/llvmlite/") if part not in loaded] == []
        assert "/polars/" not in loaded


@pytest.mark.crash
@pytest.mark.parametrize("name", ["scheduler", "worker-1", "postgres", "redis"])
def test_what_is_killed_heals_by_itself_and_work_goes_on(stack: LiveStack, name: str) -> None:
    killed = stack.kill(name)
    stack.wait("another process", lambda: stack.status()[name]["pid"] not in (None, killed))
    stack.wait_healthy()
    assert stack.status()[name]["starts"] >= 2
    _run(stack)


@pytest.mark.crash
def test_a_killed_supervisor_loses_nobody_and_up_takes_them_over(stack: LiveStack) -> None:
    before = {name: row["pid"] for name, row in stack.status().items() if name != "supervisor"}
    stack.kill("supervisor", group=False)
    assert stack.status()["supervisor"]["state"] == "down"
    assert psutil.pid_exists(before["scheduler"])
    again = stack.up()
    assert again.returncode == 0, again.stderr
    rows = stack.status()
    assert {name: row["pid"] for name, row in rows.items() if name != "supervisor"} == before
    assert rows["supervisor"]["state"] == "healthy"


def test_users_of_other_roles_can_be_added(stack: LiveStack) -> None:
    stack.add_user("vera", "Viewer", "vera-password")
    with stack.client("vera", "vera-password") as client:
        assert client.get("/api/v2/dags/probe").status_code == 200
        assert client.post("/api/v2/dags/probe/dagRuns", json={"logical_date": None}).status_code == 403
