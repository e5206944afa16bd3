"""A full disk ends the run with a plain word, breaks nothing, costs no attempt; with room the run goes on."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from dataflow_ops.errors import StorageFull
from dataflow_ops.state.store import StateStore
from tests.pipeline import inside
from tests.pipeline.child import ROOT
from tests.pipeline.inside import published
from tests.storage.power_cut import FullDisk


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return inside.sources(tmp_path_factory.mktemp("full") / "in", run="max_attempts: 1")


@pytest.fixture(scope="module")
def wanted(job: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    home = tmp_path_factory.mktemp("reference")
    inside.run(job, home)
    return published(home)


def assert_nothing_is_broken(root: Path) -> None:
    """Every file under a final name is a whole Parquet file: the last four bytes are its magic."""
    for path in (root / "data").rglob("*.parquet"):
        assert path.read_bytes()[-4:] == b"PAR1" or path.stat().st_size == 0
        if path.stat().st_size and not path.name.count(".files."):
            pq.ParquetFile(path)
    assert not list(root.rglob("*.tmp_*"))


def test_the_seam_runs_full_at_many_bytes_and_steps(
    job: Path, wanted: dict[str, str], tmp_path: Path
) -> None:
    """One home meets a full disk again and again; with one attempt a task, none may be used up."""
    home = tmp_path / "home"
    disks = [FullDisk(refuse=step) for step in ("mkdir", "create", "write", "fsync", "link")]
    disks += [FullDisk(room=room) for room in (10_000, 60_000, 90_000, 120_000, 150_000)]
    for disk in disks:
        with pytest.raises(StorageFull, match="no space left"):
            inside.run(job, home, tuning={"disk": disk, "stage_every_s": 0.0})
        assert_nothing_is_broken(home)
    assert inside.run(job, home).state == "SUCCEEDED"
    assert published(home) == wanted


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of one megabyte and a half."""
    folder = tmp_path / "small"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=1536k", "none", str(folder)]
    if os.getuid() != 0 or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("only root may mount a small file system")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.mark.parametrize("workers", ["0", "2"])
def test_a_real_disk_that_holds_state_and_storage(
    job: Path, wanted: dict[str, str], small_disk: Path, workers: str
) -> None:
    # An attempt whose end the full database could not record counts as a silent death.
    attempts = ["--set", "run.max_attempts=3", "--promote"]

    def dataflow() -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "dataflow_ops.cli.main", "run", str(job), "--home", str(small_disk)]
        return subprocess.run(
            [*command, "--workers", workers, *attempts],
            cwd=ROOT,
            text=True,
            capture_output=True,
            check=False,
            timeout=120,
        )

    filler = small_disk / "filler"
    filler.write_bytes(bytes(700_000))
    for _ in range(2):
        full = dataflow()
        assert full.returncode == 1, full.stderr
        assert "no space left" in full.stderr or "disk is full" in full.stderr, full.stderr
        assert "Free some space and run the same command again" in full.stderr
        assert "Traceback" not in full.stderr
        assert_nothing_is_broken(small_disk)
    filler.unlink()
    subprocess.run(["mount", "-o", "remount,size=64m", str(small_disk)], check=True)
    after = dataflow()
    assert after.returncode == 0, after.stderr
    state = StateStore(f"sqlite:///{small_disk}/state.db")
    assert state.list_runs()[0].state == "SUCCEEDED"
    state.close()
    assert {p.partition("/")[2]: sha for p, sha in published(small_disk).items() if "/" in p} == {
        p.partition("/")[2]: sha for p, sha in wanted.items() if "/" in p
    }
