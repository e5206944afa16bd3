from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest
import yaml

from dataflow_ops.errors import ConfigError
from dataflow_ops.stack.components import RELAY, stages
from dataflow_ops.stack.compose import compose
from dataflow_ops.stack.health import healthy
from dataflow_ops.stack.processes import Component
from dataflow_ops.stack.relay_part import relay_part
from dataflow_ops.stack.settings import StackSettings, load_settings
from dataflow_ops.state.store import StateStore
from tests.pipeline.receiver import SECRET, Receiver

_FILE = """
webhooks:
  - {name: desk, url: "http://127.0.0.1:9/x", topics: ["run.*"], secret_env: DESK_SECRET}
"""
_SHELL = {"DESK_SECRET": "0123456789abcdef", "HOME": "/root", "DATAFLOW_OTHER": "x"}
_OWN = {"DATAFLOW_HOME": "/h", "DATAFLOW_STATE_URL": "postgresql://h/dataflow"}


def _part(home: Path, **shell: str) -> Component:
    found = relay_part(StackSettings(home=home), _OWN, {**_SHELL, **shell})
    assert found is not None
    return found


def test_only_where_webhooks_are_named(tmp_path: Path) -> None:
    assert relay_part(StackSettings(home=tmp_path), _OWN, _SHELL) is None
    (tmp_path / "webhooks.yaml").write_text(_FILE, encoding="utf-8")
    part = _part(tmp_path)
    assert part.name == RELAY
    assert part.command[1:] == ("-m", "dataflow_ops.stack.relay_process")
    assert part.environment["DESK_SECRET"] == _SHELL["DESK_SECRET"]
    assert part.environment["DATAFLOW_STATE_URL"] == _OWN["DATAFLOW_STATE_URL"]
    assert part.environment["DATAFLOW_WEBHOOKS"] == str(tmp_path / "webhooks.yaml")
    assert "DATAFLOW_OTHER" not in part.environment


def test_a_file_elsewhere(tmp_path: Path) -> None:
    other = tmp_path / "other.yaml"
    other.write_text(_FILE, encoding="utf-8")
    assert _part(tmp_path, DATAFLOW_WEBHOOKS=str(other)).environment["DATAFLOW_WEBHOOKS"] == str(other)


def test_another_secret_or_version_needs_a_restart_and_another_file_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "webhooks.yaml"
    file.write_text(_FILE, encoding="utf-8")
    first = _part(tmp_path)
    assert _SHELL["DESK_SECRET"] not in first.digest + " ".join(first.command)
    file.write_text(_FILE.replace("run.*", "version.*"), encoding="utf-8")
    assert _part(tmp_path).digest == first.digest
    assert _part(tmp_path, DESK_SECRET="another-secret-of-16").digest != first.digest
    monkeypatch.setattr("dataflow_ops.__version__", "0.0.0.other")
    assert _part(tmp_path).digest != first.digest


def test_a_secret_that_is_not_set_is_told_before_anything_starts(tmp_path: Path) -> None:
    (tmp_path / "webhooks.yaml").write_text(_FILE, encoding="utf-8")
    with pytest.raises(ConfigError, match="DESK_SECRET is not set"):
        relay_part(StackSettings(home=tmp_path), _OWN, {"HOME": "/root"})


def test_it_ends_before_what_it_reads_from() -> None:
    order = stages(["postgres", "redis", "api-server", "scheduler", RELAY])
    assert RELAY in order[0]


def test_one_that_has_just_been_started_may_end_again() -> None:
    now = time.time()
    assert healthy([RELAY], os.environ, {RELAY: now}) == {RELAY: (False, "has just been started")}
    assert healthy([RELAY], os.environ, {RELAY: now - 60}) == {RELAY: (True, "runs")}


def test_its_process_sends_until_it_is_told_to_end(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'state.db'}"
    with StateStore(url) as store, Receiver() as receiver:
        store.create_run("r1", "web", "job", "full", "{}", None)
        (tmp_path / "webhooks.yaml").write_text(
            _FILE.replace("http://127.0.0.1:9/x", receiver.url), encoding="utf-8"
        )
        own = {"DATAFLOW_HOME": str(tmp_path), "DATAFLOW_STATE_URL": url}
        shell = {**os.environ, "DESK_SECRET": SECRET, "NO_PROXY": "127.0.0.1"}
        part = relay_part(StackSettings(home=tmp_path), own, shell)
        assert part is not None
        environment = {**part.environment, "PYTHONPATH": str(Path(__file__).parents[2])}
        process = subprocess.Popen(
            part.command, env=environment, cwd=tmp_path, stderr=subprocess.PIPE, text=True
        )
        end = time.monotonic() + 60
        while not receiver.applied and time.monotonic() < end:
            time.sleep(0.05)
        process.terminate()
        log = process.communicate(timeout=30)[1]
        assert process.returncode == 0, log
        assert [event["topic"] for event in receiver.applied] == ["run.planned"]
        assert "relaying to desk (run.*)" in log
        short = subprocess.run(
            part.command,
            env={**environment, "DESK_SECRET": "short"},
            capture_output=True,
            text=True,
            check=False,
        )
    assert (short.returncode, "is shorter than 16 bytes" in short.stderr) == (1, True)


def test_the_settings_file_may_name_the_webhooks_for_both_forms(tmp_path: Path) -> None:
    file = tmp_path / "hooks.yaml"
    file.write_text(_FILE, encoding="utf-8")
    (tmp_path / "stack.yaml").write_text("webhooks: hooks.yaml\n", encoding="utf-8")
    settings = load_settings(tmp_path / "stack.yaml")
    part = relay_part(settings, _OWN, _SHELL)
    assert part is not None
    assert part.environment["DATAFLOW_WEBHOOKS"] == str(file)
    service = yaml.safe_load(compose(settings))["services"][RELAY]
    assert service["command"] == ["python", *part.command[1:]]
    assert service["environment"]["DESK_SECRET"] == "${DESK_SECRET:?is not set; webhooks.yaml names it}"
    assert f"{file}:{service['environment']['DATAFLOW_WEBHOOKS']}:ro" in service["volumes"]
    assert RELAY not in yaml.safe_load(compose(StackSettings()))["services"]
