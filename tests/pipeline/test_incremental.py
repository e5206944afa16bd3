"""Days that build on one another: each sees what is below it, and the whole is what a full run would give."""

from __future__ import annotations

import hashlib
import json
import shutil
import signal
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from dataflow_ops.errors import BaseDamaged, ConfigError, VersionError
from dataflow_ops.job_file import load_job
from dataflow_ops.layers.export.manifest import canonical_json
from dataflow_ops.layers.ingest import numbers
from dataflow_ops.pipeline.bundles import finish_run, run_bundle, start_run
from dataflow_ops.pipeline.diff import diff_versions
from dataflow_ops.pipeline.flow import STEPS
from dataflow_ops.pipeline.home import open_home
from dataflow_ops.pipeline.maintenance import maintain
from dataflow_ops.pipeline.run import resume_run
from dataflow_ops.pipeline.session import create_run
from dataflow_ops.pipeline.versions import VersionBook
from dataflow_ops.state.tables import dataset_version
from tests.pipeline import harness
from tests.pipeline.growing import TEXTS, Growing, first_day, near, second_day
from tests.pipeline.inside import At, Notes

pytestmark = pytest.mark.xdist_group("incremental")


def third_day(made: Growing) -> None:
    made.put("exact-a.md", TEXTS[20])
    made.put("near-b.md", near(TEXTS[21], "three"))
    made.put("exact-old.md", TEXTS[2])
    made.put("near-3.md", near(TEXTS[3], "four"))
    made.put("d05.md", "")  # holds nothing any more
    made.put("new-c.md", TEXTS[23])


def compare(made: Growing, a: str, b: str) -> dict[str, Any]:
    home = open_home(made.home, create=False)
    with made.state() as state:
        return diff_versions(home, state, a, b, n=100)


def test_below_less_the_replaced_and_the_new_come_to_the_whole(tmp_path: Path) -> None:
    made = Growing(tmp_path)
    full = first_day(made)
    assert made.fates(full)["copy-of-3.md"][0] == "duplicate"
    made.put("copy-of-3.md", TEXTS[20])  # replaced too, but it was no document of the version
    made.put("d02.md", TEXTS[21])
    day = made.day(2)
    assert f"builds on {full}: 2 new documents in 1 shards, 1 replaced" in day.message
    with VersionBook(open_home(made.home, create=False)) as book:
        shown, below = book.show(day.version_id), book.show(full)
    assert (shown["own"], shown["replaced"]) == (2, 1)
    assert (below["replaced"], shown["documents"]) == (0, below["documents"] - 1 + 2)


def test_days_hold_what_the_full_run_holds_but_for_survivors_that_are_listed(tmp_path: Path) -> None:
    made = Growing(tmp_path)
    full = first_day(made)
    before = made.fates(full)
    second_day(made)
    two = made.day(2)
    assert (two.state, two.current, two.facts["base"]) == ("SUCCEEDED", True, full)
    fates = made.fates(two.version_id)
    ids = {path: doc for path, (_, _, doc) in fates.items()}
    assert fates["exact-0.md"][:2] == ("duplicate", ids["d00.md"])
    assert fates["near-1.md"][:2] == ("duplicate", ids["d01.md"]), "longer, but what is below stays"
    assert {fates["new-a.md"][0], fates["near-a.md"][0]} == {"exported", "duplicate"}
    assert fates["old-of-2.md"][0] == "exported", "what was replaced is nobody's survivor"
    assert fates["d02.md"][0] == fates["d04.md"][0] == "exported", "nor of itself"
    assert ids["d02.md"] == before["d02.md"][2]

    third_day(made)
    three = made.day(3)
    assert three.facts["base"] == two.version_id
    fates = made.fates(three.version_id)
    kept_a = next(ids[name] for name in ("new-a.md", "near-a.md") if fates[name][0] == "exported")
    assert fates["exact-a.md"][:2] == ("duplicate", kept_a)
    assert fates["near-b.md"][:2] == ("duplicate", ids["new-b.md"])
    assert fates["exact-old.md"][:2] == ("duplicate", ids["old-of-2.md"])
    assert fates["near-3.md"][0] == "duplicate"
    assert "d05.md" not in made.kept(three.version_id)
    four = made.day(4)
    assert made.kept(four.version_id) == made.kept(three.version_id)
    gone = {path for path, (fate, _, _) in before.items() if fate == "duplicate"}
    assert not gone & made.kept(four.version_id), "what was removed below never comes back"

    for version in (two.version_id, three.version_id, four.version_id):
        made.verify(version)
        exported = made.exported_ids(version)
        assert len(exported) == len(set(exported))
        assert sorted(exported) == sorted(
            doc for fate, _, doc in made.fates(version).values() if fate == "exported"
        )
        with VersionBook(open_home(made.home, create=False)) as book:
            shown = book.show(version)
        assert shown["documents"] == len(exported) == sum(d["documents"] for d in shown["domains"])

    again = made.run(date="2026-11-05")
    assert again.current
    chain, whole = made.kept(four.version_id), made.kept(again.version_id)
    found = compare(made, four.version_id, again.version_id)
    listed = {e["path"]: e["why"] for c in found["causes"] for e in c["examples"]}
    assert set(listed) == chain ^ whole
    [dedup] = found["causes"]
    assert dedup["cause"] == "dedup"
    assert [by["name"] for by in dedup["by"]] == ["other survivor"]
    assert all("removed that one" in why for why in listed.values())
    assert len(chain) == len(whole), "each family has one document in either"
    back = compare(made, again.version_id, full)
    assert back["documents"]["a"] == len(whole)


def test_the_index_goes_back_with_the_version(tmp_path: Path) -> None:
    made = Growing(tmp_path)
    full = first_day(made)
    made.put("new-a.md", TEXTS[20])
    two = made.day(2)
    with VersionBook(open_home(made.home, create=False)) as book:
        book.rollback(full)
        with pytest.raises(VersionError, match="is current"):
            book.reject(full)
    (made.root / "docs" / "new-a.md").unlink()
    made.put("again-a.md", TEXTS[20])
    made.put("exact-0.md", TEXTS[0])
    three = made.day(3)
    assert (three.facts["base"], three.current) == (full, True)
    fates = made.fates(three.version_id)
    assert fates["again-a.md"][0] == "exported", "day two is not below this version"
    assert fates["exact-0.md"][0] == "duplicate"
    assert "new-a.md" not in fates
    made.verify(three.version_id)
    with VersionBook(open_home(made.home, create=False)) as book:
        with pytest.raises(VersionError, match=f"current through {three.version_id}"):
            book.reject(full)
        book.rollback(two.version_id)
    made.put("more-a.md", TEXTS[20])
    fates = made.fates(made.day(4).version_id)
    assert fates["more-a.md"][0] == fates["again-a.md"][0] == "duplicate", "now day two is"


@pytest.mark.parametrize("workers", [0, 2])
def test_same_bytes_with_workers_and_after_kills(tmp_path: Path, workers: int) -> None:
    made = Growing(tmp_path / "one")
    first_day(made)
    base = tmp_path / "base"
    shutil.copytree(made.home, base)
    second_day(made)
    done = made.day(2)
    assert done.current
    wanted = harness.published(made.home)
    home = tmp_path / "other"
    shutil.copytree(base, home)
    options = {"mode": "incremental", "date": "2026-11-02", "workers": workers}
    points = [
        "after commit supersede",
        "before commit match",
        "after publish recall",
        "before pointer publish",
    ]
    for i, point in enumerate(points if workers == 0 else ()):
        process = harness.start(made.job, home, kill=point, marker=str(tmp_path / f"killed-{i}"), **options)
        harness.finish(process, expect=None)
        assert process.returncode == -signal.SIGKILL, f"{point} was never reached"
    harness.once(made.job, home, seed="3", **options)
    assert harness.published(home) == wanted


def test_a_run_keeps_the_version_that_its_turn_found(tmp_path: Path) -> None:
    """Planned before the day before ended, it builds on that day; stopped after that, on the same one."""
    made = Growing(tmp_path)
    full = first_day(made)
    made.put("new-a.md", TEXTS[20])
    settings, home = load_job(made.job), open_home(made.home)
    later = create_run(home, settings, "incremental", data_date="2026-11-03", job_name="job")
    two = made.day(2)
    assert two.facts["base"] == full

    def stop() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        made.day(3, hooks=At("before commit recall", stop), run_id="")
    with made.state() as state:
        row = state.get_run(later)
    assert row is not None
    assert json.loads(row.settings)["interval"]["parent"]["version"] == two.version_id
    with VersionBook(home) as book:
        book.rollback(full)
    done = resume_run(made.home, later, 0, Notes())
    assert done.facts["base"] == two.version_id
    assert (done.current, done.state) == (False, "AWAITING_APPROVAL")
    assert f"it builds on {two.version_id}, but {full} became current meanwhile" in done.message
    with VersionBook(home) as book:
        assert book.approve(done.version_id) == done.version_id, "a person may let it all the same"


def test_a_version_overtaken_by_a_full_one_waits(tmp_path: Path) -> None:
    made = Growing(tmp_path)
    full = first_day(made)
    made.put("new-a.md", TEXTS[20])
    late: list[str] = []

    def overtake() -> None:
        if not late:
            late.append("")
            late[0] = made.run(date="2026-11-02").version_id

    done = made.day(2, hooks=At("before publish publish", overtake))
    assert (done.facts["base"], done.current, done.state) == (full, False, "AWAITING_APPROVAL")
    with made.state() as state:
        current = state.current("grows")
    assert current is not None
    assert current.version_id == late[0]


def test_what_a_kept_version_builds_on_stays(tmp_path: Path) -> None:
    made = Growing(tmp_path)
    full = first_day(made)
    made.put("new-a.md", TEXTS[20])
    two = made.day(2)
    made.put("new-b.md", TEXTS[21])
    three = made.day(3)
    with made.state() as state, pytest.raises(VersionError, match=f"{two.version_id} builds on it"):
        state.set_version_state("grows", full, "REMOVED")
    said: list[str] = []
    found = maintain(open_home(made.home), grace_hours=0.0, keep_versions=1, log=said.append)
    assert found["versions"] == []
    made.put("exact-0.md", TEXTS[0])
    made.put("near-a.md", near(TEXTS[20], "x"))
    four = made.day(4)
    fates = made.fates(four.version_id)
    assert fates["exact-0.md"][0] == fates["near-a.md"][0] == "duplicate"
    made.verify(three.version_id)

    # With newer full versions and days on them, these days and what is below may go, the upper ones first.
    made.run(date="2026-11-05")
    made.put("new-c.md", TEXTS[22])
    made.run(date="2026-11-06")
    made.day(7)
    found = maintain(open_home(made.home), grace_hours=0.0, keep_versions=1, log=said.append)
    assert found["versions"] == [four.version_id, three.version_id, two.version_id, full]


def test_an_index_that_is_gone_or_made_otherwise_is_told(tmp_path: Path) -> None:
    made = Growing(tmp_path)
    full = first_day(made)
    made.put("new-a.md", TEXTS[20])
    with pytest.raises(VersionError, match="other settings of dedup"):
        made.day(2, set=["dedup.minhash.band=8"])
    made.put(
        "exact-0.md", TEXTS[0]
    )  # a stranger's day reads no table: the filters let none of its keys through
    for path in (made.home / "data" / "sign").rglob("*.bands.parquet"):
        path.unlink()
    with pytest.raises(BaseDamaged, match="run the job in full mode"):
        made.day(3)
    with made.state() as state:
        record = next(v for v in state.versions("grows") if v.version_id == full)
        key = next(iter(state.records_of_step(record.run_id, "sign")))
        state.ghost(key)
    with pytest.raises(VersionError, match=f"the index of version {full} is no longer kept"):
        made.day(4)
    assert made.run(date="2026-11-05").current
    made.put("exact-a.md", TEXTS[20])
    assert made.fates(made.day(6).version_id)["exact-a.md"][0] == "duplicate"


def test_a_version_without_an_index_is_built_on_by_nobody(tmp_path: Path) -> None:
    """As those are that an older program made."""
    made = Growing(tmp_path)
    full = first_day(made)
    manifest = made.home / "versions" / full / "manifest.json"
    old = json.loads(manifest.read_text())
    del old["index"]
    manifest.write_bytes(canonical_json(old))
    digest = hashlib.sha256(manifest.read_bytes()).hexdigest()
    with made.state() as state, state.db.write() as connection:
        connection.execute(sa.update(dataset_version).values(manifest_sha256=digest))
    made.put("exact-0.md", TEXTS[0])
    notes = Notes()
    done = made.day(2, notes=notes)
    assert done.facts["increment"]
    assert not done.current
    assert any("has no index" in note for note in notes.notes)


def test_a_full_run_has_no_task_of_the_steps_above(tmp_path: Path) -> None:
    made = Growing(tmp_path)
    notes = Notes()
    first_day(made)
    made.run(notes=notes)
    assert notes.reports["supersede"].tasks == notes.reports["recall"].tasks == 0
    assert not (made.home / "data" / "recall").exists()


def test_what_is_not_there_can_t_be_approved(tmp_path: Path) -> None:
    made = Growing(tmp_path)
    first_day(made)
    made.put("new-a.md", TEXTS[20])
    held = made.day(2, promote=False)
    assert not held.current
    with VersionBook(open_home(made.home)) as book:
        with pytest.raises(ConfigError, match="doesn't wait for approval"):
            book.approve(held.facts["base"])
        assert book.approve(None) == held.version_id


def test_an_orchestrator_s_day_gives_the_same_bytes(tmp_path: Path) -> None:
    made = Growing(tmp_path / "one")
    first_day(made)
    home = tmp_path / "other"
    shutil.copytree(made.home, home)
    second_day(made)
    assert made.day(2).current
    quiet: dict[str, Any] = {"log": lambda _: None}
    started = start_run(made.job, home, mode="incremental", run_id="r", data_date="2026-11-02", **quiet)
    for step, _, by in STEPS[1:]:
        for index in range(0 if step in started.idle else started.bundles[by]):
            bundle = {"run_id": "r", "until": None, "index": index, "of": started.bundles[by]}
            run_bundle(home, step, bundle, 1, **quiet)
    done = finish_run(home, "r", None, promote=True, **quiet)
    assert done["current"]
    assert harness.published(home) == harness.published(made.home)


def test_an_index_that_is_cut_otherwise_is_met_by_signing_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A larger full version became current after the day was planned: its tables have more ranges."""
    made = Growing(tmp_path)
    first_day(made)
    settings, home = load_job(made.job), open_home(made.home)
    later = create_run(home, settings, "incremental", data_date="2026-11-03", job_name="job")
    for i in range(30, 36):
        made.put(f"more-{i}.md", TEXTS[i])
    monkeypatch.setattr(numbers, "BYTES_PER_RANGE", sum(len(t) for t in TEXTS[:12]) // 5)
    full = made.run(date="2026-11-02").version_id
    monkeypatch.undo()
    made.put("exact-30.md", TEXTS[30])
    made.put("near-1.md", near(TEXTS[1], "one"))
    notes = Notes()
    done = made.day(3, notes=notes)
    assert (done.run_id, done.facts["base"], done.current) == (later, full, True)
    assert any("its index is cut otherwise" in note for note in notes.notes)
    assert notes.reports["exact"].tasks == notes.reports["match"].tasks == 8
    fates = made.fates(done.version_id)
    assert fates["near-1.md"][0] == "duplicate"
    # Both are new to what the run was planned on: the full version's own one is replaced by itself.
    assert {fates["exact-30.md"][0], fates["more-30.md"][0]} == {"duplicate", "exported"}
    made.verify(done.version_id)
