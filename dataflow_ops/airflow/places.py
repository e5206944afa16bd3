"""Where the DAGs find things: read from the environment, which every Airflow process shares."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

RETRIES: Final = 8
"""Of each Airflow task. They cover lost workers: what fails in a chunk is tried again inside the task.

More than ``run.max_attempts`` (3), so that a chunk that kills its whole task each time is given up before it.
"""


def home() -> Path:
    """DataFlow's home folder: ``DATAFLOW_HOME``, default ``.dataflow`` beside the repository's ``dags``."""
    return Path(os.environ.get("DATAFLOW_HOME") or _repository() / ".dataflow").absolute()


def jobs() -> Path:
    """Folder of job files: ``DATAFLOW_JOBS``, default ``jobs`` beside the repository's ``dags``."""
    return Path(os.environ.get("DATAFLOW_JOBS") or _repository() / "jobs").absolute()


def templates() -> Path:
    """Folder of templates of augmentations: ``DATAFLOW_TEMPLATES``, default ``templates`` in the home."""
    return Path(os.environ.get("DATAFLOW_TEMPLATES") or home() / "templates").absolute()


def sample_files(home: str | Path) -> Path:
    """Folder below which files of dialogues may be named for import.

    ``DATAFLOW_SAMPLE_FILES``, default ``samples`` in DataFlow's home. Whoever may start a run must not read
    what lies elsewhere on the worker.
    """
    return Path(os.environ.get("DATAFLOW_SAMPLE_FILES") or Path(home) / "samples").absolute()


def cores() -> int:
    """Worker processes inside one task: ``DATAFLOW_CORES_PER_TASK``, default 1."""
    return max(1, _number("DATAFLOW_CORES_PER_TASK", 1))


def retries() -> int:
    """Retries of a task: ``DATAFLOW_TASK_RETRIES``, default :data:`RETRIES`."""
    return max(0, _number("DATAFLOW_TASK_RETRIES", RETRIES))


def cold_after_days() -> int:
    """Age from which maintenance moves files to the cold tier: ``DATAFLOW_COLD_AFTER_DAYS``, default 7."""
    from dataflow_ops.pipeline.cooling import AFTER_DAYS

    return _number("DATAFLOW_COLD_AFTER_DAYS", AFTER_DAYS)


def _number(name: str, default: int) -> int:
    value = os.environ.get(name, "").strip()
    if not value:
        return default
    if not value.isdecimal():
        from dataflow_ops.errors import ConfigError

        raise ConfigError(f"{name}={value!r}: give a whole number, such as {default}")
    return int(value)


def _repository() -> Path:
    return Path(__file__).resolve().parents[2]
