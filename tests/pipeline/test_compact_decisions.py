"""Who decides what becomes of a compacted version, and days and runs beside a compaction."""

from __future__ import annotations

import json
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from dataflow_ops.errors import ConfigError, VersionError
from dataflow_ops.pipeline import compact
from dataflow_ops.pipeline.bundles import finish_run, run_bundle, start_run
from dataflow_ops.pipeline.chain import records_below
from dataflow_ops.pipeline.flow import STEPS
from dataflow_ops.pipeline.home import open_home
from dataflow_ops.pipeline.maintenance import maintain
from dataflow_ops.pipeline.versions import VersionBook
from tests.pipeline.compacting import chain, compacted, current, later, once, twin
from tests.pipeline.growing import TEXTS, Growing
from tests.pipeline.inside import At, Notes, published

pytestmark = pytest.mark.xdist_group("compact")


@pytest.fixture(scope="module")
def made_once(tmp_path_factory: pytest.TempPathFactory) -> Growing:
    return chain(tmp_path_factory.mktemp("once"))


def test_twice_is_once_and_the_bytes_do_not_depend_on_workers(tmp_path: Path) -> None:
    made = chain(tmp_path)
    old, other = current(made), twin(made)
    one, two = compacted(made), compacted(other, workers=2)
    assert published(made.home) == published(other.home)
    assert one.version_id == two.version_id
    assert compacted(made).message.endswith("there is nothing to put together.")
    with made.state() as state:
        assert len([run for run in state.list_runs() if run.mode == "compact"]) == 1
    history = [(e["action"], e["version"]) for e in _events(made)]
    assert history[:2] == [("published", one.version_id), ("compacted", one.version_id)]
    assert old in next(e["note"] for e in _events(made) if e["action"] == "compacted")


def _events(made: Growing) -> Iterable[dict[str, Any]]:
    with VersionBook(open_home(made.home, create=False)) as book:
        return book.events()


def test_a_persons_rollback_wins_and_the_day_after_builds_on_the_old_version(tmp_path: Path) -> None:
    made = chain(tmp_path)
    old, other = current(made), twin(made)
    done = compacted(made)
    with VersionBook(open_home(made.home, create=False)) as book:
        assert book.rollback(old, who="li", note="no") == old
    again = compacted(made)
    assert (again.version_id, again.current) == (done.version_id, False)
    assert "li chose" in again.message
    assert current(made) == old
    later(made)
    day = made.day(5)
    assert (day.current, day.facts["base"]) == (True, old)
    assert made.fates(day.version_id) == other.fates(other.day(5).version_id)


class Killed(BaseException):
    """As if the process had died."""


def die() -> None:
    raise Killed


def told_to_compact(made: Growing) -> str:
    """A day more, of a job that wants so long a chain compacted; the version that is current then."""
    job = made.job.read_text(encoding="utf-8").replace("shards: 2", "shards: 2, compact_after_days: 4")
    made.job.write_text(job, encoding="utf-8")
    made.put("fresh.md", TEXTS[40])
    assert made.day(5).current
    return current(made)


@pytest.mark.parametrize("again", ["compact", "full"])
def test_a_rollback_from_what_a_kill_left_behind_the_pointer_stays(tmp_path: Path, again: str) -> None:
    made = chain(tmp_path)
    old, home = told_to_compact(made), open_home(made.home)

    def go(**more: Any) -> Any:
        return made.run(date="2026-11-08", **more) if again == "full" else compacted(made, **more)

    with pytest.raises(Killed):
        go(hooks=At("after pointer publish", die))
    killed = current(made)
    assert killed != old
    with VersionBook(home) as book:
        assert book.rollback(old, who="li", note="no") == old
    if again == "compact":
        assert maintain(home, log=lambda _: None)["compacted"] == []
    done = go()
    assert (done.version_id, done.current, current(made)) == (killed, False, old)
    assert "li chose" in done.message
    assert f"dataflow versions rollback {killed}" in done.message
    with VersionBook(home) as book:
        assert book.rollback(killed) == killed, "as the message says"


def test_maintenance_goes_on_with_a_compaction_that_died_before_the_pointer(tmp_path: Path) -> None:
    made = chain(tmp_path)
    old = told_to_compact(made)
    with pytest.raises(Killed):
        compacted(made, hooks=At("before pointer publish", die))
    assert current(made) == old
    assert maintain(open_home(made.home), log=lambda _: None)["compacted"] == [old]
    assert "-compact-" in current(made)
    with made.state() as state:
        assert not state.live_runs()


def test_what_became_current_meanwhile_stays_and_a_person_is_asked(tmp_path: Path) -> None:
    made = chain(tmp_path)
    old = current(made)

    def full() -> None:
        assert made.run(date="2026-11-05", set=["output.version=h"], promote=True).current

    done = compacted(made, hooks=At("before pointer publish", full))
    assert (done.state, done.current) == ("AWAITING_APPROVAL", False)
    assert "is current now" in done.message
    assert f"all the same: dataflow versions approve {done.version_id} --anyway" in done.message
    assert "-full-" in current(made)
    with VersionBook(open_home(made.home, create=False)) as book:
        [row] = [v for v in book.list() if v["version"] == done.version_id]
        assert (row["state"], row["current"]) == ("WAITING", False)
        assert "is current now" in row["waits"]
        with pytest.raises(ConfigError, match="Do this instead: dataflow versions compact"):
            book.approve(done.version_id, who="li")
        book.approve(done.version_id, who="li", anyway=True)
    assert current(made) == done.version_id
    made.verify(done.version_id)
    assert made.fates(done.version_id) == made.fates(old)


def test_what_a_person_approved_instead_stays_and_the_way_back_is_a_rollback(tmp_path: Path) -> None:
    made = chain(tmp_path)
    old = current(made)
    done = compacted(made)
    waits = made.run(date="2026-11-05", set=["output.version=h"], promote=False)
    with VersionBook(open_home(made.home, create=False)) as book:
        assert book.approve(None, who="li") == waits.version_id
        again = compacted(made, old)
        assert (again.version_id, again.state, again.current) == (done.version_id, "SUCCEEDED", False)
        with made.state() as state:
            run = state.get_run(again.run_id)
        assert run is not None
        assert run.state == "SUCCEEDED"
        told = f"all the same: dataflow versions rollback {done.version_id}"
        assert again.message.endswith(told)
        assert book.rollback(done.version_id) == done.version_id


def test_an_older_version_by_its_name_makes_one_that_waits(tmp_path: Path) -> None:
    made = chain(tmp_path)
    now = current(made)
    with made.state() as state:
        days = [v.version_id for v in state.versions("grows") if v.mode == "incremental"]
    with pytest.raises(VersionError, match="fits several versions") as several:
        compacted(made, "g-incremental-2026")
    assert all(day in str(several.value) for day in days)
    done = compacted(made, days[-1][: len("g-incremental-2026-11-02")])
    assert (done.state, done.current, current(made)) == ("AWAITING_APPROVAL", False, now)
    assert done.facts["from"][-1] == days[-1]
    assert made.fates(done.version_id) == made.fates(days[-1])


def test_days_wait_while_versions_are_put_together(tmp_path: Path) -> None:
    made = chain(tmp_path)
    seen = []

    def look() -> None:
        with made.state() as state:
            gate = state.lease("grows", "dedup", "")
            seen.append(gate is not None and gate.held and "-compact-" in gate.owner)

    compacted(made, hooks=At("before commit pack", look))
    assert seen
    assert all(seen)
    later(made)
    assert made.day(5).current


def test_what_waits_or_was_rejected_is_not_compacted(tmp_path: Path) -> None:
    made = chain(tmp_path)
    made.put("fresh.md", TEXTS[40])
    waits = made.day(5, promote=False)
    with pytest.raises(VersionError, match="waits for a person"):
        compacted(made, waits.version_id)
    with VersionBook(open_home(made.home, create=False)) as book:
        book.reject(waits.version_id)
    with pytest.raises(VersionError, match="is rejected"):
        compacted(made, waits.version_id)


def test_maintenance_does_it_when_the_job_says_so(tmp_path: Path) -> None:
    made = chain(tmp_path)
    old, told = current(made), []
    home = open_home(made.home)
    assert maintain(home, log=told.append)["compacted"] == []
    job = made.job.read_text(encoding="utf-8").replace("shards: 2", "shards: 2, compact_after_days: 4")
    made.job.write_text(job, encoding="utf-8")
    made.put("fresh.md", TEXTS[40])
    day = made.day(5)
    assert maintain(home, dry_run=True, log=told.append)["compacted"] == [day.version_id]
    assert f"version {day.version_id}, which builds on 4 days: would be compacted" in told
    assert current(made) == day.version_id != old
    assert maintain(home, log=told.append)["compacted"] == [day.version_id]
    assert "-compact-" in current(made)
    assert maintain(home, log=told.append)["compacted"] == []
    with VersionBook(home) as book:
        book.rollback(day.version_id)
    assert maintain(home, log=told.append)["compacted"] == [], "a person went back: it stays so"
    assert current(made) == day.version_id


def test_a_compaction_that_died_before_a_day_is_not_taken_up_for_that_day(tmp_path: Path) -> None:
    made = chain(tmp_path)
    old = current(made)
    with made.state() as state:
        versions = state.versions()
        top = next(v for v in versions if v.version_id == old)
        begun = compact._create(state, top, records_below(versions, old))
    later(made)
    day = made.day(5)
    done = compacted(made)
    assert (done.current, done.run_id != begun) == (True, True)
    with made.state() as state:
        assert next(v for v in state.versions() if v.version_id == done.version_id).base == day.version_id


def test_two_at_a_time_are_one(tmp_path: Path) -> None:
    made = chain(tmp_path)
    reference = twin(made, "reference")
    compacted(reference)
    with ThreadPoolExecutor(2) as pool:
        one, two = pool.map(lambda _: once(made.home), range(2))
    assert one["version"] == two["version"] == current(made)
    assert published(made.home) == published(reference.home)


def test_a_day_under_way_builds_on_the_compacted_version_and_full_runs_still_see_drift(
    tmp_path: Path,
) -> None:
    made = chain(tmp_path)
    old, other = current(made), twin(made)
    later(made)
    names: list[str] = []

    def meanwhile() -> None:
        if not names:
            names.append(compacted(made).version_id)

    day, plain = made.day(5, hooks=At("before commit sign", meanwhile)), other.day(5)
    assert (day.current, day.facts["base"], plain.facts["base"]) == (True, names[0], old)
    assert made.fates(day.version_id) == other.fates(plain.version_id)
    against = []
    for one in (made, other):
        done = one.run(date="2026-11-06")
        assert done.current
        report = json.loads((one.home / "versions" / done.version_id / "report.json").read_text())
        against.append(report["drift_against"])
    assert against[0] is not None
    assert against[0] == against[1]


def test_orchestrated_days_build_on_a_compacted_version(tmp_path: Path) -> None:
    made = chain(tmp_path)
    other = twin(made)
    done = compacted(made)
    later(made)
    quiet: dict[str, Any] = {"log": lambda _: None}
    begin: dict[str, Any] = {"mode": "incremental", "run_id": "r", "data_date": "2026-11-05"}
    start_run(made.job, made.home, **begin, **quiet)
    for step, _, _ in STEPS[1:]:
        run_bundle(made.home, step, {"run_id": "r", "until": None, "index": 0, "of": 1}, 0, **quiet)
    day = finish_run(made.home, "r", None, promote=True, **quiet)
    assert (day["current"], day["base"]) == (True, done.version_id)
    assert made.fates(day["version"]) == other.fates(other.day(5).version_id)


@pytest.mark.parametrize("damage", [b"", b"{not json", b"[1]", b"\xff\xfe", b'{"format": 2}'])
def test_a_damaged_report_stops_no_compaction_and_no_rollback(made_once: Growing, damage: bytes) -> None:
    made = twin(made_once, f"report-{len(damage)}")
    old = current(made)
    report = made.home / "versions" / old / "report.json"
    report.write_bytes(damage)
    notes = Notes()
    done = compacted(made, notes=notes)
    assert (done.current, done.state) == (True, "SUCCEEDED")
    [note] = [n for n in notes.notes if "report.json" in n]
    assert "quarantine/" in note
    assert [f.read_bytes() for f in (made.home / "quarantine").rglob("report.json.*")] == [damage]
    assert not report.exists()
    report.write_bytes(damage)
    (report.parent.parent / done.version_id / "report.json").write_bytes(damage)
    with VersionBook(open_home(made.home)) as book:
        assert book.rollback(old) == old
        assert book.reject(done.version_id) == done.version_id
    assert current(made) == old


def test_a_run_makes_its_own_damaged_report_anew_and_tells_of_the_last_ones(made_once: Growing) -> None:
    made = twin(made_once, "anew")
    notes = Notes()
    first = made.run(date="2026-11-08", notes=notes)
    report = made.home / "versions" / first.version_id / "report.json"
    whole = json.loads(report.read_bytes())
    report.write_bytes(b'{"format": 2}')
    again = made.run(date="2026-11-08", notes=notes)
    assert (again.version_id, again.current) == (first.version_id, True)
    now = json.loads(report.read_bytes())
    assert [now[key] for key in ("shares", "lengths", "stands")] == [
        whole[key] for key in ("shares", "lengths", "stands")
    ]
    assert len([n for n in notes.notes if "report.json" in n and "drift is not known" in n]) == 1
    assert len([n for n in notes.notes if "report.json" in n and "A new one is written" in n]) == 1
