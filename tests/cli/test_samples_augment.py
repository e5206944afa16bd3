"""``dataflow samples augment``, ``template check`` and ``failures``, against a real endpoint."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from dataflow_ops.state.samples.store import SampleStore
from tests.cli.conftest import Dataflow
from tests.samples.augment.augment_case import RAW, put_samples
from tests.samples.augment.model_server import ModelServer, model_server

pytestmark = pytest.mark.xdist_group("cli")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    home = tmp_path / "home"
    home.mkdir()
    with SampleStore(f"sqlite:///{home / 'state.db'}") as store:
        put_samples(store, 20)
    return home


def template(home: Path, server: ModelServer, **changes: Any) -> Path:
    path = home / "template.yaml"
    raw = {**RAW, "endpoint": {"base_url": server.url, "back_off_s": 0.01, "tries": 2}, **changes}
    path.write_text(yaml.safe_dump(raw), encoding="utf-8")
    return path


def some_fail(key: str, nth: int) -> str:
    return "empty" if int(key, 16) % 4 == 0 else "answer"


def test_a_task_and_its_failures(dataflow: Dataflow, home: Path) -> None:
    with model_server(some_fail) as server:
        asked = ("samples", "augment", "--template", template(home, server), "--dataset", "chat")
        said = dataflow(*asked, "--home", home, "--json")
        assert said.code == 4, said.err
        assert said.json["state"] == "SUCCESS"
        assert said.json["counts"]["answered"] + said.json["waiting"] == said.json["total"] == 20
        waiting = said.json["waiting"]
        assert waiting > 2

        listed = dataflow("samples", "failures", "list", "--home", home, "--json").json
        assert (listed["total"], len(listed["failures"]), listed["next"]) == (waiting, waiting, None)
        assert listed["groups"] == [{"state": "OPEN", "error": "EmptyAnswer", "failures": waiting}]
        page = dataflow("samples", "failures", "list", "--limit", 1, "--home", home, "--json").json
        rest = dataflow("samples", "failures", "list", "--after", page["next"], "--home", home, "--json").json
        assert page["failures"] + rest["failures"] == listed["failures"]

        key = listed["failures"][0]["key"]
        shown = dataflow("samples", "failures", "show", key[:12], "--home", home)
        assert "Improve this answer:" in shown.out
        assert '"content": ""' in shown.out
        messages = home / "m.yaml"
        messages.write_text("- {role: user, content: 更好地回答}", encoding="utf-8")
        edited = dataflow(
            "samples", "failures", "edit", key[:12], "--messages", messages, "--home", home, "--json"
        )
        assert edited.json == {"key": key, "edited": True}
        assert "更好地回答" in dataflow("samples", "failures", "show", key, "--home", home).out
        back = dataflow("samples", "failures", "requeue", key[:12], "--home", home)
        assert back.out.startswith("1 failure put back; the same `dataflow samples augment --home")
        server.script = lambda key, nth: "answer"
        before = len(server.calls)
        again = dataflow(*asked, "--home", home)
        assert again.code == 4
        assert [call.body["messages"] for call in server.calls[before:]] == [
            [{"role": "user", "content": "更好地回答"}]
        ]
        dropped = dataflow("samples", "failures", "drop", "--error", "EmptyAnswer", "--home", home, "--json")
        assert dropped.json["failures"] == waiting - 1
        done = dataflow(*asked, "--home", home)
        assert done.code == 0, done.out
        assert f"{waiting - 1} given up" in done.out
        assert len(server.calls) == before + 1


def test_what_failures_are_meant_must_be_said(dataflow: Dataflow, home: Path) -> None:
    for word in ("requeue", "drop"):
        said = dataflow("samples", "failures", word, "--home", home)
        assert (said.code, "--all" in said.err) == (2, True)
    assert dataflow("samples", "failures", "list", "--home", home).out.startswith("No failures")
    said = dataflow("samples", "failures", "show", "abc", "--home", home)
    assert (said.code, "no failure has a key that begins with 'abc'" in said.err) == (1, True)


def test_exit_codes(dataflow: Dataflow, home: Path) -> None:
    with model_server(lambda key, nth: "broken") as server:
        asked = (
            "samples",
            "augment",
            "--template",
            template(home, server),
            "--dataset",
            "chat",
            "--home",
            home,
        )
        said = dataflow(*asked)
        assert (said.code, "no answer in a batch" in said.out) == (1, True)
        said = dataflow(*asked, "--budget-tokens", 100)
        assert (said.code, "raise --budget-tokens" in said.out) == (3, True)
        with SampleStore(f"sqlite:///{home / 'state.db'}") as store:
            store.set_pause("dataset", "chat", "ann", "lunch")
        said = dataflow(*asked)
        assert (said.code, "paused by ann" in said.out) == (3, True)
    assert dataflow(*asked[:-3], "nothing", "--home", home).code == 2


def test_the_key_is_in_no_file_and_no_output(
    dataflow: Dataflow, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_MODEL_KEY", "sk-very-secret-7")
    with model_server(api_key="another") as server:
        file = template(home, server)
        asked = ("samples", "augment", "--template", file, "--dataset", "chat", "--home", home)
        said = dataflow(*asked, "--api-key-env", "MY_MODEL_KEY")
        assert (said.code, "401" in said.out) == (1, True)
        listed = dataflow("samples", "failures", "list", "--all", "--home", home, "--json").json["failures"]
        shown = dataflow("samples", "failures", "show", listed[0]["key"], "--home", home)
        assert "***" in shown.out
        assert server.calls[0].headers["Authorization"] == "Bearer sk-very-secret-7"
    assert "sk-very-secret-7" not in said.out + said.err + shown.out
    assert all(b"sk-very-secret-7" not in path.read_bytes() for path in home.iterdir())
    monkeypatch.delenv("MY_MODEL_KEY")
    assert dataflow(*asked, "--api-key-env", "MY_MODEL_KEY").code == 2


def test_a_template_is_checked_and_shown(dataflow: Dataflow, home: Path) -> None:
    with model_server() as server:
        file = template(home, server)
        said = dataflow("samples", "template", "check", file)
        assert said.code == 0
        assert "asks test-model about each turn of assistant" in said.out
        assert "user: What is the capital of France?" in said.out
        found = dataflow(
            "samples", "template", "check", file, "--dataset", "chat", "--home", home, "--json"
        ).json
        assert found["preview"]["sample_id"] == 2
        assert "question 0 问 of f1" in found["preview"]["body"]["messages"][1]["content"]
        assert server.calls == []
        wrong = template(home, server, kind="poem")
    said = dataflow("samples", "template", "check", wrong)
    assert (said.code, "kind: " in said.err) == (2, True)


@pytest.mark.parametrize("word", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_as_a_pause_with_nothing_lost(home: Path, word: signal.Signals) -> None:
    with model_server(delay_s=0.3) as server:
        file = template(home, server, limits={"concurrency": 3})
        command = [
            sys.executable,
            "-m",
            "dataflow_ops.cli.main",
            "samples",
            "augment",
            "--template",
            str(file),
        ]
        command += ["--dataset", "chat", "--home", str(home)]
        env = {k: v for k, v in os.environ.items() if not k.startswith("DATAFLOW_")}
        env["PYTHONPATH"] = os.pathsep.join(sys.path)
        process = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        while len(server.calls) < 3:
            time.sleep(0.01)
            assert process.poll() is None
        process.send_signal(word)
        out, err = process.communicate(timeout=60)
        assert process.returncode == 3, err
        assert b"paused, interrupted" in out
        with SampleStore(f"sqlite:///{home / 'state.db'}") as store:
            (task,) = store.sample_tasks()
            assert (task.state, task.error_message, task.attempt) == ("PAUSED", "interrupted", 1)
            assert task.counts["answered"] == len(server.calls) < 20
        done = subprocess.run([*command, "--json"], env=env, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["counts"]["answered"] == 20
    assert len(server.calls) == len({call.key for call in server.calls}) == 20
