"""``dataflow samples`` on a small home: for people, for programs, with its exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Dataflow, Said

pytestmark = pytest.mark.xdist_group("cli")

WORDS = ("how deep is the lake", "水有多深", "ends here")


@pytest.fixture
def chat(tmp_path: Path) -> Path:
    """Three dialogues and a broken line."""
    path = tmp_path / "chat.jsonl"
    lines = [
        json.dumps(
            {"id": n, "messages": [{"role": "user", "content": word}, {"role": "assistant", "content": "ok"}]}
        )
        for n, word in enumerate(WORDS)
    ]
    path.write_text("\n".join([*lines, '{"messages": 5}']), encoding="utf-8")
    return path


@pytest.fixture
def samples(dataflow: Dataflow, tmp_path: Path) -> Dataflow:
    """``dataflow samples …`` on one home."""

    def run(*arguments: object) -> Said:
        return dataflow("samples", *arguments, "--home", tmp_path / "home")

    return run


def test_from_file_to_turns(samples: Dataflow, chat: Path, tmp_path: Path) -> None:
    said = samples("import", chat, "--dataset", "chat")
    assert said.code == 4  # a record was refused
    assert "rows: 6" in said.out
    assert f"dataflow samples letters --home {tmp_path / 'home'} --dataset chat" in said.out
    again = samples("import", chat, "--dataset", "chat")
    assert (again.code, "imported before" in again.out) == (0, True)
    (letter,) = samples("letters", "--json").json["letters"]
    assert (letter["row_identifier"], letter["error"]) == (3, "MalformedRecord")
    assert "must be an array" in samples("letters").out
    (file,) = samples("files", "--json").json["files"]
    assert (file["records"], file["rows"], file["refused"], file["status"]) == (4, 6, 1, "READY")
    assert "chat.jsonl" in samples("files").out
    first = samples("list", "--role", "user", "--limit", 2, "--json").json
    assert [turn["content"] for turn in first["turns"]] == list(WORDS[:2])
    rest = samples("list", "--role", "user", "--limit", 2, "--after", first["next"], "--json").json
    assert ([turn["content"] for turn in rest["turns"]], rest["next"]) == ([WORDS[2]], None)
    assert "水有多深" in samples("list", "--contains", "多深").out
    shown = samples("show", first["turns"][1]["id"])
    assert "水有多深" in shown.out
    assert '{"id": 1}' in shown.out
    sums = samples("stats", "--json").json
    assert (sums["turns"], sums["dialogues"], sums["by_role"]) == (6, 3, {"assistant": 3, "user": 3})
    assert "6 turns, 3 dialogues" in samples("stats").out


def test_deleting_and_restoring(samples: Dataflow, chat: Path) -> None:
    samples("import", chat, "--dataset", "chat")
    assert samples("delete").code == 2  # everything is never meant by saying nothing
    done = samples("delete", "--contains", "lake", "--json").json
    assert (done["state"], done["counts"]) == ("SUCCESS", {"dialogues": 1, "rows": 2})
    assert samples("stats", "--json").json["turns"] == 4
    (turn, _) = samples("list", "--deleted", "--json").json["turns"]
    assert samples("restore", "--record", 0, "--json").json["counts"]["rows"] == 2
    changes = samples("history", turn["id"], "--json").json["changes"]
    assert [change["kind"] for change in changes] == ["delete", "restore"]
    assert "deleted_at" in samples("history", turn["id"]).out
    assert "as it was imported" in samples("history", turn["id"] + 2).out


def test_pausing_going_on_and_cancelling(samples: Dataflow, chat: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.jsonl"
    other.write_text(chat.read_text(encoding="utf-8").replace("ok", "yes"), encoding="utf-8")
    samples("import", chat, "--dataset", "chat")
    assert samples("pause", "--dataset", "chat", "--why", "lunch").code == 0
    said = samples("import", other, "--dataset", "chat")
    assert said.code == 3
    (task, done) = samples("tasks", "--json").json["tasks"]
    assert (task["state"], done["state"], task["paused_by"] is not None) == ("PAUSED", "SUCCESS", True)
    assert "lunch" in samples("tasks").out
    held = samples("resume", task["task"])
    assert (held.code, "--dataset chat" in held.out) == (3, True)
    assert samples("resume", "--dataset", "chat", "--json").json["cleared"]
    assert samples("pause", task["task"]).code == 0
    on = samples("resume", task["task"], "--json")
    assert (on.code, on.json["state"], on.json["counts"]["rows"]) == (4, "SUCCESS", 6)
    for command in ("pause", "resume", "cancel"):
        assert samples(command, task["task"]).code == 2, command
    assert samples("pause").code == 2
    assert samples("pause", "--dataset", "none").code == 2


def test_a_cancelled_import_goes_on_when_it_is_asked_for_again(samples: Dataflow, chat: Path) -> None:
    samples("import", chat, "--dataset", "first")
    samples("pause", "--all")
    assert samples("import", chat, "--dataset", "chat").code == 3
    (task,) = samples("tasks", "--dataset", "chat", "--json").json["tasks"]
    assert samples("cancel", task["task"], "--json").json["state"] == "CANCELLED"
    samples("resume", "--all")
    assert samples("import", chat, "--dataset", "chat", "--json").json["counts"]["rows"] == 6
    assert (samples("stats").code, samples("stats", "--dataset", "chat").code) == (2, 0)


def test_what_is_not_there(samples: Dataflow, chat: Path, tmp_path: Path) -> None:
    assert samples("import", tmp_path / "none.jsonl", "--dataset", "chat").code == 1
    assert samples("import", chat, "--dataset", "chat", "--format", "alpaca").code == 2
    assert samples("stats").code == 2
    samples("import", chat, "--dataset", "chat")
    for asked in (("show", 99), ("history", 99), ("list", "--file", "x"), ("list", "--status", "gone")):
        said = samples(*asked)
        assert (said.code, said.err[:6]) == (2, "error:"), asked
    assert samples("resume", "none").code == 1
