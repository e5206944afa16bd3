from __future__ import annotations

import json
from pathlib import Path

import pytest

from dataflow_ops.pipeline.home import open_home
from dataflow_ops.samples import running
from dataflow_ops.samples.importing import ImportStep, plan_import
from dataflow_ops.samples.running import run_task
from dataflow_ops.state.samples.store import SampleStore
from tests.cli.conftest import Dataflow

DIALOGUES = Path(__file__).parents[1] / "cases" / "data" / "dialogue" / "messages.jsonl"


@pytest.fixture
def samples(tmp_path: Path) -> Path:
    """A home with the dialogues of the cases."""
    home = tmp_path / "home"
    with SampleStore(open_home(home).state_url) as store:
        wanted = plan_import(store, "chat", [str(DIALOGUES)], "ann")
        run_task(store, str(wanted.task_id), ImportStep(store))
    return home


def test_clean_then_export(dataflow: Dataflow, samples: Path) -> None:
    rows = sum(1 for line in DIALOGUES.read_text().splitlines() if line)
    told = dataflow("samples", "clean", "--dataset", "chat", "--home", str(samples), "--json")
    cleaned = json.loads(told.out)
    assert (told.code, cleaned["state"], cleaned["counts"]["dialogues"]) == (0, "SUCCESS", rows)
    told = dataflow(
        "samples", "export", "--dataset", "chat", "--home", str(samples), "--set", "compression=gz"
    )
    assert told.code == 0
    kept = int(cleaned["counts"].get("kept", 0))
    assert f"records {kept:,}" in told.out
    [folder] = (samples / "exports" / "chat").iterdir()
    assert {p.name for p in folder.iterdir()} == {"part-00000.jsonl.gz", "manifest.json", "SHA256SUMS"}
    again = dataflow(
        "samples", "export", "--dataset", "chat", "--home", str(samples), "--set", "compression=gz"
    )
    assert "is done" in again.out


def test_an_export_of_nothing_says_what_to_do(dataflow: Dataflow, samples: Path) -> None:
    told = dataflow("samples", "export", "--dataset", "chat", "--home", str(samples))
    assert told.code == 0
    assert "dataflow samples clean" in told.out


def test_a_pause_ends_with_its_own_code(dataflow: Dataflow, samples: Path) -> None:
    with SampleStore(open_home(samples).state_url) as store:
        store.set_pause("dataset", "chat", "ann")
    told = dataflow("samples", "clean", "--dataset", "chat", "--home", str(samples))
    assert (told.code, "paused" in told.out) == (3, True)
    with SampleStore(open_home(samples).state_url) as store:
        store.clear_pause("dataset", "chat", "ann")
    assert dataflow("samples", "clean", "--dataset", "chat", "--home", str(samples)).code == 0


@pytest.mark.parametrize("command", ["clean", "export", "delete", "restore", "import", "resume"])
def test_an_interruption_is_told_to_programs_too(
    dataflow: Dataflow, samples: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    of = ("--dataset", "chat")
    other = samples.parent / "other.jsonl"
    other.write_text(DIALOGUES.read_text(encoding="utf-8") + "\n", encoding="utf-8")
    with SampleStore(open_home(samples).state_url) as store:
        waiting = plan_import(store, "later", [str(other)], "ann").task_id
    more = {"import": (other, *of), "resume": (waiting,)}.get(command, of)
    chosen = ("--record", 0) if command in ("delete", "restore") else ()

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(running, "run_task", interrupted)
    said = dataflow("samples", command, *more, *chosen, "--home", samples, "--json")
    assert (said.code, said.json["state"]) == (130, "INTERRUPTED")


def test_answers_that_are_not_there_leave_no_task(dataflow: Dataflow, samples: Path) -> None:
    command = ("samples", "export", "--dataset", "chat", "--home", str(samples), "--task", "mine")
    told = dataflow(*command, "--set", "answers_of=[nothing]")
    assert told.code == 1
    assert "no sample task nothing" in told.err
    assert dataflow(*command).code == 0


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        (["--set", "dedup.nearr=1"], "did you mean near"),
        (["--set", "clean.language.keep=[en]"], "the language of samples is not told"),
        (["--file", "zz"], "names no file"),
        (["--settings", "nowhere.yaml"], "can't be read"),
    ],
)
def test_wrong_settings_say_what_is_allowed(
    dataflow: Dataflow, samples: Path, given: list[str], wanted: str
) -> None:
    told = dataflow("samples", "clean", "--dataset", "chat", "--home", str(samples), *given)
    assert told.code == 2
    assert wanted in told.err
