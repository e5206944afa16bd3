"""``stack.yaml``: the one settings file of the local stack and of the containers."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import yaml
from pydantic import Field, ValidationError, model_validator

from dataflow_ops.errors import ConfigError
from dataflow_ops.section import Section

Port = Annotated[int, Field(ge=1, le=65535)]
Count = Annotated[int, Field(ge=1)]
Seconds = Annotated[float, Field(gt=0)]

REPOSITORY = Path(__file__).resolve().parents[2]


class Ports(Section):
    """Where the servers listen. Off the standard ports, so that servers which run already stay untouched."""

    web: Port = 8790
    postgres: Port = 5790
    redis: Port = 6790
    object_store: Annotated[int, Field(ge=1, le=65528)] = 9790

    @model_validator(mode="after")
    def _distinct(self) -> Self:
        # The object store takes the seven ports after its own, too.
        own = range(self.object_store, self.object_store + 8)
        taken = [self.web, self.postgres, self.redis, *own]
        if len(set(taken)) < len(taken):
            raise ValueError(f"each server needs a port of its own, not {taken}")
        return self


class Workers(Section):
    """Celery workers for everything that is not urgent.

    Attributes:
        count: worker processes.
        concurrency: tasks at a time in each.
        cores_per_task: processes that one task may use.
        queues: which queues they serve.
        slots_elsewhere: tasks at a time on workers of other hosts; counted into the pool.
    """

    count: Annotated[int, Field(ge=0)] = 2
    concurrency: Count = 2
    cores_per_task: Count = 1
    queues: tuple[Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]*$")], ...] = ("cpu", "memory", "gpu", "llm")
    slots_elsewhere: Annotated[int, Field(ge=0)] = 0

    @property
    def slots(self) -> int:
        """Tasks that can run at the same time, on all hosts."""
        return self.count * self.concurrency + self.slots_elsewhere


class UrgentWorker(Section):
    """One more worker that only takes urgent tasks, so that they never wait for a slot."""

    concurrency: Count = 2
    cores_per_task: Count = 1


class AirflowTuning(Section):
    """What differs from Airflow's defaults; ``stack.yaml`` gives each its reason."""

    api_workers: Count = 1
    max_active_tasks_per_dag: Count = 256
    max_map_length: Count = 1024
    task_heartbeat_timeout_s: Count = 30
    task_end_poll_s: Seconds = 1
    queued_timeout_s: Count = 120
    visibility_timeout_s: Count = 604800
    idle_sleep_s: Seconds = 1
    dag_refresh_s: Count = 30
    triggers: Count = 1000


ContainerName = Literal[
    "postgres",
    "redis",
    "object-store",
    "prepare",
    "api-server",
    "scheduler",
    "dag-processor",
    "triggerer",
    "worker",
    "worker-urgent",
    "relay",
]


class ContainerLimits(Section):
    """Most that one container may take."""

    cpus: Annotated[float, Field(gt=0)]
    memory: Annotated[str, Field(pattern=r"^[0-9]+(m|g)$")]


class Containers(Section):
    """What only ``docker-compose.yml`` needs."""

    python: str = "3.11-slim-bookworm"
    postgres: str = "postgres:17-bookworm"
    redis: str = "redis:7.4-bookworm"
    object_store: str = "chrislusf/seaweedfs:4.48"
    limits: Mapping[ContainerName, ContainerLimits] = Field(default_factory=dict)


class StackSettings(Section):
    """The whole file. Paths are absolute once :func:`load_settings` has read it.

    Attributes:
        home: data, state and logs of this stack.
        host: address that the servers listen on and that the others find them at.
        stop_timeout_s: how long a component may take to end before it is killed.
        start_timeout_s: how long ``up`` waits for all to be healthy.
        user: name of the first user, who may do everything.
        webhooks: whom the relay tells; None: what ``webhooks.yaml`` in the home says, if it is there.
        object_store: whether the stack runs an object store of its own; None: where its program is there, and
            ``environment`` names no other.
        storage_root: where data sets are kept: ``s3://bucket/prefix`` or a folder; None: in the home.
        environment: further variables for every process, such as those that job files name.
    """

    home: Path = Path(".dataflow-stack")
    jobs: Path = Path("jobs")
    dags: Path = Path("dags")
    plugins: Path = Path("plugins")
    webhooks: Path | None = None
    host: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9.-]*$")] = "127.0.0.1"
    ports: Ports = Ports()
    user: Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]+$")] = "admin"
    workers: Workers = Workers()
    urgent: UrgentWorker = UrgentWorker()
    airflow: AirflowTuning = AirflowTuning()
    object_store: bool | None = None
    storage_root: Annotated[str, Field(pattern=r"^(s3://|/)")] | None = None
    start_timeout_s: Seconds = 300
    stop_timeout_s: Seconds = 20
    environment: Mapping[Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")], str] = Field(
        default_factory=dict
    )
    containers: Containers = Containers()


def default_file() -> Path:
    """``stack.yaml`` here, else the one of the checkout that the package runs from."""
    here = Path("stack.yaml")
    return here if here.is_file() else REPOSITORY / "stack.yaml"


def load_settings(
    path: Path,
    *,
    workers: int | None = None,
    port: int | None = None,
    home: Path | None = None,
) -> StackSettings:
    """Read the file; arguments win over it. Relative paths count from the file's folder.

    Args:
        path: the YAML file.
        workers: number of workers instead of the file's.
        port: of the web page instead of the file's.
        home: home folder instead of the file's; relative to the working folder.

    Raises:
        ConfigError: no such file, not YAML, or a key or value that is not allowed.
    """
    try:
        raw = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
    except FileNotFoundError:
        raise ConfigError(f"{path}: no such settings file; name it with --settings FILE") from None
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as e:
        raise ConfigError(f"{path}: can't be read as YAML: {e}") from e
    if not isinstance(raw, dict):
        raise ConfigError(f"{path}: expected sections such as `ports:`, found {type(raw).__name__}")
    for section, key, value in (("workers", "count", workers), ("ports", "web", port)):
        if value is not None:
            raw[section] = {**_mapping(raw.get(section)), key: value}
    try:
        settings = StackSettings.model_validate(raw)
    except ValidationError as e:
        raise ConfigError("\n".join(f"{path}: {line}" for line in _lines(e))) from e
    base = path.absolute().parent
    places: dict[str, Path] = {
        name: (base / getattr(settings, name).expanduser()).resolve()
        for name in ("home", "jobs", "dags", "plugins")
    }
    if home is not None:
        places["home"] = home.expanduser().resolve()
    if settings.webhooks is not None:
        places["webhooks"] = (base / settings.webhooks.expanduser()).resolve()
    return settings.model_copy(update=places)


def _mapping(value: Any) -> dict[str, Any]:
    return dict(value) if isinstance(value, dict) else {}


def _lines(error: ValidationError) -> list[str]:
    lines = []
    for fault in error.errors():
        name = ".".join(str(part) for part in fault["loc"]) or "settings"
        if fault["type"] == "extra_forbidden":
            lines.append(f"{name}: unknown key; stack.yaml in the repository lists what there is")
        else:
            lines.append(f"{name}: {fault['msg']}, not {fault['input']!r}")
    return lines
