"""Compaction: one version instead of a chain, with the same rows, and days above it that find the same."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dataflow_ops.errors import BaseDamaged, ContentMismatch, VersionError
from dataflow_ops.layers.export.exporters import EXPORTERS, parquet
from dataflow_ops.pipeline.compact import Compacted, compact
from dataflow_ops.pipeline.diff import diff_of
from dataflow_ops.pipeline.home import open_home
from dataflow_ops.pipeline.look import lineage_of
from dataflow_ops.pipeline.maintenance import maintain
from dataflow_ops.pipeline.version_reader import open_version
from dataflow_ops.pipeline.versions import VersionBook
from tests.pipeline.growing import TEXTS, Growing, first_day, near, second_day
from tests.pipeline.harness import ROOT
from tests.pipeline.inside import At, Notes, published

pytestmark = pytest.mark.xdist_group("compact")


def chain(root: Path, fmt: str = "") -> Growing:
    """A full version and three days: copies, changed files, a file read again twice."""
    made = Growing(root)
    if fmt:
        job = made.job.read_text(encoding="utf-8").replace("shards: 2", f"shards: 2, format: {fmt}")
        made.job.write_text(job, encoding="utf-8")
    first_day(made)
    second_day(made)
    made.day(2)
    made.put("new-c.md", TEXTS[30])
    made.put("new-a.md", TEXTS[31])
    made.day(3)
    made.put("d04.md", near(TEXTS[4], "changed again"))
    assert made.day(4).current
    return made


def later(made: Growing) -> None:
    """A day after it: copies of documents of every version, and files of every version read again."""
    made.put("copy-of-c.md", TEXTS[30])
    made.put("near-of-5.md", near(TEXTS[5], "x"))
    made.put("near-of-b.md", near(TEXTS[21], "y"))
    made.put("again-replaced.md", TEXTS[4])
    made.put("fresh.md", TEXTS[40])
    made.put("d06.md", TEXTS[41])
    made.put("new-c.md", near(TEXTS[30], "changed"))


def twin(made: Growing, name: str = "twin") -> Growing:
    """The same sources with a copy of the home."""
    other = Growing(made.root)
    other.home = made.root / name
    shutil.copytree(made.home, other.home)
    return other


def compacted(made: Growing, version: str | None = None, **more: Any) -> Compacted:
    return compact(made.home, version, more.pop("workers", 0), more.pop("notes", Notes()), **more)


def rows(made: Growing, version: str) -> list[dict[str, Any]]:
    """Rows as docs/days.md tells people to read them, in the order that a compaction keeps."""
    found: list[tuple[str, int, str, list[dict[str, Any]]]] = []
    folders = [made.home / "versions" / version]
    while base := json.loads((folders[0] / "manifest.json").read_text())["base"]:
        folders.insert(0, folders[0].parent / base["version"])
    stones = [pq.read_table(f / "tombstones.parquet").to_pylist() for f in folders[1:]]
    for part, folder in enumerate(folders):
        gone = {row["doc_id"].hex() for t in stones for row in t if row["part"] == part}
        for shard in json.loads((folder / "manifest.json").read_text())["shards"]:
            fmt = "parquet" if shard["path"].endswith("parquet") else "jsonl.zst"
            tables = EXPORTERS[fmt].read(folder / shard["path"])
            living = [row for table in tables for row in table.to_pylist() if row["id"] not in gone]
            found.append((shard["path"].rpartition("/")[0], part, shard["path"], living))
    found.sort(key=lambda one: one[:3])
    return [row for *_, living in found for row in living]


def totals(made: Growing, version: str) -> dict[str, Any]:
    with VersionBook(open_home(made.home, create=False)) as book:
        shown = book.show(version)
    return {key: shown[key] for key in ("documents", "tokens", "domains")}


def current(made: Growing) -> str:
    with made.state() as state:
        found = state.current("grows")
    assert found is not None
    return found.version_id


@pytest.mark.parametrize("fmt", ["parquet", "jsonl.zst"])
def test_the_same_rows_in_the_same_order_and_the_day_after_finds_the_same(tmp_path: Path, fmt: str) -> None:
    made = chain(tmp_path, fmt)
    old, other = current(made), twin(made)
    before, fates, sums = rows(made, old), made.fates(old), totals(made, old)
    done = compacted(made)
    assert (done.state, done.current) == ("SUCCEEDED", True)
    assert rows(made, done.version_id) == before
    assert made.fates(done.version_id) == fates
    assert totals(made, done.version_id) == sums
    assert "All is well" in made.verify(done.version_id)
    manifest = json.loads((made.home / "versions" / done.version_id / "manifest.json").read_text())
    assert (manifest["base"], len(manifest["shards"])) == (None, 2)
    assert manifest["compacted"]["version"] == old
    later(made)
    day, plain = made.day(5), other.day(5)
    assert day.current
    assert plain.current
    assert day.facts["base"] == done.version_id
    assert made.fates(day.version_id) == other.fates(plain.version_id)
    assert totals(made, day.version_id) == totals(other, plain.version_id)
    by_id = [sorted(rows(*one), key=lambda row: row["id"]) for one in _both(made, day, other, plain)]
    assert by_id[0] == by_id[1]
    made.verify(day.version_id)
    # Compacted again, what was compacted before is one of the versions below.
    again = compacted(made)
    assert made.fates(again.version_id) == other.fates(plain.version_id)
    made.verify(again.version_id)
    made.put("last.md", near(TEXTS[22], "z"))
    made.put("fresh.md", TEXTS[42])
    assert made.fates(made.day(6).version_id) == other.fates(other.day(6).version_id)


def _both(*four: Any) -> list[tuple[Growing, str]]:
    made, day, other, plain = four
    return [(made, day.version_id), (other, plain.version_id)]


def test_old_files_go_by_retention_and_everything_still_works(tmp_path: Path) -> None:
    made = chain(tmp_path)
    old, other = current(made), twin(made)
    done = compacted(made)
    later(made)
    day, plain = made.day(5), other.day(5)
    fates = made.fates(day.version_id)
    home = open_home(made.home)
    # Two full versions are always kept: the compacted one, and a newer one that somebody went back from.
    assert made.run(date="2026-11-06").current
    with VersionBook(home) as book:
        book.rollback(day.version_id)
    before = _size(made.home / "data")
    gone = maintain(home, grace_hours=0, keep_versions=1, log=lambda _: None)["versions"]
    assert old in gone
    assert len(gone) == 4, "the days, and what they stand on"
    assert [v for v in gone if list((made.home / "versions" / v).glob("domain=*/*"))] == []
    assert _size(made.home / "data") < before
    maintain(home, grace_hours=0, keep_versions=1, log=lambda _: None)
    assert made.fates(day.version_id) == fates == other.fates(plain.version_id)
    made.verify(day.version_id)
    _, told = lineage_of(made.home, None, fates["d02.md"][2])
    assert told["fate"] == "exported"
    found = diff_of(made.home, done.version_id, day.version_id)["documents"]
    same = diff_of(other.home, old, plain.version_id)["documents"]
    assert found == same
    made.put("last.md", near(TEXTS[22], "z"))
    made.put("fresh.md", TEXTS[42])
    day, plain = made.day(7), other.day(7)
    assert made.fates(day.version_id) == other.fates(plain.version_id)
    assert totals(made, day.version_id) == totals(other, plain.version_id)
    made.verify(day.version_id)


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


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


def test_what_became_current_meanwhile_stays_and_a_person_is_asked(tmp_path: Path) -> None:
    made = chain(tmp_path)
    old = current(made)

    def full() -> None:
        assert made.run(date="2026-11-05", set=["output.version=h"], promote=True).current

    done = compacted(made, hooks=At("before pointer publish", full))
    assert (done.state, done.current) == ("AWAITING_APPROVAL", False)
    assert "is current now" in done.message
    assert "-full-" in current(made)
    with VersionBook(open_home(made.home, create=False)) as book:
        [row] = [v for v in book.list() if v["version"] == done.version_id]
        assert (row["state"], row["current"]) == ("WAITING", False)
        assert "is current now" in row["waits"]
        book.approve(done.version_id, who="li")
    assert current(made) == done.version_id
    made.verify(done.version_id)
    assert made.fates(done.version_id) == made.fates(old)


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


def reversed_rows(path: Path, tables: Iterable[pa.Table], schema: pa.Schema) -> None:
    whole = pa.concat_tables(list(tables))
    _write(path, iter([whole.take(pa.array(range(whole.num_rows))[::-1])]), schema)


def last_row_lost(path: Path, tables: Iterable[pa.Table], schema: pa.Schema) -> None:
    whole = pa.concat_tables(list(tables))
    _write(path, iter([whole.slice(0, whole.num_rows - 1)]), schema)


_write = parquet.write


@pytest.mark.parametrize(
    ("fault", "told"), [(reversed_rows, "another order"), (last_row_lost, "rows before")]
)
def test_other_rows_or_another_order_are_never_published(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: Any, told: str
) -> None:
    made = chain(tmp_path)
    old, before = current(made), published(made.home)
    monkeypatch.setattr(parquet, "write", fault)
    with pytest.raises(ContentMismatch, match=told):
        compacted(made)
    assert (current(made), published(made.home)) == (old, before)


def test_a_damaged_shard_stops_it_and_says_which(tmp_path: Path) -> None:
    made = chain(tmp_path)
    shard = sorted((made.home / "versions" / current(made)).glob("domain=*/*"))
    version = current(made)
    if not shard:
        version = open_version(open_home(made.home), made.state(), version).parts[0].record.version_id
        shard = sorted((made.home / "versions" / version).glob("domain=*/*"))
    data = bytearray(shard[0].read_bytes())
    data[len(data) // 2] ^= 1
    shard[0].write_bytes(data)
    with pytest.raises(BaseDamaged, match=shard[0].name):
        compacted(made)
    assert "compact" not in current(made)


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
    assert current(made) == day.version_id != old
    assert maintain(home, log=told.append)["compacted"] == [day.version_id]
    assert "-compact-" in current(made)
    assert maintain(home, log=told.append)["compacted"] == []
    with VersionBook(home) as book:
        book.rollback(day.version_id)
    assert maintain(home, log=told.append)["compacted"] == [], "a person went back: it stays so"
    assert current(made) == day.version_id


def once(home: Path, expect: int = 0, **options: Any) -> dict[str, Any]:
    command = [sys.executable, "-m", "tests.pipeline.compact_once", str(home), json.dumps(options)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == expect, done.stderr[-4000:]
    return json.loads(done.stdout) if expect == 0 else {}


def test_two_at_a_time_are_one(tmp_path: Path) -> None:
    made = chain(tmp_path)
    reference = twin(made, "reference")
    compacted(reference)
    with ThreadPoolExecutor(2) as pool:
        one, two = pool.map(lambda _: once(made.home), range(2))
    assert one["version"] == two["version"] == current(made)
    assert published(made.home) == published(reference.home)


@pytest.fixture(scope="module")
def killed_where(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[Growing, list[str], dict[str, str]]]:
    made = chain(tmp_path_factory.mktemp("killed"))
    reference = twin(made, "reference")
    points = made.root / "points"
    once(reference.home, record=str(points))
    return made, list(dict.fromkeys(points.read_text().splitlines())), published(reference.home)


@pytest.mark.crash
@pytest.mark.timeout(600)
@pytest.mark.parametrize("half", [0, 1])
def test_killed_at_every_point_in_turn(killed_where: Any, half: int) -> None:
    made, points, wanted = killed_where
    assert {"before publish pack", "after commit trace", "after pointer publish"} <= set(points)
    home = twin(made, f"again-{half}")
    for number, point in enumerate(points[half::2]):
        marker = str(made.root / f"killed-{half}-{number}")
        once(home.home, expect=-signal.SIGKILL, kill=point, marker=marker)
        # Whatever was left: the version that was read before is there, whole, or the new one is.
        home.verify(current(home))
    done = once(home.home)
    assert published(home.home) == wanted
    assert done["current"]
    home.verify(current(home))
    with home.state() as state:
        [record] = [v for v in state.versions() if v.is_compact]
        assert (record.is_current, record.state) == (True, "PUBLISHED")
        assert not state.live_runs()


def test_full_shards_are_linked_and_not_written_again(tmp_path: Path) -> None:
    made = Growing(tmp_path)
    first = first_day(made)
    for day in range(2, 6):
        made.put(f"day-{day}.md", TEXTS[20 + day])
        made.day(day)
    old = current(made)
    before = rows(made, old)
    done = compacted(made)
    assert done.facts["taken_over"] >= 1 < done.facts["shards"]
    assert rows(made, done.version_id) == before
    made.verify(done.version_id)
    folders = [made.home / "versions" / version for version in (first, done.version_id)]
    inodes = [{path.stat().st_ino for path in folder.glob("domain=*/*")} for folder in folders]
    assert len(inodes[0] & inodes[1]) == done.facts["taken_over"]
