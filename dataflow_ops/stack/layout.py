"""Where the stack keeps its files, below ``<home>/stack``."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Layout:
    """Paths of one stack."""

    home: Path

    @property
    def folder(self) -> Path:
        """Everything but data sets."""
        return self.home / "stack"

    @property
    def airflow(self) -> Path:
        """Airflow's own home: its task logs are in ``logs``."""
        return self.folder / "airflow"

    @property
    def logs(self) -> Path:
        """One log per component."""
        return self.folder / "logs"

    @property
    def pids(self) -> Path:
        """One record per started process."""
        return self.folder / "pids"

    @property
    def secrets(self) -> Path:
        """Generated passwords and keys."""
        return self.folder / "secrets.json"

    @property
    def plan(self) -> Path:
        """What the supervisor keeps running."""
        return self.folder / "plan.json"

    @property
    def api(self) -> Path:
        """Address and login of the API."""
        return self.folder / "api.json"

    @property
    def connect(self) -> Path:
        """State and Redis, for command lines that work on this home."""
        return self.folder / "connect.json"

    @property
    def environment(self) -> Path:
        """All variables, to be sourced by a shell."""
        return self.folder / "airflow.env"

    @property
    def prepared(self) -> Path:
        """Says for which versions and settings the databases were prepared."""
        return self.folder / "prepared.json"

    @property
    def redis(self) -> Path:
        """Redis' files."""
        return self.folder / "redis"

    @property
    def store(self) -> Path:
        """The object store's data: data sets may be there, so they outlive the stack's folder."""
        return self.home / "object-store"

    def log(self, component: str) -> Path:
        """The component's log."""
        return self.logs / f"{component}.log"

    def make(self) -> None:
        """Create the folders; only their owner, and the servers' accounts on their way, get in."""
        self.home.mkdir(parents=True, exist_ok=True)
        for folder in (self.folder, self.airflow, self.logs, self.pids, self.redis, self.store):
            folder.mkdir(exist_ok=True)
        self.folder.chmod(0o711)
        for folder in (self.airflow, self.logs, self.pids, self.redis, self.store):
            folder.chmod(0o700)


def write_private(path: Path, text: str) -> None:
    """Replace a file in one step; only its owner may read it, at no moment anybody else."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.unlink(missing_ok=True)
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(descriptor)
    os.replace(temporary, path)


def write_json(path: Path, value: object) -> None:
    """:func:`write_private` of a JSON document."""
    write_private(path, json.dumps(value, indent=2, sort_keys=True) + "\n")


def read_json(path: Path) -> Any:
    """The document, or None where there is none."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
