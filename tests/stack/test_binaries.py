from __future__ import annotations

from pathlib import Path

import pytest

from dataflow_ops.errors import ConfigError
from dataflow_ops.stack.binaries import find_programs


def _program(folder: Path, name: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text("#!/bin/sh\n", encoding="utf-8")
    path.chmod(0o755)
    return path


def test_each_missing_program_is_named_with_its_packages(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        find_programs(str(tmp_path), folders=())
    told = str(caught.value)
    for part in ("initdb", "redis-server", "apt install postgresql", "dnf install postgresql-server", "brew"):
        assert part in told


def test_only_what_is_missing_is_named(tmp_path: Path) -> None:
    _program(tmp_path, "initdb")
    _program(tmp_path, "postgres")
    with pytest.raises(ConfigError) as caught:
        find_programs(str(tmp_path), folders=())
    assert "redis-server: not found" in str(caught.value)
    assert "initdb" not in str(caught.value)


def test_the_newest_postgresql_of_debian_wins_and_both_programs_are_of_one_version(tmp_path: Path) -> None:
    for version in ("9.6", "15", "17"):
        _program(tmp_path / version / "bin", "postgres")
        _program(tmp_path / version / "bin", "initdb")
    (tmp_path / "17" / "bin" / "initdb").unlink()
    _program(tmp_path / "path", "redis-server")
    found = find_programs(str(tmp_path / "path"), folders=(f"{tmp_path}/*/bin",))
    assert found["initdb"] == str(tmp_path / "15" / "bin" / "initdb")
    assert found["postgres"] == str(tmp_path / "15" / "bin" / "postgres")


def test_the_path_serves_where_no_folder_does(tmp_path: Path) -> None:
    paths = {name: str(_program(tmp_path, name)) for name in ("initdb", "postgres", "redis-server")}
    assert find_programs(str(tmp_path), folders=(f"{tmp_path}/none/*/bin",)) == paths
