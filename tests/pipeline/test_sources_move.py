"""Sources that change, vanish or are no files at all while a run reads them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from dataflow_ops.errors import SourceChanged
from dataflow_ops.pipeline.letters import list_letters
from tests.pipeline import inside
from tests.pipeline.inside import published


@pytest.fixture
def job(tmp_path: Path) -> Path:
    return inside.sources(tmp_path / "in", files=6, run="max_attempts: 1, max_dead_share: 0.5")


def a_note(job: Path) -> Path:
    return job.parent / "notes" / "note-002.md"


def once(act: Callable[[], None]) -> Callable[[], None]:
    left = [act]
    return lambda: left.pop()() if left else None


def swap_words(path: Path) -> None:
    """Other bytes of the same length, at another time."""
    text = path.read_bytes()
    path.write_bytes(text.replace(b"the", b"THE"))
    os.utime(path, (1_900_000_000, 1_900_000_000))


def test_changed_between_listing_and_reading(job: Path, tmp_path: Path) -> None:
    notes = inside.Notes()
    hooks = inside.At("before publish parse", once(lambda: swap_everything(job)))
    assert inside.run(job, tmp_path / "home", notes, hooks=hooks).state == "SUCCEEDED"
    assert any("listed again" in note for note in notes.notes)
    inside.run(job, tmp_path / "fresh")
    assert published(tmp_path / "home") == published(tmp_path / "fresh")


def swap_everything(job: Path) -> None:
    for path in (job.parent / "notes").iterdir():
        swap_words(path)


def test_changed_with_size_and_time_as_they_were(job: Path, tmp_path: Path) -> None:
    """The listing can't tell; the bytes can: what was fetched is put aside and fetched again."""

    def swap() -> None:
        for path in (job.parent / "notes").iterdir():
            status = path.stat()
            path.write_bytes(path.read_bytes().replace(b"the", b"THE"))
            os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))

    hooks = inside.At("after commit fetch", once(swap))
    assert inside.run(job, tmp_path / "home", hooks=hooks).state == "SUCCEEDED"
    inside.run(job, tmp_path / "fresh")
    assert published(tmp_path / "home") == published(tmp_path / "fresh")


def test_changed_every_time_it_is_looked_at(job: Path, tmp_path: Path) -> None:
    """The run gives up with a word; when the file holds still, the next run succeeds."""
    clock = iter(range(10_000))

    def change() -> None:
        for path in (job.parent / "notes").iterdir():
            text = path.read_bytes()
            path.write_bytes(b"%04d" % next(clock) + text[4:])

    hooks = inside.At("before publish fetch", change)
    with pytest.raises(SourceChanged, match="changed after it was fetched"):
        inside.run(job, tmp_path / "home", hooks=hooks)
    assert inside.run(job, tmp_path / "home").state == "SUCCEEDED"
    inside.run(job, tmp_path / "fresh")
    assert published(tmp_path / "home") == published(tmp_path / "fresh")


@pytest.mark.parametrize("point", ["before publish discover", "before publish fetch"])
def test_vanished(job: Path, tmp_path: Path, point: str) -> None:
    hooks = inside.At(point, once(a_note(job).unlink))
    ended = inside.run(job, tmp_path / "home", hooks=hooks)
    assert ended.state == "SUCCEEDED_WITH_DEAD"
    _, letters = list_letters(tmp_path / "home", None, 10)
    assert [(row["path"], row["level"]) for row in letters] == [("note-002.md", "file")]
    assert "No such file" in letters[0]["message"] or "vanished" in letters[0]["message"]


def test_things_that_are_no_files(job: Path, tmp_path: Path) -> None:
    inside.run(job, tmp_path / "plain")
    folder = job.parent / "notes"
    os.mkfifo(folder / "pipe.md")
    (folder / "circle").symlink_to(folder, target_is_directory=True)
    (folder / "self.md").symlink_to(folder / "self.md")
    (folder / "nowhere.md").symlink_to(folder / "absent.md")
    notes = inside.Notes()
    inside.run(job, tmp_path / "home", notes)
    skipped = notes.reports["discover"].counts.skipped
    assert skipped == {"special": 1, "symlink_broken": 2, "symlink_folder": 1}
    parts = {k: v for k, v in published(tmp_path / "home").items() if "part-" in k}
    assert sorted(parts.values()) == sorted(
        v for k, v in published(tmp_path / "plain").items() if "part-" in k
    )


@pytest.mark.skipif(os.getuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read(job: Path, tmp_path: Path) -> None:
    a_note(job).chmod(0)
    assert inside.run(job, tmp_path / "home").state == "SUCCEEDED_WITH_DEAD"


def test_a_fifo_that_takes_the_place_of_a_listed_file(job: Path, tmp_path: Path) -> None:
    def become_a_fifo() -> None:
        a_note(job).unlink()
        os.mkfifo(a_note(job))

    hooks = inside.At("before publish discover", once(become_a_fifo))
    ended = inside.run(job, tmp_path / "home", hooks=hooks)
    assert ended.state == "SUCCEEDED_WITH_DEAD"


def test_no_documents_at_all(tmp_path: Path) -> None:
    job = inside.sources(tmp_path / "in", files=2)
    shutil.rmtree(tmp_path / "in" / "notes")
    (tmp_path / "in" / "notes").mkdir()
    (tmp_path / "in" / "rows" / "rows.jsonl").write_text("")
    ended = inside.run(job, tmp_path / "home")
    assert ended.state == "SUCCEEDED"
    assert "0 documents" in ended.message
    assert published(tmp_path / "home")


def test_four_workers_for_one_chunk(tmp_path: Path) -> None:
    job = inside.sources(tmp_path / "in", files=3, chunk_mb=1)
    shutil.rmtree(tmp_path / "in" / "rows")
    (tmp_path / "in" / "rows").mkdir()
    (tmp_path / "in" / "rows" / "none.jsonl").write_text("")
    made = []
    for workers in (4, 0):
        home = tmp_path / str(workers)
        inside.run(job, home, workers=workers, until="filter")
        made.append({p.relative_to(home): p.read_bytes() for p in home.glob("data/*/*/*.parquet")})
    assert made[0] == made[1]
    assert len(made[0]) > 4
