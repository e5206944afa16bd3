"""The stack's object store: as a component, kept alive by the supervisor, and found by command lines."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from dataflow_ops.clients.s3 import S3Access
from dataflow_ops.errors import ConfigError, StackError
from dataflow_ops.pipeline.home import open_home
from dataflow_ops.stack import control, object_store, plan, processes
from dataflow_ops.stack.components import PREPARE, STORE, stages
from dataflow_ops.stack.compose import compose
from dataflow_ops.stack.environment import connection, environment, local_places
from dataflow_ops.stack.health import answers
from dataflow_ops.stack.keys import load_keys
from dataflow_ops.stack.layout import Layout, write_json
from dataflow_ops.stack.object_store import BUCKET, find_weed, make_bucket
from dataflow_ops.stack.ports import check_ports
from dataflow_ops.stack.processes import Component
from dataflow_ops.stack.settings import Ports, StackSettings
from dataflow_ops.storage.opening import open_store
from dataflow_ops.storage.s3 import S3Root
from tests.storage import s3_server

PROGRAMS = {"postgres": "postgres", "redis-server": "redis-server"}


def built(
    settings: StackSettings, weed: str | None, home: Path
) -> tuple[dict[str, str], dict[str, Component]]:
    """The stack's variables and components."""
    layout = Layout(home)
    layout.make()
    keys = load_keys(layout)
    own = environment(settings, local_places(settings, layout.airflow, weed is not None), keys)
    programs = PROGRAMS if weed is None else {**PROGRAMS, "weed": weed}
    parts = plan.build(settings, layout, keys, programs, Path("/d"), None, own, {"HOME": "/root"})
    return own, {part.name: part for part in parts}


def test_where_it_is_not_wanted_nobody_knows_of_it(tmp_path: Path) -> None:
    own, parts = built(StackSettings(), None, tmp_path)
    assert STORE not in parts
    assert not [name for name in own if name.startswith(("AWS_", "DATAFLOW_S3_"))]
    assert all(STORE not in part.after for part in parts.values())
    assert find_weed(StackSettings(object_store=False)) is None


def test_who_needs_it_waits_for_it_and_it_ends_after_them(tmp_path: Path) -> None:
    _, parts = built(StackSettings(), "weed", tmp_path)
    assert all(
        STORE in part.after for name, part in parts.items() if name not in ("postgres", "redis", STORE)
    )
    order = [name for stage in stages(list(parts)) for name in stage]
    assert order.index(STORE) > order.index("api-server")
    assert set(order) == set(parts)


def test_its_bucket_is_made_where_the_rest_was_prepared_before(tmp_path: Path) -> None:
    _, before = built(StackSettings(), None, tmp_path)
    _, after = built(StackSettings(), "weed", tmp_path)
    assert after[PREPARE].digest != before[PREPARE].digest


def test_it_is_named_where_it_must_be_there_and_is_not(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(object_store.sys, "executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_weed(StackSettings()) is None
    with pytest.raises(ConfigError, match="make up"):
        find_weed(StackSettings(object_store=True))


def test_the_users_own_server_wins(tmp_path: Path) -> None:
    mine = {"DATAFLOW_S3_ENDPOINT": "http://10.1.1.1:9000"}
    own, _ = built(StackSettings(environment=mine, storage_root="s3://corpus/x"), "weed", tmp_path)
    assert own["DATAFLOW_S3_ENDPOINT"] == "http://10.1.1.1:9000"
    assert own["DATAFLOW_ROOT"] == "s3://corpus/x"
    with pytest.raises(ValueError, match="storage_root"):
        StackSettings(storage_root="relative/folder")


@pytest.mark.parametrize(
    ("said", "there"),
    [
        ({}, True),
        ({"object_store": False}, False),
        ({"environment": {"DATAFLOW_S3_ENDPOINT": "http://10.1.1.1:9000"}}, False),
        ({"environment": {"DATAFLOW_S3_ENDPOINT": "http://10.1.1.1:9790"}, "object_store": True}, True),
    ],
)
def test_beside_another_server_there_is_none_in_either_form(
    said: dict[str, Any], there: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(object_store.sys, "executable", str(tmp_path / "python"))
    (tmp_path / "weed").touch()
    settings = StackSettings.model_validate(said)
    assert (find_weed(settings) is not None) == there
    document = yaml.safe_load(compose(settings))
    assert (STORE in document["services"]) == there
    assert ("object-data" in document["volumes"]) == there
    assert (STORE in document["services"][PREPARE]["depends_on"]) == there
    # Without it nobody makes its bucket elsewhere, with its credentials.
    assert ("DATAFLOW_STACK_BUCKET" in document["x-environment"]) == there
    assert ("AWS_ACCESS_KEY_ID" in document["x-environment"]) == there


def test_a_command_line_reaches_another_server_as_the_stack_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = {
        "DATAFLOW_S3_ENDPOINT": "http://10.1.1.1:9000",
        "DATAFLOW_S3_REGION": "here",
        "DATAFLOW_S3_PATH_STYLE": "false",
    }
    for name in (*mine, "DATAFLOW_ROOT", "DATAFLOW_STATE_URL", "AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    own, _ = built(StackSettings(environment=mine, storage_root="s3://corpus/x"), None, tmp_path)
    note = {**connection(own), "state_url": f"sqlite:///{tmp_path / 'state.db'}"}
    write_json(Layout(tmp_path).connect, note)
    root = open_home(tmp_path).root
    assert isinstance(root, S3Root)
    assert root.access == S3Access("http://10.1.1.1:9000", "here", False)


def test_its_secrets_stand_in_no_command_line(tmp_path: Path) -> None:
    own, parts = built(StackSettings(), "weed", tmp_path)
    for part in parts.values():
        assert not [word for word in part.command if own["AWS_SECRET_ACCESS_KEY"] in word]


def test_all_its_ports_are_looked_at() -> None:
    import socket

    first = s3_server.free_row(object_store.PORTS)
    settings = StackSettings(ports=Ports(object_store=first))
    check_ports(settings, [STORE])
    with (
        socket.create_server(("127.0.0.1", first + object_store.PORTS - 1)),
        pytest.raises(ConfigError) as told,
    ):
        check_ports(settings, [STORE])
    assert "ports.object_store" in str(told.value)
    with pytest.raises(ValueError, match="port of its own"):
        Ports(redis=9793)


def test_a_command_line_finds_the_root_of_the_stack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DATAFLOW_ROOT", "DATAFLOW_S3_ENDPOINT", "DATAFLOW_STATE_URL"):
        monkeypatch.delenv(name, raising=False)
    own, _ = built(StackSettings(storage_root="s3://dataflow/data"), "weed", tmp_path)
    note = {**connection(own), "state_url": f"sqlite:///{tmp_path / 'state.db'}"}
    write_json(Layout(tmp_path).connect, note)
    root = open_home(tmp_path).root
    assert isinstance(root, S3Root)
    assert (str(root), root.access.endpoint) == ("s3://dataflow/data", "http://127.0.0.1:9790")
    assert root.access.secret_key == own["AWS_SECRET_ACCESS_KEY"]
    monkeypatch.setenv("DATAFLOW_S3_ENDPOINT", "http://10.1.1.1:9000")
    other = open_home(tmp_path).root
    assert isinstance(other, S3Root)
    assert (other.access.endpoint, other.access.secret_key) == ("http://10.1.1.1:9000", "")
    plain, _ = built(StackSettings(home=tmp_path), None, tmp_path)
    assert "root" not in connection(plain)


@pytest.fixture
def layout(tmp_path: Path) -> Iterator[Layout]:
    layout = Layout(tmp_path / "home")
    layout.make()
    yield layout
    control.down(layout, lambda line: None)


@pytest.mark.s3
@pytest.mark.xdist_group("s3")
def test_the_supervisor_keeps_it_alive_with_its_data(layout: Layout) -> None:
    weed = s3_server.find_weed()
    if weed is None:
        line = "SeaweedFS is not installed"
        if os.environ.get("DATAFLOW_REQUIRE_S3") == "1":
            pytest.fail(line)
        pytest.skip(line)
    ports = Ports(object_store=s3_server.free_row(object_store.PORTS))
    own, parts = built(StackSettings(ports=ports, storage_root=f"s3://{BUCKET}/data"), weed, layout.home)
    # What others wait for is asked with the preparation's variables; here it stands in for the rest.
    idle = Component(PREPARE, ("sleep", "600"), parts[PREPARE].environment, after=(STORE,))
    plan.save([parts[STORE], idle], layout, 5)
    control.supervise(layout)

    def well() -> processes.Record:
        until = time.monotonic() + 60
        while time.monotonic() < until:
            record = processes.load(layout.pids / f"{STORE}.json")
            if record is not None and processes.is_alive(record) and answers(STORE, own):
                return record
            time.sleep(0.1)
        raise AssertionError(layout.log(STORE).read_text()[-2000:])

    first = well()
    make_bucket(BUCKET, own)
    make_bucket(BUCKET, own)
    write_json(layout.connect, {**connection(own), "state_url": f"sqlite:///{layout.home / 'state.db'}"})
    store = open_store(open_home(layout.home).root)
    store.put("data/a", b"kept")
    os.kill(first.pid, signal.SIGKILL)
    until = time.monotonic() + 60
    while (second := well()).pid == first.pid:
        assert time.monotonic() < until
    assert second.pid != first.pid
    make_bucket(BUCKET, own)
    assert store.read("data/a") == b"kept"
    with pytest.raises(StackError, match="object store"):
        make_bucket(BUCKET, {**own, "AWS_SECRET_ACCESS_KEY": "wrong"}, patience_s=0)
    assert json.loads(layout.plan.read_text())["components"][0]["name"] == STORE
