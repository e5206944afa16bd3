"""A command that was told its home tells it on: what it prints works when it is typed."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
import typer.main

from dataflow_ops.cli.app import app
from dataflow_ops.cli.hints import GROUPS, HOMELESS, named_home, with_home, with_home_in
from tests.cli.conftest import Dataflow
from tests.cli.test_printed_commands import understood
from tests.cli.test_usage import commands

pytestmark = pytest.mark.xdist_group("cli")


@pytest.mark.parametrize(
    ("words", "home"),
    [
        ("run job.yaml", None),
        ("run job.yaml --home a/b", "a/b"),
        ("run job.yaml --home=a/b --workers 2", "a/b"),
        ("run --home a --home b job.yaml", "b"),
        ("find -- --home", None),
        ("run --home", None),
    ],
)
def test_which_home_was_named(words: str, home: str | None) -> None:
    assert named_home(words.split()) == home


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("`dataflow run JOB` makes one", "`dataflow run --home h JOB` makes one"),
        ("1 waits: dataflow dead-letters list", "1 waits: dataflow dead-letters list --home h"),
        (
            "Try again: dataflow dead-letters retry ID …   Give up: dataflow dead-letters drop ID …",
            "Try again: dataflow dead-letters retry --home h ID …"
            "   Give up: dataflow dead-letters drop --home h ID …",
        ),
        (
            "`dataflow cancel r` or\ndataflow runs.",
            "`dataflow cancel --home h r` or\ndataflow runs --home h.",
        ),
        ("dataflow backfills resume b --home x", "dataflow backfills resume b --home x"),
        (
            "`dataflow stack up --home x` or `dataflow runs`",
            "`dataflow stack up --home x` or `dataflow runs --home h`",
        ),
        ("`dataflow stack up` prints it", "`dataflow stack up` prints it"),
        ("`dataflow versions` and `dataflow version`", "`dataflow versions` and `dataflow version`"),
        ("dataflow-ops, DataFlow, a dataflow", "dataflow-ops, DataFlow, a dataflow"),
    ],
)
def test_commands_get_the_home(text: str, told: str) -> None:
    assert with_home(text, ["status", "--home", "h"]) == told
    assert with_home(text, ["status"]) == text


def test_only_the_named_fields_of_what_programs_get_are_texts_for_people() -> None:
    rows = [{"detail": "`dataflow runs`", "text": "`dataflow runs`", "days": ({"detail": None},), "n": 1}]
    assert with_home_in(rows, ("detail", "n"), ["runs", "--home", "h"]) == [
        {"detail": "`dataflow runs --home h`", "text": "`dataflow runs`", "days": [{"detail": None}], "n": 1}
    ]
    waits = {"waits": ["dataflow versions approve v"]}
    assert with_home_in(waits, ("waits",), ["x", "--home", "h"])["waits"] == [
        "dataflow versions approve --home h v"
    ]


def test_a_folder_with_a_space_is_quoted() -> None:
    assert with_home("dataflow runs", ["run", "--home", "my home"]) == "dataflow runs --home 'my home'"


def test_the_platform_tells_its_home_to_its_own_commands() -> None:
    told = with_home("`dataflow stack down` first", ["stack", "up", "--home", "h"])
    assert told == "`dataflow stack down --home h` first"


def test_every_command_that_takes_a_home_gets_one() -> None:
    root = typer.main.get_command(app)
    groups = set()
    for names in commands()[1:]:
        command = root
        for name in names:
            command = command.commands[name]  # type: ignore[attr-defined]
        if hasattr(command, "commands"):
            groups.add(" ".join(names))
            continue
        line = f"dataflow {shlex.join(names)}"
        takes = any(p.name == "home" for p in command.params)
        assert (" ".join(names) in HOMELESS) != takes
        assert with_home(line, ["stack", "up", "--home", "h"]) == (f"{line} --home h" if takes else line)
    assert groups == set(GROUPS)


def test_a_hint_that_is_followed_finds_the_same_home(
    dataflow: Dataflow, job: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    home = tmp_path / "my home"
    said = dataflow("run", job, "--home", home, "--workers", 0, "--until", "parse")
    assert said.code in (0, 4), said.err
    for told, wanted in (
        (dataflow("status", "--home", home).out, "dead-letters list"),
        (dataflow("status", "no-such-run", "--home", home).err, "runs"),
    ):
        lines = re.findall(r"dataflow (?:dead-letters )?[a-z]+ --home '[^']+'", told)
        assert [understood(line) for line in lines] == [wanted], told
        assert dataflow(*shlex.split(lines[0])[1:]).code == 0
    assert not (tmp_path / ".dataflow").exists()


def test_tables_and_json_tell_the_home_too(
    dataflow: Dataflow, job: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    home = tmp_path / "my home"
    done = dataflow("run", job, "--home", home, "--workers", 0, "--json").json
    [letters] = re.findall(r"dataflow dead-letters list.*", done["message"])
    assert dataflow(*shlex.split(letters)[1:]).code == 0
    dataset = dataflow("runs", "--home", home, "--json").json[0]["dataset"]
    assert dataflow("pause", "--dataset", dataset, "--home", home).code == 0
    table = dataflow("pauses", "--home", home).out.splitlines()
    line = table[1][table[0].index("go on with") :]
    assert line == f"dataflow resume --home '{home}' --dataset {dataset}"
    assert dataflow(*shlex.split(line)[1:], "--json").json["cleared"]
    assert dataflow("pauses", "--home", home, "--json").json == []
    assert not (tmp_path / ".dataflow").exists()


@pytest.mark.parametrize("arguments", [[], ["--home"], ["run", "job.yaml"], ["run", "--", "--home", "h"]])
def test_a_line_that_names_no_home_changes_nothing(arguments: list[str]) -> None:
    assert with_home("then: dataflow status", arguments) == "then: dataflow status"
