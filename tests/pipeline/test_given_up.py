"""What fails for good: a chunk is given up and the run goes on; a reduce stops it. Both can be put back."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dataflow_ops.cli.app import app
from dataflow_ops.job_file import load_job
from dataflow_ops.pipeline.finish import Finished
from dataflow_ops.pipeline.home import open_home
from dataflow_ops.pipeline.letters import change_letters, list_letters
from dataflow_ops.pipeline.run import run_job
from dataflow_ops.pipeline.tally import RunFailed
from dataflow_ops.state.store import StateStore
from tests.pipeline import by_day, inside, trouble
from tests.pipeline.inside import published


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return inside.sources(tmp_path_factory.mktemp("dead") / "in", files=9, run="max_attempts: 2")


@pytest.fixture(scope="module")
def wanted(job: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    home = tmp_path_factory.mktemp("reference")
    inside.run(job, home)
    return published(home)


def state_of(home: Path) -> StateStore:
    return StateStore(open_home(home).state_url)


@pytest.mark.crash
def test_a_chunk_that_kills_its_worker_every_time(job: Path, wanted: dict[str, str], tmp_path: Path) -> None:
    home = tmp_path / "home"
    inside.run(job, home, until="parse")
    state = state_of(home)
    chunk = sorted(r.partition for r in state.records_of_step(state.list_runs()[0].run_id, "parse").values())[
        1
    ]
    notes = inside.Notes()
    poison = trouble.Poison("before publish filter", chunk)
    ended = inside.run(job, home, notes, workers=1, hooks=poison)
    assert ended.state == "AWAITING_APPROVAL"  # far more than 0.1 % of the records are gone
    assert not ended.current
    assert notes.reports["filter"].dead == [chunk]
    assert chunk not in {o.spec.partition for o in notes.endings if o.spec.step == "sign"}
    counts, letters = list_letters(home, None, 10)
    assert counts == {"WorkerDied": 1}
    assert (letters[0]["level"], letters[0]["step"], letters[0]["path"]) == ("chunk", "filter", chunk)
    manifest = json.loads((home / ended.manifest_uri).read_text())
    assert any(chunk in note for note in manifest["notes"])
    assert state.current("tiny") is None
    before = published(home)

    assert change_letters(home, "retry", [], None, every=True) == 1
    assert inside.run(job, home).state == "SUCCEEDED"
    after = published(home)
    assert {k: v for k, v in after.items() if k in wanted} == wanted
    assert before.items() <= after.items(), "the version with the gap was changed"


def test_a_fault_in_a_reduce(job: Path, wanted: dict[str, str], tmp_path: Path) -> None:
    home = tmp_path / "home"
    with pytest.raises(RunFailed, match="dead-letters retry"):
        inside.run(job, home, hooks=trouble.Fail("before publish unite"))
    state = state_of(home)
    run = state.list_runs()[0]
    assert run.state == "FAILED"
    [unite] = state.records_of_step(run.run_id, "unite").values()
    assert (unite.state, unite.attempt, unite.error_type) == ("DEAD", 2, "ZeroDivisionError")
    assert "trouble.py" in (unite.error_trace or "")
    result = CliRunner().invoke(app, ["run", str(job), "--home", str(home), "--workers", "0"])
    assert isinstance(result.exception, RunFailed)
    assert change_letters(home, "retry", [], None, every=True) == 1
    notes = inside.Notes()
    assert inside.run(job, home, notes).state == "SUCCEEDED"
    assert notes.ran()["unite"] == 1
    assert "parse" not in notes.ran()
    assert published(home) == wanted


def test_document_letters_put_back_are_a_key_of_their_own(tmp_path: Path) -> None:
    """The published version stays; the next run plans the chunk under a new key (docs/adr/0008)."""
    job = inside.sources(tmp_path / "in", files=3, run="max_attempts: 1, max_dead_share: 0.5")
    with open(job.parent / "rows" / "rows.jsonl", "a", encoding="utf-8") as file:
        file.write('{"id": "broken", "text": \n')
    home = tmp_path / "home"
    first = inside.run(job, home)
    assert first.state == "SUCCEEDED_WITH_DEAD"
    before = published(home)
    state = state_of(home)
    keys = set(state.records_of_step(first.run_id, "parse"))
    assert change_letters(home, "retry", [], None, every=True) == 1
    notes = inside.Notes()
    second = inside.run(job, home, notes)
    new = set(state.records_of_step(second.run_id, "parse")) - keys
    assert len(new) == 1
    assert notes.ran() == {"parse": 1}, "equal bytes were processed again"
    assert published(home) == before
    assert second.version_id == first.version_id


def test_what_was_dropped_after_a_day_stays_dropped_in_the_next_full_run(tmp_path: Path) -> None:
    """The full run reads the file in another chunk, as it cuts the files of all days at once."""
    job = by_day.build(tmp_path / "in")
    job.write_text(job.read_text().replace("max_attempts: 3", "max_attempts: 3, max_dead_share: 0.5"))
    day = by_day.DAYS[1]
    (job.parent / "notes" / day / "broken.pdf").write_bytes(b"%PDF-1.4\nnothing of it\n")
    home = tmp_path / "home"

    def run(mode: str, date: str) -> Finished:
        return run_job(load_job(job), home, workers=0, mode=mode, data_date=date, reporter=inside.Notes())

    def letters() -> list[tuple[str, str, str]]:
        """Partition, path and state of each letter."""
        with state_of(home) as state:
            found = state.dead_letters(state=None)
            tasks = state.records([d.task_key for d in found])
            return sorted((tasks[d.task_key].partition, d.letter.path, d.state) for d in found)

    run("incremental", by_day.DAYS[0])
    assert run("incremental", day).state == "SUCCEEDED_WITH_DEAD"
    assert change_letters(home, "drop", [], None, every=True) == 1
    run("full", by_day.DAYS[2])
    of_day, of_full = letters()
    assert of_day[0] != of_full[0], "both runs cut the files alike: nothing is shown"
    assert {path for _, path, _ in (of_day, of_full)} == {f"{day}/broken.pdf"}
    assert {state for _, _, state in (of_day, of_full)} == {"dropped"}
    assert list_letters(home, None, 10) == ({}, [])
