"""Server programs: where they are, and which package brings one that is not there."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dataflow_ops.errors import ConfigError

_FOLDERS = ("/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/opt/homebrew/opt/postgresql@*/bin")
"""Where Debian, Red Hat's PostgreSQL repository and Homebrew keep what is not on PATH."""


@dataclass(frozen=True)
class Program:
    """A server program and the packages that bring it."""

    name: str
    debian: str
    fedora: str
    homebrew: str

    def hint(self) -> str:
        """How to get it."""
        return (
            f"{self.name}: not found; Debian or Ubuntu: apt install {self.debian},"
            f" Fedora: dnf install {self.fedora}, macOS: brew install {self.homebrew}"
        )


PROGRAMS = (
    Program("initdb", "postgresql", "postgresql-server", "postgresql@17"),
    Program("postgres", "postgresql", "postgresql-server", "postgresql@17"),
    Program("redis-server", "redis-server", "valkey-compat-redis", "redis"),
)


def find_programs(path: str | None = None, folders: Sequence[str] = _FOLDERS) -> dict[str, str]:
    """Full path by name; PostgreSQL's two always from the same folder, the newest version first.

    Args:
        path: search path instead of ``PATH``.
        folders: glob patterns of further folders.

    Raises:
        ConfigError: something is missing; names the package that brings it.
    """
    import importlib.util

    searched = [Path(match) for pattern in folders for match in _newest_first(pattern)]
    found: dict[str, str] = {}
    for folder in searched:
        if (folder / "initdb").is_file() and (folder / "postgres").is_file():
            found = {name: str(folder / name) for name in ("initdb", "postgres")}
            break
    for program in PROGRAMS:
        hit = found.get(program.name) or shutil.which(program.name, path=path)
        if hit:
            found[program.name] = hit
    missing = [program.hint() for program in PROGRAMS if program.name not in found]
    if importlib.util.find_spec("airflow") is None:
        missing.append(f"airflow: not installed for {sys.executable}; `make up` sets everything up")
    if missing:
        raise ConfigError("the stack needs programs that are not here:\n  " + "\n  ".join(missing))
    return found


def _newest_first(pattern: str) -> list[str]:
    root = Path(pattern).anchor
    return sorted(
        (str(path) for path in Path(root).glob(str(Path(pattern).relative_to(root)))),
        key=_version,
        reverse=True,
    )


def _version(folder: str) -> float:
    digits = "".join(c if c.isdigit() or c == "." else " " for c in Path(folder).parent.name).split()
    try:
        return float(digits[0]) if digits else 0.0
    except ValueError:
        return 0.0
