"""Compaction: one version instead of a chain, with the same rows, and days above it that find the same."""

from __future__ import annotations

import json
import re
import signal
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from dataflow_ops.errors import BaseDamaged, ContentMismatch, VersionError
from dataflow_ops.layers.export.exporters import parquet
from dataflow_ops.pipeline.diff import diff_of
from dataflow_ops.pipeline.home import open_home
from dataflow_ops.pipeline.look import lineage_of
from dataflow_ops.pipeline.maintenance import maintain
from dataflow_ops.pipeline.version_reader import open_version
from dataflow_ops.pipeline.versions import VersionBook
from tests.pipeline.compacting import chain, compacted, current, later, once, rows, totals, twin
from tests.pipeline.growing import TEXTS, Growing, first_day, near
from tests.pipeline.inside import published

pytestmark = pytest.mark.xdist_group("compact")


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


def test_its_report_says_what_it_holds_and_from_which_versions(tmp_path: Path) -> None:
    made = chain(tmp_path)
    with made.state() as state:
        names = [record.version_id for record in reversed(state.versions("grows"))]
    done = compacted(made)
    folder = made.home / "versions" / done.version_id
    report, manifest = (json.loads((folder / f"{name}.json").read_text()) for name in ("report", "manifest"))
    sums, held = report["summary"], rows(made, done.version_id)
    assert (sums["documents_out"], sums["tokens_out"]) == (len(held), sum(row["tokens"] for row in held))
    assert (sums["shards"], sums["dead"]) == (len(manifest["shards"]), manifest["dead_letters"])
    by_language = Counter(row["language"] for row in held)
    assert {one["name"]: one["documents"] for one in report["shares"]["language"]} == by_language
    assert [one["version"] for one in report["compacted"]["versions"]] == names
    assert report["compacted"]["version"] == names[-1]
    page = (folder / "report.html").read_text()
    words = " ".join(re.sub(r"<[^>]+>", " ", page).split())
    assert f"It holds {len(held)} documents with" in words
    assert all(name in words for name in names)
    for untold in ("records came in", "Nothing to show", "No rule removed anything", "Everything parsed"):
        assert untold not in words
    # Compacted again, nothing runs; the report stays as it is.
    compacted(made)
    assert json.loads((folder / "report.json").read_text()) == report


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


def test_lineage_of_a_removed_version_that_nothing_needs_is_gone_and_not_empty(tmp_path: Path) -> None:
    made = Growing(tmp_path)
    first = first_day(made)
    for number in range(2):
        made.put(f"more-{number}.md", TEXTS[20 + number])
        made.run()
    home = open_home(made.home)
    assert first in maintain(home, grace_hours=0, keep_versions=1, log=lambda _: None)["versions"]
    with made.state() as state:
        opened = open_version(home, state, first)
        assert opened.lineage
        with pytest.raises(VersionError, match=f"^{first} can't be read, its files were removed"):
            opened.reader.read(next(iter(opened.lineage.values())))
