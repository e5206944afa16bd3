from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from dataflow_ops.stack import plan
from dataflow_ops.stack.compose import compose, env_file
from dataflow_ops.stack.environment import environment, local_places
from dataflow_ops.stack.keys import MAKERS, Keys, make_keys
from dataflow_ops.stack.layout import Layout
from dataflow_ops.stack.processes import Component
from dataflow_ops.stack.settings import REPOSITORY, StackSettings, load_settings

FILE = REPOSITORY / "docker-compose.yml"
_PLACES = {
    "AIRFLOW_HOME",
    "PYTHONPATH",
    "DATAFLOW_HOME",
    "DATAFLOW_ROOT",
    "DATAFLOW_JOBS",
    "AIRFLOW__CORE__DAGS_FOLDER",
    "AIRFLOW__CORE__PLUGINS_FOLDER",
    "AIRFLOW__LOGGING__BASE_LOG_FOLDER",
    "AIRFLOW__API__HOST",
}
"""Folders, and the address to listen on: all that may differ besides host names."""
_DEMO = {"DEMO_STDLIB", "DEMO_SITE", "DEMO_CASES"}
_SECRET = re.compile(r"\$\{DATAFLOW_([A-Z0-9_]+):\?[^}]+\}")


@pytest.fixture(scope="module")
def settings() -> StackSettings:
    return load_settings(REPOSITORY / "stack.yaml")


@pytest.fixture(scope="module")
def services() -> dict[str, dict[str, Any]]:
    return dict(yaml.safe_load(FILE.read_text(encoding="utf-8"))["services"])


@pytest.fixture(scope="module")
def local(settings: StackSettings) -> dict[str, Component]:
    """The components of the local stack, with the names of secrets in their place."""
    keys = Keys(**{name: f"<{name}>" for name in MAKERS})
    layout = Layout(settings.home)
    own = environment(settings, local_places(settings, layout.airflow, store=True), keys)
    programs = {"postgres": "postgres", "redis-server": "redis-server", "weed": "weed"}
    components = plan.build(settings, layout, keys, programs, Path("/data"), None, own, {})
    return {component.name: component for component in components}


def _as_local(value: str) -> str:
    """A container's value as it would be on one machine."""
    value = _SECRET.sub(lambda match: f"<{match[1].lower()}>", value)
    return re.sub(r"(?<=[/@])(postgres|redis|api-server|object-store)(?=:\d+)", "127.0.0.1", value)


def test_the_committed_file_is_what_the_settings_give(settings: StackSettings) -> None:
    assert FILE.read_text(encoding="utf-8") == compose(settings), "run `make compose`"


def test_it_follows_the_compose_specification() -> None:
    schema = "vendor.compose-spec"
    done = subprocess.run(
        [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema, str(FILE)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_component_is_a_service(
    services: dict[str, dict[str, Any]], local: dict[str, Component]
) -> None:
    numbered = {name for name in local if re.fullmatch(r"worker-\d+", name)}
    assert set(services) - {"worker"} == set(local) - numbered
    assert numbered == {"worker-1", "worker-2"}


@pytest.mark.parametrize(
    ("service", "component"),
    [
        *[(n, n) for n in ("api-server", "scheduler", "dag-processor", "triggerer", "worker-urgent")],
        ("worker", "worker-1"),
        ("prepare", "prepare"),
    ],
)
def test_commands_and_environments_are_those_of_the_local_stack(
    services: dict[str, dict[str, Any]], local: dict[str, Component], service: str, component: str
) -> None:
    container, process = services[service], local[component]
    command = list(container["command"])
    if command[0] == "airflow":
        command[:1] = ["python", "-m", "airflow"]
    named = [part.replace("worker-1@", "worker@") for part in process.command[1:]]
    assert command == ["python", *named]
    mine = {name: str(value) for name, value in container["environment"].items()}
    theirs = dict(process.environment)
    assert set(mine) - _DEMO == set(theirs) - _DEMO
    differing = {name for name in set(mine) - _DEMO if _as_local(mine[name]) != theirs[name]}
    if service == "prepare":
        assert mine["DATAFLOW_STACK_WORKERS"] == "${DATAFLOW_WORKERS:-2}"
        differing -= {"DATAFLOW_STACK_WORKERS"}
    assert differing == _PLACES


def test_servers_have_the_ports_and_tuning_of_the_local_ones(
    services: dict[str, dict[str, Any]], local: dict[str, Component]
) -> None:
    mine, theirs = services["postgres"]["command"], local["postgres"].command
    assert mine[mine.index("-p") + 1] == theirs[theirs.index("-p") + 1]
    for name in ("max_connections=300", "shared_buffers=128MB"):
        assert name in mine
        assert name in theirs
    assert "--port 6790 --appendonly yes" in services["redis"]["command"][2]
    mine, theirs = services["object-store"]["command"], local["object-store"].command
    assert {"-s3.port=9790", "-master.telemetry=false"} <= set(mine) & set(theirs)


def test_no_secret_has_a_default_and_env_gives_them_all() -> None:
    text = FILE.read_text(encoding="utf-8")
    variables = set(re.findall(r"\$\{([A-Z0-9_]+)", text))
    optional = set(re.findall(r"\$\{([A-Z0-9_]+):-", text))
    assert optional == {"DATAFLOW_WORKERS"}
    given = {line.split("=", 1)[0] for line in env_file().splitlines() if not line.startswith("#")}
    assert given == variables - optional
    assert {f"DATAFLOW_{name}" for name in _SECRET.findall(text)} == given


def test_every_service_is_limited_restarted_and_checked(services: dict[str, dict[str, Any]]) -> None:
    for name, service in services.items():
        limits = service["deploy"]["resources"]["limits"]
        assert set(limits) == {"cpus", "memory"}, name
        if name == "prepare":
            assert service["restart"] == "on-failure"
            continue
        assert service["restart"] == "unless-stopped", name
        assert service["healthcheck"]["test"][0] == "CMD", name
    assert services["worker"]["deploy"]["replicas"] == "${DATAFLOW_WORKERS:-2}"


def test_everybody_waits_for_what_it_needs(services: dict[str, dict[str, Any]]) -> None:
    for name in ("api-server", "scheduler", "dag-processor", "triggerer", "worker", "worker-urgent"):
        assert services[name]["depends_on"] == {
            "prepare": {"condition": "service_completed_successfully"},
            "redis": {"condition": "service_healthy"},
        }
    assert services["prepare"]["depends_on"] == {
        "postgres": {"condition": "service_healthy"},
        "object-store": {"condition": "service_healthy"},
    }


def test_only_the_web_page_and_the_store_leave_the_containers_and_only_to_the_loopback(
    services: dict[str, dict[str, Any]],
) -> None:
    published = {name: service["ports"] for name, service in services.items() if "ports" in service}
    assert published == {"api-server": ["127.0.0.1:8790:8790"], "object-store": ["127.0.0.1:9790:9790"]}


def test_data_are_in_named_volumes(services: dict[str, dict[str, Any]]) -> None:
    declared = set(yaml.safe_load(FILE.read_text(encoding="utf-8"))["volumes"])
    used = {v.split(":")[0] for s in services.values() for v in s["volumes"] if not v.startswith("./")}
    assert used == declared


def test_a_dollar_in_a_variable_of_the_settings_is_not_expanded() -> None:
    body = yaml.safe_load(compose(StackSettings(environment={"PATTERN": "a$b"})))
    assert body["x-environment"]["PATTERN"] == "a$$b"


def test_the_image_is_unprivileged_and_installs_by_hash() -> None:
    lines = (REPOSITORY / "Dockerfile").read_text(encoding="utf-8").splitlines()
    users = [line.split()[1] for line in lines if line.startswith("USER ")]
    assert users == ["dataflow"]
    installs = [line for line in lines if "install" in line and ".lock" in line]
    assert len(installs) == 2
    assert all("--require-hashes" in line for line in installs)


def test_secrets_of_env_are_fresh_each_time() -> None:
    assert env_file() != env_file()
    assert make_keys().jwt_secret not in env_file()
