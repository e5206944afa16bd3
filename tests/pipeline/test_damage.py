"""Stored bytes that rot, shrink or vanish are noticed, put aside and made again, with the same result."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.pipeline import inside
from tests.pipeline.inside import published


def flip(path: Path) -> None:
    """One bit in the middle, as a disk would: size and time of the file stay."""
    status = path.stat()
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-10])


def largest(home: Path, pattern: str) -> Path:
    return max(home.glob(pattern), key=lambda p: (p.stat().st_size, p.name))


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return inside.sources(tmp_path_factory.mktemp("damage") / "in", run="max_attempts: 1")


@pytest.fixture(scope="module")
def scored(job: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home in which everything up to ``score`` is done."""
    home = tmp_path_factory.mktemp("scored") / "home"
    inside.run(job, home, until="score")
    return home


@pytest.fixture(scope="module")
def wanted(job: Path, scored: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    home = tmp_path_factory.mktemp("reference") / "home"
    shutil.copytree(scored, home)
    inside.run(job, home)
    return published(home)


TEXT = "data/parse/*/*.text.parquet"


@pytest.mark.parametrize(
    ("pattern", "hurt"),
    [
        (TEXT, flip),
        (TEXT, cut),
        (TEXT, os.unlink),
        ("data/discover/*/*.chunks.parquet", flip),
        ("data/discover/*/*.files.parquet", os.unlink),
    ],
)
def test_an_output_that_later_steps_read(
    job: Path,
    scored: Path,
    wanted: dict[str, str],
    tmp_path: Path,
    pattern: str,
    hurt: Callable[[Path], None],
) -> None:
    home = tmp_path / "home"
    shutil.copytree(scored, home)
    hurt(largest(home, pattern))
    notes = inside.Notes()
    assert inside.run(job, home, notes).state == "SUCCEEDED"
    assert published(home) == wanted
    assert any("made again" in note for note in notes.notes)
    aside = [p for p in (home / "quarantine").rglob("*") if p.is_file()]
    assert len(aside) == (hurt is not os.unlink)


@pytest.mark.parametrize("pattern", ["data/export/*/*.parquet", "data/scatter/*/*.fates.parquet"])
def test_a_shard_that_rotted_before_it_was_shipped(
    job: Path, scored: Path, wanted: dict[str, str], tmp_path: Path, pattern: str
) -> None:
    home = tmp_path / "home"
    shutil.copytree(scored, home)
    hooks = inside.At("before publish publish", stop)
    with pytest.raises(KeyboardInterrupt):
        inside.run(job, home, hooks=hooks)
    flip(largest(home, pattern))
    notes = inside.Notes()
    assert inside.run(job, home, notes).state == "SUCCEEDED"
    assert published(home) == wanted
    assert any("made again" in note for note in notes.notes)


def stop() -> None:
    raise KeyboardInterrupt


def test_a_published_shard_that_rots_is_mended_by_the_next_run(
    job: Path, scored: Path, wanted: dict[str, str], tmp_path: Path
) -> None:
    """It is one file with the output behind it: both are put aside, made again and linked anew."""
    home = tmp_path / "home"
    shutil.copytree(scored, home)
    inside.run(job, home)
    shard = largest(home, "versions/*/domain=*/part-*.parquet")
    shard.chmod(0o644)
    data = bytearray(shard.read_bytes())
    data[len(data) // 2] ^= 1
    shard.write_bytes(data)  # another time: what an editor, not a disk, would leave
    notes = inside.Notes()
    inside.run(job, home, notes)
    assert any("the published copy is damaged" in note for note in notes.notes)
    assert published(home) == wanted
    assert list((home / "quarantine" / "versions").rglob("part-*"))
