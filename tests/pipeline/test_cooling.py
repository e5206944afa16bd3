"""Files that maintenance moves to the cold tier: nothing that a home does is another thing afterwards."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dataflow_ops.engine.raw import RawStore
from dataflow_ops.errors import ColdAway, ConfigError
from dataflow_ops.job_file import load_job
from dataflow_ops.pipeline.audited import audit_of
from dataflow_ops.pipeline.cooling import FINISHED, near_runs
from dataflow_ops.pipeline.diff import diff_of
from dataflow_ops.pipeline.home import open_home
from dataflow_ops.pipeline.look import lineage_of
from dataflow_ops.pipeline.maintenance import maintain
from dataflow_ops.pipeline.tiers import stored
from dataflow_ops.storage.local import LocalStore
from tests.cases.product import dataflow
from tests.pipeline.compacting import chain, compacted, current, later, rows, totals
from tests.pipeline.growing import TEXTS, Growing, first_day, near
from tests.pipeline.inside import Notes, published
from tests.pipeline.test_damage import flip

pytestmark = pytest.mark.xdist_group("cooling")
ROOT = Path(__file__).resolve().parents[2]


def cooled(made: Growing, **options: Any) -> dict[str, Any]:
    """Maintenance that moves at once whatever may be moved."""
    archive = made.root / "archive"
    archive.mkdir(exist_ok=True)
    home = replace(open_home(made.home), cold=archive)
    return maintain(home, **{"grace_hours": 0.0, "cold_after_days": 0.0, "log": lambda _: None, **options})


def kinds(folder: Path) -> set[tuple[str, str]]:
    """``(step, kind)`` of the outputs below a root; shards left out."""
    found = {
        (p.relative_to(folder / "data").parts[0], p.name.split(".")[1])
        for p in (folder / "data").rglob("*.parquet")
    }
    return {one for one in found if one[0] != "export"}


def cold_files(made: Growing) -> list[Path]:
    return sorted(p for p in (made.home / "cold").rglob("*") if p.is_file() and p.name != "home.txt")


def twin(made: Growing) -> Growing:
    """The same sources with a copy of the home, all of it in one tier."""
    other = Growing(made.root)
    other.home = made.root / "twin"
    shutil.copytree(made.home, other.home)
    return other


def told(made: Growing, version: str) -> Any:
    """What a home says of a version's documents and of its runs."""
    home = open_home(made.home)
    fates = made.fates(version)
    with made.state() as state:
        runs = sorted(run.run_id for run in state.list_runs(None, 100))
    return (
        fates,
        totals(made, version),
        rows(made, version),
        [lineage_of(home.path, None, doc, None) for _, _, doc in sorted(fates.values())[:5]],
        {run: audit_of(home.path, run, None, 50, 0) for run in runs},
    )


def whatif(made: Growing, version: str) -> Any:
    """What other bounds would have done to a version's run."""
    with made.state() as state:
        run = next(v.run_id for v in state.versions() if v.version_id == version)
    bound = "clean.boilerplate_filter.min_text_len=4000"
    said = dataflow("whatif", made.job, "--set", bound, "--run", run, "--home", made.home, "--json")
    assert said.code == 0, said.err
    assert said.data["lost"] > 0
    return {name: value for name, value in said.data.items() if name != "seconds"}


def test_a_chain_of_days_goes_on_as_if_nothing_had_moved(tmp_path: Path) -> None:
    made = chain(tmp_path)
    other = twin(made)
    version = current(made)
    before = told(made, version)
    done = cooled(made)
    assert (done["moved"], done["damaged"], done["copied"]) == (len(cold_files(made)), 0, 0)
    assert done["moved_bytes"] == sum(p.stat().st_size for p in cold_files(made)) > 0
    assert kinds(made.home) & set(FINISHED) == set()
    # The rest of a chain's outputs is what days read, or what people look at.
    assert kinds(made.home / "cold") <= set(FINISHED)
    assert {("scatter", "rows"), ("gather", "texts"), ("verify", "edges")} <= kinds(made.home / "cold")
    assert cooled(made)["moved"] == 0, "twice is once"
    assert told(made, version) == before
    later(made)
    day, plain = made.day(5), other.day(5)
    assert (day.current, day.version_id) == (True, plain.version_id)
    assert told(made, day.version_id)[:3] == told(other, plain.version_id)[:3]
    cooled(made)
    pressed, flat = compacted(made), compacted(other)
    assert pressed.version_id == flat.version_id
    made.verify(pressed.version_id)
    assert published(made.home) == published(other.home)


def test_texts_of_older_runs_move_and_are_read_where_they_are(tmp_path: Path) -> None:
    made = Growing(tmp_path)
    first = first_day(made)
    shutil.copytree(tmp_path / "docs", tmp_path / "before")
    for i in range(12):
        made.put(f"d{i:02}.md", TEXTS[30 + i])
    second = made.run().version_id
    with made.state() as state:
        assert len(near_runs(state)) == 1
    said, before, bounds = diff_of(made.home, first, second, None), told(made, first), whatif(made, first)
    cooled(made)
    texts = [p for p in cold_files(made) if ".text." in p.name]
    assert texts
    assert any(".text." in p.name for p in (made.home / "data/parse").rglob("*")), "those of the newest stay"
    assert told(made, first) == before
    assert diff_of(made.home, first, second, None) == said
    assert whatif(made, first) == bounds
    # Back where they are current, a day compares with them.
    assert dataflow("versions", "rollback", first, "--home", made.home).code == 0
    shutil.copytree(tmp_path / "before", tmp_path / "docs", dirs_exist_ok=True)
    made.put("near.md", near(TEXTS[5], "again"))
    day = made.day(3)
    assert day.facts["base"] == first
    fates = made.fates(day.version_id)
    assert fates["near.md"][:2] == ("duplicate", fates["d05.md"][2])


def test_a_run_again_finds_everything_done(tmp_path: Path) -> None:
    made = Growing(tmp_path)
    version = first_day(made)
    wanted = published(made.home)
    cooled(made)
    notes = Notes()
    assert made.run(notes=notes).version_id == version
    assert notes.ran() == {}
    # What must be made again is made from what was moved.
    for shard in (made.home / "data/export").rglob("*.parquet"):
        shard.unlink()
    notes = Notes()
    assert made.run(notes=notes).version_id == version
    assert set(notes.ran()) == {"export"}
    assert published(made.home) == wanted


@pytest.mark.parametrize("hurt", [flip, os.unlink])
def test_what_is_damaged_in_the_cold_tier_is_made_again(tmp_path: Path, hurt: Any) -> None:
    made = Growing(tmp_path)
    version = first_day(made)
    wanted = published(made.home)
    cooled(made)
    broken = max((made.home / "cold/data/scatter").rglob("*.rows.parquet"), key=lambda p: p.stat().st_size)
    hurt(broken)
    for shard in (made.home / "data/export").rglob("*.parquet"):
        shard.unlink()
    notes = Notes()
    assert made.run(notes=notes).version_id == version
    assert {name: n for name, n in notes.ran().items() if name != "export"} == {"scatter": 1}
    assert any("scatter" in note for note in notes.notes), "said, not silent"
    assert published(made.home) == wanted
    again = made.home / broken.relative_to(made.home / "cold")
    assert again.exists(), "a new one is written to the root"
    whole = again.read_bytes()
    cooled(made)
    cooled(made)
    assert not again.exists()
    assert broken.read_bytes() == whole


def test_while_the_place_is_away_nothing_is_taken_for_lost(tmp_path: Path) -> None:
    made = Growing(tmp_path)
    version = first_day(made)
    cooled(made)
    folder = (made.home / "cold").resolve()
    away = folder.rename(tmp_path / "unmounted")
    with made.state() as state:
        before = state.list_runs(None, 10)[0].run_id
        tasks = state.states_of_run(before)
    notes = Notes()
    with pytest.raises(ColdAway, match="mount it"):
        made.run(notes=notes)
    assert notes.ran() == {}
    with made.state() as state:
        assert state.states_of_run(before) == tasks, "nothing was put back to be made again"
    for more in ({}, {"dry_run": True}):
        with pytest.raises(ColdAway, match="mount it"):
            cooled(made, **more)
    said = dataflow("doctor", "--home", made.home, "--json")
    assert said.code == 1
    assert [row["check"] for row in said.data if not row["ok"]] == ["cold disk"]
    # A day's own tasks are new, and what it reads of the version below was not moved.
    made.put("near-3.md", TEXTS[3] + " and more")
    made.put("new.md", TEXTS[20])
    day = made.day(2)
    assert (day.current, "new.md" in made.kept(day.version_id)) == (True, True)
    away.rename(folder)
    for name in ("near-3.md", "new.md"):
        (made.root / "docs" / name).unlink()
    notes = Notes()
    assert made.run(notes=notes).version_id == version
    assert notes.ran() == {}, "mounted again, all is there"


def test_what_nothing_reaches_goes_from_the_cold_tier_too(tmp_path: Path) -> None:
    made = Growing(tmp_path)
    for mark in range(4):
        for i in range(6):
            made.put(f"d{i:02}.md", TEXTS[6 * mark + i])
        made.run()
        cooled(made)
    moved = {str(p.relative_to(made.home / "cold")) for p in cold_files(made)}
    done = cooled(made, keep_versions=1)
    assert (len(done["versions"]), done["tasks"] > 0) == (2, True)
    left = {str(p.relative_to(made.home / "cold")) for p in cold_files(made)}
    assert left < moved
    with made.state() as state:
        known = {uri for n in range(256) for uri in state.stored_uris(f"{n:02x}")}
    assert left <= known, "nothing without a task"
    stray = next(p for p in cold_files(made) if ".rows." in p.name)
    orphan = stray.with_name(f"part_x_{stray.parent.name}{'0' * 14}.rows.parquet")
    orphan.write_bytes(b"left")
    assert cooled(made, grace_hours=1.0)["orphans"] == 0, "too young"
    rehearsed = cooled(made, dry_run=True)
    assert (rehearsed["orphans"], rehearsed["bytes"], orphan.exists()) == (1, 4, True)
    done = cooled(made)
    assert (done["orphans"], done["bytes"], orphan.exists(), stray.exists()) == (1, 4, False, True)


def test_without_a_cold_folder_nothing_changes(tmp_path: Path) -> None:
    made = Growing(tmp_path)
    first_day(made)
    before = sorted(p for p in made.home.rglob("*") if p.is_file())
    done = maintain(open_home(made.home), grace_hours=0.0, cold_after_days=0.0)
    assert (done["copied"], done["moved"]) == (0, 0)
    assert sorted(p for p in made.home.rglob("*") if p.is_file()) == before
    rehearsed = cooled(made, dry_run=True)
    assert rehearsed["copied"] > 0
    assert not (made.home / "cold").is_symlink()
    assert cooled(made, cold_after_days=1.0)["moved"] == 0, "younger than that"
    assert cooled(made, grace_hours=1.0)["copied"] == rehearsed["copied"]
    assert cooled(made, grace_hours=1.0)["copied"] == 0
    done = maintain(open_home(made.home), grace_hours=0.0, cold_after_days=0.0)
    assert (done["moved"], done["moved_bytes"]) == (rehearsed["copied"], rehearsed["copied_bytes"]), (
        "the home remembers its cold folder"
    )


def test_what_a_live_run_holds_is_not_moved(tmp_path: Path) -> None:
    made = Growing(tmp_path)
    first_day(made)
    made.run(until="dedup", set=["dataset.description=again"])
    with made.state() as state:
        state.set_run_state(state.list_runs(None, 1)[0].run_id, "again")
    cooled(made)
    assert kinds(made.home / "cold") == {("scatter", "rows")}, "the only ones that it does not share"


def test_raw_bytes_move_by_their_age(tmp_path: Path) -> None:
    made = Growing(tmp_path)
    first_day(made)
    blobs = LocalStore(made.home)
    raw = RawStore(load_job(made.job), blobs)
    old, young = (raw.store([data])[0] for data in (b"old page", b"young page"))
    then = time.time() - 10 * 86_400
    os.utime(made.home / old, (then, then))
    cooled(made, cold_after_days=7.0)
    assert [(made.home / uri).exists() for uri in (old, young)] == [False, True]
    assert [raw.open("docs", "x", uri).read() for uri in (old, young)] == [b"old page", b"young page"]
    assert raw.store([b"old page"])[0] == old, "fetched again it is the same"
    assert raw.open("docs", "x", old).read() == b"old page"


KILLED = """
import os, signal, sys
from dataclasses import replace
from pathlib import Path
from dataflow_ops.pipeline.home import open_home
from dataflow_ops.pipeline.maintenance import maintain
from dataflow_ops.storage.disk import Disk
left = [int(sys.argv[3])]
def dying(name):
    work = getattr(Disk, name)
    def step(self, *args):
        left[0] -= 1
        if left[0] < 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return work(self, *args)
    setattr(Disk, name, step)
for name in ("create", "write", "fsync", "link", "unlink", "mkdir", "fsync_dir"):
    dying(name)
home = replace(open_home(Path(sys.argv[1])), cold=Path(sys.argv[2]))
maintain(home, grace_hours=0.0, cold_after_days=0.0, log=lambda _: None)
"""


def test_killed_anywhere_everything_can_be_read_and_the_next_one_goes_on(tmp_path: Path) -> None:
    made = Growing(tmp_path)
    version = first_day(made)
    wanted = published(made.home)
    (tmp_path / "archive").mkdir()
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    for steps in (0, 9, 10, 11, 12, 13, 14, 15, 40):
        command = [sys.executable, "-c", KILLED, str(made.home), str(tmp_path / "archive"), str(steps)]
        killed = subprocess.run(command, cwd=ROOT, check=False, env=environment)
        assert killed.returncode == -signal.SIGKILL
        notes = Notes()
        assert made.run(notes=notes).version_id == version
        assert notes.ran() == {}
    cooled(made)
    assert kinds(made.home) & set(FINISHED) == set()
    for shard in (made.home / "data/export").rglob("*.parquet"):
        shard.unlink()
    assert made.run().version_id == version
    assert published(made.home) == wanted


def test_the_commands_say_what_lies_where(tmp_path: Path) -> None:
    made = Growing(tmp_path)
    first_day(made)
    command = ("maintenance", "--home", made.home, "--grace-hours", 0, "--cold-after-days", 0)
    assert "no such folder" in dataflow(*command, "--cold", tmp_path / "nowhere").err
    (tmp_path / "archive").mkdir()
    said = dataflow(*command, "--cold", tmp_path / "archive", "--dry-run")
    assert "would be copied to the cold folder" in said.out, said.err
    before = {(s.tier, s.kind): (s.files, s.bytes) for s in stored(made.home, cold=False)}
    said = dataflow(*command, "--cold", tmp_path / "archive")
    assert "now in the cold folder alone" in said.out, said.err
    found = {row["check"]: row for row in dataflow("doctor", "--home", made.home, "--json").data}
    cold = found["cold intermediates"]
    assert (cold["tier"], cold["kind"], cold["bytes"] > 0) == ("cold", "intermediates", True)
    sizes = {name: (row["files"], row["bytes"]) for name, row in found.items() if "bytes" in row}
    for kind in ("parsed", "indexes", "versions"):
        assert sizes[kind] == before["hot", kind]
    both = tuple(a + b for a, b in zip(sizes["intermediates"], sizes["cold intermediates"], strict=True))
    assert both == before["hot", "intermediates"]
    everything = {(s.st_dev, s.st_ino): s.st_size for s in _stats(made.home) + _stats(made.home / "cold")}
    assert sum(size for _, size in sizes.values()) == sum(everything.values()), "links are counted once"
    assert "cold disk" in dataflow("doctor", "--home", made.home).out


def _stats(root: Path) -> list[os.stat_result]:
    names = ("data", "raw", "staging", "versions", "quarantine")
    return [p.stat() for name in names for p in (root / name).rglob("*") if p.is_file()]


def test_a_copied_home_does_not_clear_up_what_the_other_one_moved(tmp_path: Path) -> None:
    made = Growing(tmp_path)
    first_day(made)
    cooled(made)
    other = Growing(tmp_path)
    other.home = tmp_path / "copy"
    shutil.copytree(made.home, other.home, symlinks=True)
    with pytest.raises(ConfigError, match="is a copy of"):
        cooled(other)
    assert json.loads(json.dumps(cooled(made)))["moved"] == 0
