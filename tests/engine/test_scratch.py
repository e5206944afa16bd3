"""Scratch folders of killed processes are swept, also by two runs at once."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from dataflow_ops.engine import scratch


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def gone() -> int:
    """Process id of a process that has ended."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def test_folders_of_the_dead_go_and_those_of_the_living_stay(temporary: Path) -> None:
    left = temporary / f"dataflow-{gone()}-1-exact-abc"
    left.mkdir()
    (left / "rows").write_bytes(b"x")
    with scratch.scratch_folder("exact") as mine:
        assert scratch.sweep_scratch() == 1
        assert mine.is_dir()
    assert list(temporary.iterdir()) == []


def test_a_folder_that_another_run_removes_meanwhile_is_no_fault(
    temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pid = gone()
    for name in "ab":
        (temporary / f"dataflow-{pid}-1-exact-{name}").mkdir()
    listed = os.scandir

    def scandir_then_vanish(path: str) -> Iterator[os.DirEntry[str]]:
        entries = list(listed(path))
        os.rmdir(entries[0].path)
        return iter(entries)

    with monkeypatch.context() as during:
        during.setattr(scratch.os, "scandir", scandir_then_vanish)
        during.setattr(scratch.shutil, "rmtree", lambda path, ignore_errors: None)
        assert scratch.sweep_scratch() == 1
