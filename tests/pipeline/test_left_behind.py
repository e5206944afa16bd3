"""What a version lacks is told, and the next day brings it: days overtaken, and letters put back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dataflow_ops.job_file import load_job
from dataflow_ops.layers.mix.label import LabelStep
from dataflow_ops.layers.parse.step import ParseStep
from dataflow_ops.pipeline.bundles import finish_run, run_bundle, start_run
from dataflow_ops.pipeline.flow import STEPS
from dataflow_ops.pipeline.home import open_home
from dataflow_ops.pipeline.letters import change_letters, list_letters
from dataflow_ops.pipeline.run import resume_run
from dataflow_ops.pipeline.session import create_run
from dataflow_ops.pipeline.versions import VersionBook
from tests.pipeline.growing import TEXTS, Growing
from tests.pipeline.inside import At, Notes

pytestmark = pytest.mark.xdist_group("left_behind")


def corpus(root: Path, dated: bool) -> Growing:
    """Two days' files, in folders by day or all in one; a full version of them."""
    made = Growing(root)
    if dated:
        job = made.job.read_text(encoding="utf-8")
        made.job.write_text(job.replace(f"{root}/docs,", f"'{root}/docs/{{date}}',"), encoding="utf-8")
    for day in (1, 2):
        for i in range(3):
            put(made, day, f"d{day}{i}.md", TEXTS[10 * day + i])
    assert made.run(date="2026-11-02").current
    return made


def put(made: Growing, day: int, name: str, text: str) -> None:
    folder = f"2026-11-{day:02}"
    (made.root / "docs" / folder).mkdir(parents=True, exist_ok=True)
    made.put(f"{folder}/{name}", text)


def current(made: Growing) -> str:
    with made.state() as state:
        found = state.current("grows")
    assert found is not None
    return found.version_id


def overtaken(made: Growing) -> tuple[Any, str]:
    """A full run in whose last moments day three is published; how it ended, and the day's version."""
    days: list[str] = []

    def meanwhile() -> None:
        if not days:
            put(made, 3, "d30.md", TEXTS[30])
            put(made, 3, "d31.md", TEXTS[31])
            days.append(made.day(3).version_id)

    put(made, 2, "d29.md", TEXTS[29])
    done = made.run(date="2026-11-03", hooks=At("before publish publish", meanwhile))
    return done, days[0]


@pytest.mark.parametrize("dated", [False, True])
def test_a_full_version_that_lacks_a_published_day_waits_and_the_next_day_brings_it(
    tmp_path: Path, dated: bool
) -> None:
    made = corpus(tmp_path, dated)
    done, day = overtaken(made)
    assert (done.state, done.current) == ("AWAITING_APPROVAL", False)
    (why,) = done.facts["waits"]
    assert f"2 file(s) of 2026-11-03 were published as {day} while it was made" in why
    assert current(made) == day
    with VersionBook(open_home(made.home, create=False)) as book:
        assert book.approve(done.version_id) == done.version_id
        assert book.lacking(done.version_id) == ["2 file(s) of 2026-11-03"]
    assert "2026-11-03/d30.md" not in made.kept(done.version_id)
    put(made, 4, "d40.md", TEXTS[40])
    notes = Notes()
    four = made.day(4, notes=notes)
    assert four.facts["base"] == done.version_id
    assert {f"2026-11-0{d}/d{d}0.md" for d in (1, 2, 3, 4)} < made.kept(four.version_id)
    assert dated == any("2 file(s) of 2026-11-03 are taken, too" in note for note in notes.notes)
    five = made.day(5)
    assert made.kept(five.version_id) == made.kept(four.version_id)
    ids = made.exported_ids(five.version_id)
    assert len(ids) == len(set(ids)) == 3 + 4 + 2 + 1
    made.verify(five.version_id)


@pytest.mark.parametrize("dated", [False, True])
def test_what_a_version_lacks_is_known_after_going_back_and_forward(tmp_path: Path, dated: bool) -> None:
    made = corpus(tmp_path, dated)
    first = current(made)
    done, _ = overtaken(made)
    with VersionBook(open_home(made.home, create=False)) as book:
        book.approve(done.version_id)
        book.rollback(first)
        book.rollback(done.version_id)
        assert book.lacking(done.version_id) == ["2 file(s) of 2026-11-03"]
    four = made.day(4)
    assert "2026-11-03/d30.md" in made.kept(four.version_id)


def test_of_two_full_runs_the_later_one_to_end_misses_what_the_other_had(tmp_path: Path) -> None:
    made = corpus(tmp_path, dated=True)
    inner: list[Any] = []

    def meanwhile() -> None:
        if not inner:
            inner.append(None)
            put(made, 3, "d30.md", TEXTS[30])
            settings = load_job(made.job)
            name = create_run(open_home(made.home), settings, "full", run_id="inner", data_date="2026-11-03")
            inner[0] = resume_run(made.home, name, 0, Notes())

    done = made.run(date="2026-11-02", hooks=At("before publish publish", meanwhile))
    assert inner[0].current
    assert (done.state, done.current) == ("AWAITING_APPROVAL", False), done.message
    assert "1 file(s) of 2026-11-03" in done.facts["waits"][0]


def test_a_file_that_another_day_failed_to_read_comes_when_put_back_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = corpus(tmp_path, dated=True)
    lenient = ("run.max_dead_share=1.0", "run.max_attempts=1")
    put(made, 3, "d30.md", TEXTS[30])
    read = ParseStep.run

    def fails(self: ParseStep, side: Any, start: int) -> Any:
        raise ValueError("poison")

    monkeypatch.setattr(ParseStep, "run", fails)
    for day in (3, 4):
        made.day(day, set=lenient, promote=True)
        assert change_letters(made.home, "retry", [], None, every=True) >= 1
    monkeypatch.setattr(ParseStep, "run", read)
    assert "2026-11-03/d30.md" in made.kept(made.day(5, set=lenient).version_id)


def test_an_approval_stands_though_nobody_knows_any_more_what_the_version_lacks(tmp_path: Path) -> None:
    made = corpus(tmp_path, dated=False)
    done, _ = overtaken(made)
    with made.state() as state:
        run = next(v.run_id for v in state.versions("grows") if v.version_id == done.version_id)
        files = state.outputs_of_step(run, "discover", "files")["all"]
    (made.home / files.uri).unlink()
    with VersionBook(open_home(made.home, create=False)) as book:
        assert book.approve(done.version_id) == done.version_id
        (told,) = book.lacking(done.version_id)
    assert "is gone" in told
    assert current(made) == done.version_id


def test_a_full_version_waits_for_no_day_that_brought_nothing_or_was_there_before(tmp_path: Path) -> None:
    made = corpus(tmp_path, dated=True)
    put(made, 3, "d30.md", TEXTS[30])
    assert made.day(3).current
    # It is gone before the full run begins, and no day brings anything while that goes on.
    (made.root / "docs/2026-11-03/d30.md").unlink()
    empty: list[str] = []

    def meanwhile() -> None:
        if not empty:
            empty.append(made.day(4).version_id)

    done = made.run(date="2026-11-04", hooks=At("before publish publish", meanwhile))
    assert done.current, done.message
    assert empty


def test_a_source_left_out_on_purpose_is_not_missed(tmp_path: Path) -> None:
    made = corpus(tmp_path, dated=False)
    other = tmp_path / "other"
    other.mkdir()
    (other / "o.md").write_text(TEXTS[45], encoding="utf-8")
    whole = made.job.read_text(encoding="utf-8")

    def meanwhile() -> None:
        source = f"  - {{source_id: more, kind: files, path: {other}, domain: web}}\ningest"
        made.job.write_text(whole.replace("ingest", source), encoding="utf-8")
        assert made.day(3).current

    done = made.run(date="2026-11-03", hooks=At("before publish publish", meanwhile))
    assert done.current, done.message


@pytest.mark.parametrize("dated", [False, True])
def test_a_chunk_that_was_given_up_and_put_back_comes_with_the_next_day(
    tmp_path: Path, dated: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = corpus(tmp_path, dated)
    lenient = ("run.max_dead_share=1.0", "run.max_attempts=1")
    put(made, 3, "d30.md", TEXTS[30])
    read = ParseStep.run

    def fails(self: ParseStep, side: Any, start: int) -> Any:
        raise ValueError("poison")

    monkeypatch.setattr(ParseStep, "run", fails)
    three = made.day(3, set=lenient, promote=True)
    assert (three.state, three.current) == ("SUCCEEDED_WITH_DEAD", True)
    monkeypatch.setattr(ParseStep, "run", read)
    put(made, 4, "d40.md", TEXTS[40])
    assert made.day(4, set=lenient).current
    counts, letters = list_letters(made.home, None, 10)
    assert sum(counts.values()) == 1, "another day has not looked at it"
    assert change_letters(made.home, "retry", [letters[0]["id"]], None, every=False) == 1
    five = made.day(5, set=lenient)
    assert {"2026-11-03/d30.md", "2026-11-04/d40.md"} < made.kept(five.version_id)
    notes = Notes()
    six = made.day(6, set=lenient, notes=notes)
    assert made.kept(six.version_id) == made.kept(five.version_id)
    assert "parse" not in notes.ran(), "once is enough"


def test_documents_of_a_chunk_that_was_given_up_late_are_nobody_s_survivors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = corpus(tmp_path, dated=False)
    lenient = ("run.max_dead_share=1.0", "run.max_attempts=1")
    put(made, 3, "d30.md", TEXTS[30])
    label = LabelStep.open

    def fails(self: LabelStep, side: Any) -> Any:
        raise ValueError("poison")

    monkeypatch.setattr(LabelStep, "open", fails)
    assert made.day(3, set=lenient, promote=True).state == "SUCCEEDED_WITH_DEAD"
    monkeypatch.setattr(LabelStep, "open", label)
    put(made, 4, "says-the-same.md", TEXTS[30])
    put(made, 4, "copy-of-old.md", TEXTS[10])
    four = made.day(4, set=lenient)
    fates = made.fates(four.version_id)
    assert fates["2026-11-04/says-the-same.md"][0] == "exported"
    assert fates["2026-11-04/copy-of-old.md"][0] == "duplicate"


def test_a_letter_stays_open_until_its_file_is_read_again(tmp_path: Path) -> None:
    made = corpus(tmp_path, dated=False)
    lenient = ("run.max_dead_share=1.0",)
    broken = made.root / "docs" / "bad.pdf"
    broken.write_bytes(b"%PDF-1.4 nothing more")
    assert made.day(3, set=lenient, promote=True).state == "SUCCEEDED_WITH_DEAD"
    put(made, 4, "d40.md", TEXTS[40])
    assert made.day(4, set=lenient, promote=True).state == "SUCCEEDED"
    counts, _ = list_letters(made.home, None, 10)
    assert sum(counts.values()) == 1
    # As it is it fails again: one letter, of the newer run.
    assert change_letters(made.home, "retry", [], None, every=True) == 1
    assert made.day(5, set=lenient, promote=True).state == "SUCCEEDED_WITH_DEAD"
    counts, _ = list_letters(made.home, None, 10)
    assert sum(counts.values()) == 1
    broken.unlink()
    (made.root / "docs" / "bad.pdf").write_bytes(b"%PDF-1.4 nothing more, but otherwise")
    made.day(6, set=lenient, promote=True)
    counts, _ = list_letters(made.home, None, 10)
    assert sum(counts.values()) == 1, "the older one was read anew"


QUIET: dict[str, Any] = {"log": lambda _: None}


def bundles(made: Growing, first: str, last: str) -> None:
    """Run some steps of the day's run as an orchestrator does."""
    names = [name for name, _, _ in STEPS]
    for step in names[names.index(first) : names.index(last) + 1]:
        run_bundle(made.home, step, {"run_id": "r", "until": None, "index": 0, "of": 1}, 0, **QUIET)


@pytest.mark.parametrize("rejected", [False, True])
def test_a_day_that_was_overtaken_and_is_cleared_builds_on_what_is_current(
    tmp_path: Path, rejected: bool
) -> None:
    made = corpus(tmp_path, dated=False)
    put(made, 3, "d30.md", TEXTS[30])
    begin = {"mode": "incremental", "run_id": "r", "data_date": "2026-11-03"}
    start_run(made.job, made.home, **begin, **QUIET)
    bundles(made, "fetch", "confirm")
    put(made, 2, "d29.md", TEXTS[29])
    (made.root / "docs/2026-11-03/d30.md").rename(tmp_path / "aside")
    full = made.run(date="2026-11-03")
    assert full.current
    (tmp_path / "aside").rename(made.root / "docs/2026-11-03/d30.md")
    bundles(made, "score", "export")
    done = finish_run(made.home, "r", None, promote=True, **QUIET)
    assert (done["state"], done["current"]) == ("AWAITING_APPROVAL", False)
    assert "clear task 'start'" in done["waits"][0]
    if rejected:
        with VersionBook(open_home(made.home, create=False)) as book:
            book.reject(done["version"])
    start_run(made.job, made.home, **begin, **QUIET)
    bundles(made, "fetch", "export")
    again = finish_run(made.home, "r", None, promote=True, **QUIET)
    assert (again["state"], again["current"], again["base"]) == ("SUCCEEDED", True, full.version_id)
    assert {"2026-11-03/d30.md", "2026-11-02/d29.md"} < made.kept(again["version"])
    with made.state() as state:
        states = {v.version_id: v.state for v in state.versions("grows")}
    assert states[done["version"]] == "REJECTED"


def test_a_run_whose_version_is_published_keeps_its_parent(tmp_path: Path) -> None:
    made = corpus(tmp_path, dated=False)
    put(made, 3, "d30.md", TEXTS[30])
    begin = {"mode": "incremental", "run_id": "r", "data_date": "2026-11-03"}
    start_run(made.job, made.home, **begin, **QUIET)
    bundles(made, "fetch", "export")
    done = finish_run(made.home, "r", None, promote=True, **QUIET)
    assert done["current"]
    full = made.run(date="2026-11-04")
    start_run(made.job, made.home, **begin, **QUIET)
    bundles(made, "fetch", "export")
    again = finish_run(made.home, "r", None, promote=True, **QUIET)
    assert (again["version"], again["current"]) == (done["version"], False)
    assert current(made) == full.version_id
