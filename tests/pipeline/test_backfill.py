"""Backfills in this process on a small real corpus: plans, endings, failures, pause and cancel."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from dataflow_ops.errors import ConfigError, StateError
from dataflow_ops.job_file import load_job
from dataflow_ops.pipeline.backfill_control import BackfillBook
from dataflow_ops.pipeline.backfill_drive import drive
from dataflow_ops.pipeline.backfill_plan import Request, dry_run, plan_day, request_of
from dataflow_ops.pipeline.run import run_job
from dataflow_ops.state.backfills import BackfillRecord, DayRun
from tests.pipeline.by_day import DAYS, build
from tests.pipeline.inside import Notes, published, sources


@dataclass
class Heard:
    """A watch that remembers, and may act when a day begins."""

    on_day: Callable[[str], None] | None = None
    ended: list[tuple[str, str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def begins(self, record: BackfillRecord, days: int, done: int, where: str) -> None:
        self.first = (days, done, where)

    def day_begins(self, day: str, why: str) -> None:
        if self.on_day is not None:
            self.on_day(day)

    def day_ended(self, day: str, state: str, detail: str) -> None:
        self.ended.append((day, state))

    def note(self, message: str) -> None:
        self.notes.append(message)


def asked(job: Path, first: str = DAYS[0], last: str = DAYS[-1], **more: object) -> Request:
    return request_of(job, first, last, **more)  # type: ignore[arg-type]


def go(home: Path, request: Request, heard: Heard | None = None, parallel: int = 1) -> BackfillRecord | None:
    """Begin or take up, and drive to the end."""
    heard = heard or Heard()
    with BackfillBook(home, create=True) as book:
        record, _ = book.begin(request, "ann")
        if record is None:
            return None
        return drive(book, request, record, None, heard, lambda _: Notes(), 0, parallel)


def states(home: Path, record: BackfillRecord | None) -> list[str]:
    assert record is not None
    with BackfillBook(home) as book:
        return [d.state for d in book.state.backfill_days(record.backfill_id)]


def runs(home: Path) -> dict[str, list[DayRun]]:
    with BackfillBook(home) as book:
        return book.state.day_runs("daily", "2000-01-01", "2100-01-01")


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("days") / "in")


@pytest.fixture(scope="module")
def by_hand(job: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What three incremental runs, one after the other, publish."""
    home = tmp_path_factory.mktemp("by-hand") / "home"
    for day in DAYS:
        run_job(load_job(job), home, mode="incremental", data_date=day, workers=0, reporter=Notes())
    return published(home)


# To the end


@pytest.mark.parametrize("parallel", [1, 3])
def test_a_backfill_makes_what_single_runs_make(
    job: Path, by_hand: dict[str, str], tmp_path: Path, parallel: int
) -> None:
    heard = Heard()
    record = go(tmp_path / "home", asked(job), heard, parallel)
    assert record is not None
    assert record.state == "DONE"
    assert heard.first == (3, 0, "in this process")
    assert sorted(heard.ended) == [(day, "DONE") for day in DAYS]
    if parallel == 1:
        assert [day for day, _ in heard.ended] == list(DAYS)
    assert published(tmp_path / "home") == by_hand
    with BackfillBook(tmp_path / "home") as book:
        created = {v.version_id[14:24]: v.created_at for v in book.state.versions("daily")}
    assert sorted(created, key=lambda day: created[day]) == list(DAYS), "published in order"
    assert go(tmp_path / "home", asked(job)) is None, "there is nothing left to do"


def test_days_that_are_done_are_left_alone(job: Path, by_hand: dict[str, str], tmp_path: Path) -> None:
    home = tmp_path / "home"
    run_job(load_job(job), home, mode="incremental", data_date=DAYS[1], workers=0, reporter=Notes())
    heard = Heard()
    assert states(home, go(home, asked(job), heard)) == ["DONE", "DONE"]
    assert [day for day, _ in heard.ended] == [DAYS[0], DAYS[2]]
    assert published(home) == by_hand


def test_all_does_every_day_again_with_the_settings_given(job: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    go(home, asked(job))
    changed = ["clean.boilerplate_filter.min_text_len=2500"]
    record = go(home, asked(job, reprocess="all", overrides=changed))
    assert states(home, record) == ["DONE"] * 3
    for found in runs(home).values():
        assert [r.state for r in found] == ["SUCCEEDED"] * 2
        with BackfillBook(home) as book:
            new, old = (book.state.get_run(r.run_id) for r in found)
        assert new is not None
        assert old is not None
        assert '"min_text_len":2500' in new.settings
        assert '"min_text_len":120' in old.settings
        assert (new.promote, old.promote) == (False, True)


def test_until_stops_each_day_and_a_later_backfill_goes_further(
    job: Path, by_hand: dict[str, str], tmp_path: Path
) -> None:
    home = tmp_path / "home"
    assert states(home, go(home, asked(job, until="filter"))) == ["DONE"] * 3
    assert not (home / "versions").exists()
    assert go(home, asked(job, until="parse")) is None, "done as far as that already"
    assert states(home, go(home, asked(job))) == ["DONE"] * 3
    assert published(home) == by_hand


# Failures


def shortage(job: Path, home_in: Path) -> tuple[Path, list[str]]:
    """A job whose second day has no documents, and settings under which such a day fails."""
    copy = build(home_in)
    for path in (home_in / "notes" / DAYS[1]).iterdir():
        path.unlink()
    return copy, ["mixing.target_tokens=1000", "mixing.sampling={notes: 1}", "mixing.on_shortage=fail"]


def test_a_failed_day_is_told_passed_over_and_done_again_when_asked_for(job: Path, tmp_path: Path) -> None:
    job, fails = shortage(job, tmp_path / "in")
    home, heard = tmp_path / "home", Heard()
    record = go(home, asked(job, overrides=fails), heard)
    assert record is not None
    assert heard.ended == [(DAYS[0], "DONE"), (DAYS[1], "FAILED"), (DAYS[2], "DONE")]
    assert record.state == "FAILED"
    assert record.detail == ("1 of 3 days failed (2026-01-02); --reprocess failed does them again")
    (failed,) = runs(home)[DAYS[1]]
    assert failed.detail.startswith("RunFailed: step 'plan'")
    assert failed.detail.endswith(f"-{DAYS[2]}: this run failed"), "passed over by the day after, with a note"
    # 'none' leaves it, 'failed' does it, and only it.
    assert go(home, asked(job, overrides=fails)) is None
    (tmp_path / "in" / "notes" / DAYS[1] / "late.md").write_text(
        (tmp_path / "in" / "notes" / DAYS[0] / "note-0-00.md").read_text(encoding="utf-8"), encoding="utf-8"
    )
    fewer = [*fails[1:], "mixing.target_tokens=10"]
    again = go(home, asked(job, reprocess="failed", overrides=fewer), heard)
    assert again is not None
    assert again.state == "DONE"
    assert heard.ended[3:] == [(DAYS[1], "DONE")]


def test_three_failures_in_a_row_stop_it(tmp_path: Path) -> None:
    days = tuple(f"2026-01-0{d}" for d in range(1, 6))
    job, home = build(tmp_path / "in", days, files=1), tmp_path / "home"
    fails = ["mixing.target_tokens=100000000", "mixing.sampling={notes: 1}", "mixing.on_shortage=fail"]
    request = asked(job, days[0], days[-1], overrides=fails)
    record = go(home, request)
    assert record is not None
    assert record.state == "FAILED"
    assert record.detail.startswith("3 days in a row failed, so 2 were not begun")
    assert states(home, record) == ["FAILED"] * 3 + ["PENDING"] * 2
    again = go(home, request)
    assert again is not None
    assert again.backfill_id == record.backfill_id, "the same command goes on"
    assert states(home, again) == ["FAILED"] * 5


# Pause, cancel, taken


def test_paused_and_resumed_it_makes_the_same(job: Path, by_hand: dict[str, str], tmp_path: Path) -> None:
    home = tmp_path / "home"

    def pause(day: str) -> None:
        if day == DAYS[1]:
            with BackfillBook(home) as book:
                (record,) = book.state.list_backfills()
                book.pause(record.backfill_id[:18], "bob", "storage moves")

    record = go(home, asked(job), Heard(on_day=pause))
    assert record is not None
    assert (record.state, record.detail) == ("PAUSED", "paused by bob: storage moves")
    assert states(home, record) == ["DONE", "PAUSED", "PENDING"]
    assert runs(home)[DAYS[1]][0].state == "PAUSED"
    still = go(home, asked(job))
    assert still is not None
    assert still.state == "PAUSED", "the same command does not overrule whoever paused it"
    with BackfillBook(home) as book:
        with pytest.raises(ConfigError, match="nothing to pause"):
            book.pause(record.backfill_id, "bob", "")
        record, request = book.resume(record.backfill_id, "bob")
        assert book.state.pauses() == []
        ended = drive(book, request, record, None, Heard(), lambda _: Notes(), 0, 1)
    assert ended.state == "DONE"
    assert published(home) == by_hand


def test_a_run_that_somebody_pauses_pauses_its_backfill(job: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"

    def pause(day: str) -> None:
        with BackfillBook(home) as book:
            book.flags.pause("dataset", "daily", "eve", "look first")

    record = go(home, asked(job), Heard(on_day=pause))
    assert record is not None
    assert record.state == "PAUSED"
    assert "eve" in record.detail
    assert states(home, record) == ["PAUSED", "PENDING", "PENDING"]


def test_cancelled_the_day_under_way_stops_and_the_rest_is_not_begun(job: Path, tmp_path: Path) -> None:
    home, said = tmp_path / "home", list[str]()

    def cancel() -> None:
        with BackfillBook(home) as book:
            (record,) = book.state.list_backfills()
            said.append(book.cancel(record.backfill_id, "bob", None).state)

    def on_day(day: str) -> None:
        if day == DAYS[1]:
            thread.start()
            while not said_so():
                pass

    def said_so() -> bool:
        with BackfillBook(home) as book:
            return bool(book.state.pauses())

    thread = threading.Thread(target=cancel)
    record = go(home, asked(job), Heard(on_day=on_day))
    thread.join()
    assert record is not None
    assert (record.state, record.detail) == ("CANCELLED", "cancelled by bob")
    assert said == ["CANCELLED"]
    assert states(home, record) == ["DONE", "CANCELLED", "CANCELLED"]
    assert {day: [r.state for r in found] for day, found in runs(home).items()} == {
        DAYS[0]: ["SUCCEEDED"],
        DAYS[1]: ["CANCELLED"],
    }
    with BackfillBook(home) as book:
        assert book.state.pauses() == []
        with pytest.raises(ConfigError, match="nothing to resume"):
            book.resume(record.backfill_id, "bob")
        with pytest.raises(ConfigError, match="nothing to cancel"):
            book.cancel(record.backfill_id, "bob", None)
    # What was cancelled is left out, unless asked for.
    assert states(home, go(home, asked(job))) == ["DONE"]
    assert states(home, go(home, asked(job, reprocess="failed"))) == ["DONE"]


def test_a_backfill_is_driven_by_one_process(job: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    met: list[str] = []

    def again(day: str) -> None:
        if day == DAYS[0]:
            with pytest.raises(StateError, match="is under way already, driven by") as e:
                go(home, asked(job), Heard())
            met.append(str(e.value))

    # Another process, as it would look from here: its name differs, and it lives.
    import dataflow_ops.pipeline.backfill as module

    names = iter(["elsewhere:1:1", "elsewhere:1:1"])
    real = module.owner_name
    module.owner_name = lambda: next(names, "here:2:2")  # type: ignore[assignment]
    try:
        record = go(home, asked(job), Heard(on_day=again))
    finally:
        module.owner_name = real  # type: ignore[assignment]
    assert record is not None
    assert record.state == "DONE"
    assert len(met) == 1
    assert "elsewhere:1:1" in met[0]


# Plans


def test_a_dry_run_shows_each_day_and_writes_nothing(job: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    rows = dry_run(asked(job), home, 1)
    assert not home.exists()
    assert [(r["day"], r["action"], r["files"]) for r in rows] == [(day, "run", 10) for day in DAYS]
    assert all(r["bytes"] > 10_000 and r["chunks"] >= 2 for r in rows)
    run_job(load_job(job), home, mode="incremental", data_date=DAYS[1], workers=0, reporter=Notes())
    before = stamps(home)
    rows = dry_run(asked(job), home, 1)
    assert [(r["action"], r["state"]) for r in rows] == [("run", ""), ("skip", "SUCCEEDED"), ("run", "")]
    assert rows[1]["version"].startswith("t-incremental-2026-01-02")
    assert stamps(home) == before
    with BackfillBook(home) as book:
        assert book.state.list_backfills() == []


def test_a_dry_run_says_why_a_day_takes_everything(tmp_path: Path) -> None:
    job, home = sources(tmp_path / "in", files=3), tmp_path / "home"
    rows = dry_run(asked(job, DAYS[0], DAYS[1]), home, 1)
    assert {r["why"] for r in rows} == {
        "never run; takes all of notes, rows: no full version yet whose files could be left out"
    }
    run_job(load_job(job), home, data_date=DAYS[0], workers=0, reporter=Notes())
    rows = dry_run(asked(job, DAYS[0], DAYS[1]), home, 1)
    assert {(r["why"], r["files"]) for r in rows} == {("never run", 0)}


def stamps(home: Path) -> dict[str, int]:
    """Every file with its time; readers may touch what SQLite keeps beside its database."""
    files = (p for p in home.rglob("*") if p.is_file() and not p.name.startswith("state.db-"))
    return {str(p): p.stat().st_mtime_ns for p in files}


def a_run(state: str, run_id: str = "r", version: str = "", until: str | None = None) -> DayRun:
    return DayRun(DAYS[0], run_id, state, until, "", 1.0, version, "PUBLISHED" if version else "")


@pytest.mark.parametrize(
    ("found", "actions"),
    [
        ([], ("run", "run", "run")),
        ([a_run("SUCCEEDED", version="v")], ("skip", "skip", "run")),
        ([a_run("SUCCEEDED_WITH_DEAD", version="v")], ("skip", "skip", "run")),
        ([a_run("AWAITING_APPROVAL", version="v")], ("skip", "skip", "run")),
        ([a_run("FAILED")], ("skip", "run", "run")),
        ([a_run("CANCELLED")], ("skip", "run", "run")),
        ([a_run("FAILED", "b"), a_run("SUCCEEDED", "a", "v")], ("skip", "run", "run")),
        ([a_run("SUCCEEDED", "b", "v"), a_run("FAILED", "a")], ("skip", "skip", "run")),
        ([a_run("SUCCEEDED", until="filter")], ("run", "run", "run")),
        ([a_run("RUNNING")], ("wait", "wait", "wait")),
        ([a_run("RUNNING", "own")], ("run", "run", "run")),
        ([a_run("FAILED", "own")], ("run", "run", "run")),
        ([a_run("SUCCEEDED", "own", "v")], ("done", "done", "done")),
        ([a_run("RUNNING", "gone")], ("run", "run", "run")),
    ],
)
def test_which_days_are_run(job: Path, found: list[DayRun], actions: tuple[str, ...]) -> None:
    for reprocess, action in zip(("none", "failed", "all"), actions, strict=True):
        plan = plan_day(asked(job, reprocess=reprocess), DAYS[0], found, "own", {"gone"})
        assert plan.action == action, (reprocess, plan)
        assert plan.why


def test_a_version_past_retention_is_not_made_again_by_itself(job: Path) -> None:
    gone = DayRun(DAYS[0], "r", "SUCCEEDED", None, "", 1.0, "v", "REMOVED")
    plan = plan_day(asked(job), DAYS[0], [gone])
    assert (plan.action, plan.why) == ("skip", "had version v, past retention now")


@pytest.mark.parametrize(
    ("first", "last", "more", "expected"),
    [
        ("2026-01-03", "2026-01-01", {}, "both days are inclusive"),
        ("2026-01-1", "2026-01-02", {}, "--from 2026-01-1: not a date"),
        ("2026-01-01", "2999-01-01", {}, "more than"),
        ("2999-01-01", "2999-01-02", {}, "has not begun"),
        ("2026-01-01", "2026-01-02", {"reprocess": "some"}, "there are none, failed, all"),
        ("2026-01-01", "2026-01-02", {"until": "cleaning"}, "no such layer"),
        ("2026-01-01", "2026-01-02", {"overrides": ["mixing.seed=much"]}, "--set mixing.seed"),
    ],
)
def test_wrong_requests(job: Path, first: str, last: str, more: dict[str, object], expected: str) -> None:
    with pytest.raises(ConfigError, match=expected):
        asked(job, first, last, **more)
