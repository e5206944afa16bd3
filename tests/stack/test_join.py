from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from dataflow_ops.errors import ConfigError
from dataflow_ops.stack.environment import as_shell, environment, local_places
from dataflow_ops.stack.join import read_environment, worker
from dataflow_ops.stack.keys import make_keys
from dataflow_ops.stack.layout import Layout, write_json
from dataflow_ops.stack.settings import StackSettings


@pytest.fixture
def variables(tmp_path: Path) -> dict[str, str]:
    """What a stack with its home in ``tmp_path`` hands to its processes."""
    settings = StackSettings(home=tmp_path, host="10.0.0.5", environment={"NAME": "it's a $value\n"})
    layout = Layout(tmp_path)
    layout.make()
    own = environment(settings, local_places(settings, layout.airflow), make_keys())
    write_json(layout.connect, {"state_url": own["DATAFLOW_STATE_URL"]})
    return own


@pytest.fixture
def copied(tmp_path: Path, variables: dict[str, str]) -> Path:
    path = tmp_path / "copy.env"
    path.write_text(as_shell(variables), encoding="utf-8")
    return path


def test_what_a_shell_reads_is_what_the_worker_gets(copied: Path, variables: dict[str, str]) -> None:
    assert read_environment(copied) == variables
    shell = f'set -a; . {copied}; printf %s "$NAME$DATAFLOW_STATE_URL"'
    seen = subprocess.run(["sh", "-c", shell], capture_output=True, text=True, check=True).stdout
    assert seen == variables["NAME"] + variables["DATAFLOW_STATE_URL"]


def test_a_worker_gets_the_stacks_addresses_and_its_own_hosts_code(copied: Path, tmp_path: Path) -> None:
    here = StackSettings(dags=tmp_path / "checkout" / "dags", jobs=tmp_path / "checkout" / "jobs")
    command, found = worker(copied, here, {"PATH": "/bin"}, name="gpu-box", queues=("gpu",), concurrency=3)
    assert command[command.index("--queues") + 1] == "gpu"
    assert command[command.index("--concurrency") + 1] == "3"
    assert command[command.index("--celery-hostname") + 1] == "gpu-box@%h"
    assert found["PATH"] == "/bin"
    assert found["AIRFLOW__CORE__DAGS_FOLDER"] == str(here.dags)
    assert found["DATAFLOW_JOBS"] == str(here.jobs)
    assert "10.0.0.5" in found["AIRFLOW__CELERY__BROKER_URL"]
    assert "10.0.0.5" in found["AIRFLOW__CORE__EXECUTION_API_SERVER_URL"]


def test_a_home_that_is_not_shared_is_told(copied: Path, tmp_path: Path) -> None:
    Layout(tmp_path).connect.unlink()
    with pytest.raises(ConfigError, match="mount the shared folder"):
        worker(copied, StackSettings(), {}, name="w", queues=("cpu",), concurrency=1)


def test_the_home_of_another_stack_is_told(copied: Path, tmp_path: Path) -> None:
    write_json(Layout(tmp_path).connect, {"state_url": "postgresql://other"})
    with pytest.raises(ConfigError, match="mount the shared folder"):
        worker(copied, StackSettings(), {}, name="w", queues=("cpu",), concurrency=1)


@pytest.mark.parametrize(
    ("text", "told"), [("A=1\n", "missing"), ("nonsense\n", "'nonsense' is not"), ("A='1\n", "copy it again")]
)
def test_a_file_that_is_not_ours_is_told(tmp_path: Path, text: str, told: str) -> None:
    path = tmp_path / "x.env"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=told):
        read_environment(path)


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"airflow\.env"):
        read_environment(tmp_path / "none")
