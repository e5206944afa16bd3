from __future__ import annotations

import subprocess
from collections import Counter
from pathlib import Path

import pytest

from dataflow_ops.layers.ingest.sources import KINDS
from dataflow_ops.layers.ingest.sources.vendored import is_vendored
from dataflow_ops.source_settings import SourceSettings

LOCKS = [
    *("requirements.lock", "requirements-dev.lock", "requirements-lock.txt", "requirements.lock.txt"),
    *("poetry.lock", "Pipfile.lock", "pdm.lock", "uv.lock", "pixi.lock", "conda-lock.yml"),
    *("package-lock.json", "npm-shrinkwrap.json", "yarn.lock", "pnpm-lock.yaml", "bun.lock", "bun.lockb"),
    *("deno.lock", "Cargo.lock", "Gemfile.lock", "composer.lock", "go.sum", "go.work.sum", "flake.lock"),
    *("packages.lock.json", "project.assets.json", "mix.lock", "pubspec.lock", "Podfile.lock", "renv.lock"),
    *("gradle.lockfile", "Package.resolved", "stack.yaml.lock", "MODULE.bazel.lock", "cabal.project.freeze"),
]
WRITTEN = [
    *("lock.py", "block.c", "locked.md", "clock.json", "package.json", "go.mod", "requirements.txt", "lock"),
    *("file-lock.ts", "pessimistic-lock.json", "sum.go", "resolved.py", "lock.yaml", "unresolved.md"),
]


@pytest.mark.parametrize("name", LOCKS)
def test_lock_files_are_not_written_by_people(name: str) -> None:
    assert is_vendored(name) == name
    assert is_vendored(f"deep/in/{name.upper()}") == name.upper()


@pytest.mark.parametrize("name", WRITTEN)
def test_names_that_only_look_alike_stay(name: str) -> None:
    assert is_vendored(name) == ""


def test_git_counts_them_and_takes_the_one_that_is_named(tmp_path: Path) -> None:
    for name in ("a.py", "requirements.lock", "web/yarn.lock", "go.sum"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("words\n")
    for command in (["init", "-q"], ["add", "."]):
        subprocess.run(["git", *command], cwd=tmp_path, check=True)

    def listed(*include: str) -> tuple[list[str], Counter[str]]:
        left_out: Counter[str] = Counter()
        source = SourceSettings(kind="git", path=str(tmp_path), source_id="s", include=include)
        return [f.path for f in KINDS["git"](source, left_out)], left_out

    assert listed() == (["a.py"], {"vendored": 3})
    assert listed("go.sum", "*.py") == (["a.py", "go.sum"], {"not_included": 2})
