"""Kernels in an install that the user may not write to, and without a home."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

import dataflow_ops

SCRIPT = """
import os, sys
sys.path.insert(0, sys.argv[1])
{first}
from dataflow_ops.kernels import unionfind
assert unionfind.__file__.startswith(sys.argv[1]), unionfind.__file__
import numpy as np
from numba import njit
{call}
print(os.environ.get("NUMBA_CACHE_DIR", ""))
"""
CALL = """
from dataflow_ops.layers.mix.difficulty import difficulty
import pyarrow as pa
print(difficulty(pa.array(["a b."]), np.array(["prose"], object), np.array(["latin"], object))[0])
"""


@pytest.fixture
def install(tmp_path: Path) -> Path:
    """A copy of the package without compiled code, read-only."""
    root = tmp_path / "install"
    package = Path(dataflow_ops.__file__).parent
    for part in ("__init__.py", "kernels", "layers/__init__.py", "layers/mix"):
        target = root / "dataflow_ops" / part
        target.parent.mkdir(parents=True, exist_ok=True)
        source = package / part
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
        elif source.exists():
            shutil.copy(source, target)
    # A file in place of each folder for compiled code: it can't be written to by root either.
    for folder in [p for p in root.rglob("*") if p.is_dir()]:
        (folder / "__pycache__").write_text("")
    return root


def run(install: Path, first: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
    kept: Mapping[str, str] = {
        k: v
        for k, v in os.environ.items()
        if k not in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME", "HOME", "PYTHONPATH")
    }
    return subprocess.run(
        [sys.executable, "-B", "-c", SCRIPT.format(first=first, call=CALL), str(install)],
        env={**kept, **environment},
        cwd=install.parent,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def temporary(tmp_path: Path) -> Path:
    folder = tmp_path / "tmp"
    folder.mkdir()
    return folder


@pytest.mark.parametrize("first", ["", "import numba"])
def test_a_temporary_folder_serves_when_nothing_else_is_writable(
    install: Path, temporary: Path, first: str
) -> None:
    done = run(install, first, HOME="/dev/null", TMPDIR=str(temporary))
    assert done.returncode == 0, done.stderr
    folder = temporary / f"dataflow-numba-{os.getuid()}"
    assert done.stdout.split() == ["easy", str(folder)]
    assert folder.stat().st_mode & 0o777 == 0o700
    assert list(folder.rglob("*.nbi"))
    assert run(install, first, HOME="/dev/null", TMPDIR=str(temporary)).stdout == done.stdout


def test_a_folder_that_others_prepared_is_not_used(install: Path, temporary: Path) -> None:
    folder = temporary / f"dataflow-numba-{os.getuid()}"
    folder.mkdir()
    folder.chmod(0o777)
    done = run(install, HOME="/dev/null", TMPDIR=str(temporary))
    assert done.returncode == 0, done.stderr
    used = Path(done.stdout.split()[1])
    assert used.parent == temporary
    assert used != folder
    assert not any(folder.iterdir())


def test_the_users_cache_comes_first(install: Path, temporary: Path, tmp_path: Path) -> None:
    done = run(install, HOME=str(tmp_path / "home"), TMPDIR=str(temporary))
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["easy"]
    assert list((tmp_path / "home" / ".cache" / "numba").rglob("*.nbi"))


def test_what_a_person_set_stays(install: Path, temporary: Path, tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    done = run(install, HOME="/dev/null", TMPDIR=str(temporary), NUMBA_CACHE_DIR=str(own))
    assert done.stdout.split() == ["easy", str(own)], done.stderr
