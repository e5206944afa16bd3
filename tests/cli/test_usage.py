"""What the command line says when it is called wrongly: exit code 2, what is wrong, what to do."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import typer.main

from dataflow_ops.cli.app import app
from tests.cli.conftest import Dataflow

pytestmark = pytest.mark.xdist_group("cli")


def commands() -> list[tuple[str, ...]]:
    """All commands, groups with their own."""
    found: list[tuple[str, ...]] = []

    def walk(names: tuple[str, ...], command: object) -> None:
        found.append(names)
        for name, sub in getattr(command, "commands", {}).items():
            walk((*names, name), sub)

    walk((), typer.main.get_command(app))
    return found


@pytest.mark.parametrize("command", commands(), ids=" ".join)
def test_every_command_explains_itself(dataflow: Dataflow, command: tuple[str, ...]) -> None:
    said = dataflow(*command, "--help")
    assert said.code == 0
    assert "Usage: dataflow" in said.out
    flat = " ".join(said.out.replace("│", " ").split())
    assert ". " in flat, "a sentence says what it is for"
    assert dataflow(*command, "-h").out == said.out


FOREGROUND = {("stack", "worker")}
"""Commands that become another program and have no result of their own."""


def test_every_leaf_command_takes_json() -> None:
    root = typer.main.get_command(app)
    for names in commands():
        command = root
        for name in names:
            command = command.commands[name]  # type: ignore[attr-defined]
        if not hasattr(command, "commands") and names not in FOREGROUND:
            assert "--json" in {o for p in command.params for o in p.opts}, names


@pytest.mark.parametrize(
    ("yaml", "arguments", "expected"),
    [
        ("dataset: [", (), "not valid YAML"),
        ("- 1", (), "a job file is a mapping with at least 'dataset"),
        ("dataset: {}", (), "dataset.id: Field required"),
        ("dataset: {id: x, nmae: y}", (), "unknown key; known here: description, id"),
        ("dataset: {id: x}\nmixing: {sampling: {a: 0.5}}", (), "the ratios sum to 0.5, not 1"),
        ("dataset: {id: x}\ndedup: {minhash: {band: 99}}", (), "valid pairs"),
        ("dataset: {id: x}", (), "--source PATH"),
        ("dataset: {id: x}", ("--source", "/nowhere/at/all"), "/nowhere/at/all does not exist"),
        ("dataset: {id: x}", ("--set", "mixing.seed"), "write it as section.key=value"),
        ("dataset: {id: x}", ("--set", "mixing.seed=[1"), "the value can't be read"),
        ("dataset: {id: x}", ("--set", "mixing.seed=much"), "mixing.seed: Input should be a valid integer"),
        ("dataset: {id: x}", ("--set", "dataset.id.x=1"), "'id' is not a section"),
        ("dataset: {id: x}", ("--until", "cleaning", "--source", "."), "there are ingest, parse, filter"),
        ("dataset: {id: x}", ("--mode", "daily"), "use --mode full"),
        ("dataset: {id: x}", ("--workers", "-1"), "Invalid value for '--workers'"),
        ("dataset: {id: x}\nsources: [{path: $NO_SUCH_NAME}]", (), "NO_SUCH_NAME is not set"),
        (
            "dataset: {id: x}\nsources: [{path: ., source_id: a}, {path: ., source_id: a}]",
            (),
            "'a' is used twice",
        ),
    ],
)
def test_a_wrong_call_of_run(
    dataflow: Dataflow, tmp_path: Path, yaml: str, arguments: tuple[str, ...], expected: str
) -> None:
    job = tmp_path / "job.yaml"
    job.write_text(yaml, encoding="utf-8")
    said = dataflow("run", job, "--home", tmp_path / "home", *arguments)
    assert said.code == 2
    assert expected in said.err
    assert "Traceback" not in said.err
    assert said.out == ""
    assert not (tmp_path / "home").exists(), "nothing is made before the call is known to be right"


def test_a_missing_job_file(dataflow: Dataflow, tmp_path: Path) -> None:
    for path in (tmp_path / "nope.yaml", tmp_path):
        said = dataflow("run", path)
        assert said.code == 2
        assert str(path) in said.err
        assert "--source PATH" in said.err


@pytest.mark.parametrize(
    "arguments",
    [
        ("status",),
        ("resume",),
        ("pause",),
        ("lineage", "abcd"),
        ("audit",),
        ("report",),
        ("versions", "list"),
        ("versions", "verify"),
        ("versions", "approve"),
        ("versions", "rollback", "v1"),
        ("dead-letters", "list"),
        ("dead-letters", "drop", "--all"),
    ],
    ids=" ".join,
)
def test_without_a_home_each_command_says_how_to_make_one(
    dataflow: Dataflow, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    said = dataflow(*arguments, "--home", tmp_path / "none")
    assert said.code == 2
    assert f"`dataflow run --home {tmp_path}/none JOB` makes one" in said.err
    assert not (tmp_path / "none").exists()


def test_in_a_home_without_runs_each_command_says_how_to_start_one(
    dataflow: Dataflow, tmp_path: Path
) -> None:
    for arguments in (("status",), ("pause",), ("audit",), ("versions", "show"), ("report",)):
        said = dataflow(*arguments, "--home", tmp_path)
        assert (said.code, f"`dataflow run --home {tmp_path} JOB`" in said.err) == (2, True), arguments
    for arguments in (("versions", "list"), ("runs",)):
        said = dataflow(*arguments, "--home", tmp_path)
        assert (said.code, f"`dataflow run --home {tmp_path} JOB`" in said.out) == (0, True), arguments
        assert dataflow(*arguments, "--home", tmp_path, "--json").json == []


def test_two_homes_in_one_folder_are_told_apart(
    dataflow: Dataflow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DATAFLOW_HOME", raising=False)
    stack = tmp_path / ".dataflow-stack"
    (stack / "stack").mkdir(parents=True)
    state = f"sqlite:///{stack / 'platform.db'}"
    (stack / "stack" / "connect.json").write_text(json.dumps({"state_url": state}))
    alone = dataflow("pauses", "--json")
    assert (alone.code, (stack / "platform.db").is_file()) == (0, True)
    (tmp_path / ".dataflow").mkdir()
    (tmp_path / ".dataflow" / "state.db").touch()
    both = dataflow("pause", "--all")
    assert both.code == 2
    assert "--home .dataflow-stack" in " ".join(both.err.split())
    assert dataflow("pauses", "--home", ".dataflow-stack").code == 0
    monkeypatch.setenv("DATAFLOW_HOME", str(stack))
    assert dataflow("pauses").code == 0
