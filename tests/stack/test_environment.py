from __future__ import annotations

from pathlib import Path

from dataflow_ops.stack.components import airflow_parts, stages
from dataflow_ops.stack.environment import environment, inherited, local_places
from dataflow_ops.stack.keys import make_keys
from dataflow_ops.stack.layout import Layout
from dataflow_ops.stack.plan import build
from dataflow_ops.stack.processes import Component
from dataflow_ops.stack.settings import StackSettings, Workers


def _plan(settings: StackSettings, home: Path = Path("/h")) -> dict[str, Component]:
    keys = make_keys()
    layout = Layout(home)
    own = environment(settings, local_places(settings, layout.airflow), keys)
    programs = {"postgres": "postgres", "redis-server": "redis-server"}
    parts = build(settings, layout, keys, programs, Path("/d"), None, own, {"HOME": "/root"})
    return {part.name: part for part in parts}


def test_workers_serve_all_queues_and_one_more_only_urgent_ones() -> None:
    parts = {part.name: part.arguments for part in airflow_parts(StackSettings(workers=Workers(count=3)))}
    workers = [name for name in parts if name.startswith("worker-")]
    assert workers == ["worker-1", "worker-2", "worker-3", "worker-urgent"]
    queues = {name: parts[name][parts[name].index("--queues") + 1] for name in workers}
    assert queues == {
        **dict.fromkeys(workers[:3], "cpu,memory,gpu,llm"),
        "worker-urgent": "urgent",
    }


def test_no_password_stands_in_a_command_line_that_others_can_read() -> None:
    keys = make_keys()
    settings, layout = StackSettings(), Layout(Path("/h"))
    own = environment(settings, local_places(settings, layout.airflow), keys)
    programs = {"postgres": "postgres", "redis-server": "redis-server"}
    words = [w for c in build(settings, layout, keys, programs, Path("/d"), None, own, {}) for w in c.command]
    secrets = [value for value in vars(keys).values()]
    assert not [word for word in words if any(secret in word for secret in secrets)]


def test_only_the_preparation_knows_the_first_users_password() -> None:
    plan = _plan(StackSettings())
    knowing = [name for name, part in plan.items() if "DATAFLOW_STACK_PASSWORD" in part.environment]
    assert knowing == ["prepare"]


def test_the_users_own_variables_win() -> None:
    changed = {"AIRFLOW__CORE__PARALLELISM": "7", "CORPUS": "/corpus"}
    plan = _plan(StackSettings(environment=changed))
    assert changed.items() <= plan["scheduler"].environment.items()


def test_a_number_of_workers_changes_no_other_component() -> None:
    keys = make_keys()
    plans = []
    for count in (2, 40):
        settings, layout = StackSettings(workers=Workers(count=count)), Layout(Path("/h"))
        own = environment(settings, local_places(settings, layout.airflow), keys)
        programs = {"postgres": "postgres", "redis-server": "redis-server"}
        parts = build(settings, layout, keys, programs, Path("/d"), None, own, {})
        plans.append({part.name: part.digest for part in parts})
    two, more = plans
    assert set(more) - set(two) == {f"worker-{number}" for number in range(3, 41)}
    assert {name for name in two if two[name] != more[name]} == {"prepare"}  # it sets the pools' sizes


def test_nothing_of_the_callers_airflow_or_python_gets_in() -> None:
    shell = {
        "PATH": "/bin",
        "https_proxy": "p",
        "AIRFLOW_HOME": "/x",
        "AIRFLOW__CORE__EXECUTOR": "LocalExecutor",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONPATH": "/x",
        "DATAFLOW_STATE_URL": "sqlite://",
    }
    assert inherited(shell) == {"PATH": "/bin", "https_proxy": "p"}


def test_who_hands_out_work_ends_first_and_the_database_last() -> None:
    order = stages(list(_plan(StackSettings())))
    assert order[-1] == ["postgres"]
    assert order[-2] == ["redis"]
    assert order[-3] == ["api-server"]
    assert {"scheduler", "worker-1", "worker-urgent", "triggerer"} <= set(order[0])
    assert sorted(name for stage in order for name in stage) == sorted(_plan(StackSettings()))


def test_the_demo_url_of_the_page_is_the_one_that_workers_use_here() -> None:
    plan = _plan(StackSettings())
    found = plan["worker-1"].environment
    assert found["AIRFLOW__CORE__EXECUTION_API_SERVER_URL"] == found["AIRFLOW__API__BASE_URL"] + "/execution/"
