"""A worker on another host: started from a copy of the stack's ``airflow.env``."""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from dataflow_ops.errors import ConfigError
from dataflow_ops.stack.components import celery_arguments
from dataflow_ops.stack.environment import LOCAL_SETTINGS
from dataflow_ops.stack.layout import Layout, read_json
from dataflow_ops.stack.settings import StackSettings

_NEEDED = ("DATAFLOW_HOME", "DATAFLOW_STATE_URL", "AIRFLOW__CELERY__BROKER_URL")


def read_environment(path: Path) -> dict[str, str]:
    """The variables of an ``airflow.env``.

    Raises:
        ConfigError: no such file, or not one that ``dataflow stack up`` wrote.
    """
    try:
        words = shlex.split(path.read_text(encoding="utf-8"))
    except OSError as e:
        raise ConfigError(
            f"{path}: can't be read ({e.strerror}); copy <home>/stack/airflow.env of the stack here"
        ) from e
    except ValueError as e:
        raise ConfigError(f"{path}: not as `dataflow stack up` wrote it ({e}); copy it again") from e
    odd = [word for word in words if "=" not in word]
    if odd:
        raise ConfigError(f"{path}: '{odd[0]}' is not NAME=value; copy the file again")
    found = dict(word.split("=", 1) for word in words)
    missing = [name for name in _NEEDED if name not in found]
    if missing:
        raise ConfigError(f"{path}: {', '.join(missing)} missing; `dataflow stack up` writes the whole file")
    return found


def worker(
    path: Path,
    settings: StackSettings,
    shell: Mapping[str, str],
    *,
    name: str,
    queues: Sequence[str],
    concurrency: int,
) -> tuple[list[str], dict[str, str]]:
    """Command and environment of a worker that joins the stack.

    Code (jobs, DAGs, plugins) is this host's checkout; data are the stack's home, which must be the same
    shared folder under the same path.

    Args:
        path: the copied ``airflow.env``.
        settings: of this host, for its folders.
        shell: this host's environment.
        name: of the worker; its host's name is added.
        queues: which it serves.
        concurrency: tasks at a time.

    Raises:
        ConfigError: the file is not right, the home is not shared, or the addresses are loopback ones of
            another host.
    """
    stack = read_environment(path)
    if not re.fullmatch(r"[A-Za-z0-9_-]+", name):
        raise ConfigError(f"--name {name}: letters, digits, - and _ only")
    home = Path(stack["DATAFLOW_HOME"])
    note = read_json(Layout(home).connect) if os.access(Layout(home).folder, os.X_OK) else None
    if note is None or note.get("state_url") != stack["DATAFLOW_STATE_URL"]:
        raise ConfigError(
            f"{home}: the stack's home must be here too, under the same path: mount the shared folder"
            " (docs/stack.md, Several hosts)"
        )
    own = {
        "PYTHONPATH": LOCAL_SETTINGS,
        "DATAFLOW_JOBS": str(settings.jobs),
        "AIRFLOW__CORE__DAGS_FOLDER": str(settings.dags),
        "AIRFLOW__CORE__PLUGINS_FOLDER": str(settings.plugins),
        "DATAFLOW_CORES_PER_TASK": str(settings.workers.cores_per_task),
    }
    command = [sys.executable, "-m", "airflow", *celery_arguments(name, tuple(queues), concurrency)]
    return command, {**shell, **stack, **own}
