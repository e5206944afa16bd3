"""``docker-compose.yml``: the same components as containers, from the same settings and functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import yaml

from dataflow_ops.pipeline.webhooks import VARIABLE
from dataflow_ops.stack.components import (
    API,
    POSTGRES,
    PREPARE,
    REDIS,
    RELAY,
    STORE,
    URGENT,
    Part,
    airflow_parts,
    prepare_variables,
    worker_part,
)
from dataflow_ops.stack.environment import DATABASE_USER, Places, environment
from dataflow_ops.stack.keys import MAKERS, Keys, make_keys
from dataflow_ops.stack.object_store import TUNING, is_wanted, server_variables
from dataflow_ops.stack.relay_part import ARGUMENTS, container_secrets
from dataflow_ops.stack.servers import POSTGRES_TUNING, REDIS_TUNING
from dataflow_ops.stack.settings import StackSettings

WORKER = "worker"
_CODE, _DATA = "/opt/dataflow", "/data"
_LIBRARY = "/usr/local/lib/python{version}"
_HEAD = """\
# Generated from stack.yaml by `make compose` (dataflow stack compose); change that, not this.
# Secrets come from .env beside this file: `dataflow stack env > .env && chmod 600 .env`, once.
# More workers: DATAFLOW_WORKERS=4 docker compose up -d (or --scale worker=4, see docs/stack.md).
"""


def variable(key: str) -> str:
    """Name in ``.env`` of one of :class:`~dataflow_ops.stack.keys.Keys`."""
    return f"DATAFLOW_{key.upper()}"


def env_file() -> str:
    """Fresh secrets as lines of ``.env``."""
    keys = make_keys()
    lines = [f"{variable(name)}={getattr(keys, name)}\n" for name in MAKERS]
    return "# Keep this file: the databases in the volumes were made with it.\n" + "".join(lines)


def compose(settings: StackSettings) -> str:
    """The whole file."""
    keys = Keys(**{name: _required(name) for name in MAKERS})
    shared = environment(settings, container_places(settings), keys)
    escaped = {name: value.replace("$", "$$") for name, value in settings.environment.items()}
    shared.update({**_demo(settings), **escaped})
    anchored = _Shared(shared)
    services = {
        POSTGRES: _postgres(settings, keys),
        REDIS: _redis(settings, keys),
        **({STORE: _store(settings, keys)} if is_wanted(settings) else {}),
        PREPARE: _prepare(settings, keys, anchored),
        **{part.name: _airflow(settings, part, anchored) for part in container_parts(settings)},
    }
    secrets = container_secrets(settings)
    if secrets is not None:
        services[RELAY] = _relay(settings, secrets, anchored)
    for name, service in services.items():
        limit = settings.containers.limits.get(name)  # type: ignore[call-overload]
        if limit is not None:
            limits = {"cpus": f"{limit.cpus:g}", "memory": limit.memory}
            service.setdefault("deploy", {})["resources"] = {"limits": limits}
    stores = ("object-data",) if STORE in services else ()
    body = {
        "name": "dataflow",
        "x-environment": anchored,
        "services": services,
        "volumes": dict.fromkeys(("postgres-data", "redis-data", *stores, "data")),
    }
    return _HEAD + yaml.dump(body, Dumper=_Dumper, sort_keys=False, width=1000, allow_unicode=True)


def container_parts(settings: StackSettings) -> list[Part]:
    """Airflow's containers: one service stands for all workers that are not urgent."""
    parts = [part for part in airflow_parts(settings) if not part.name.startswith("worker-")]
    urgent = [part for part in airflow_parts(settings) if part.name == URGENT]
    return [*parts, worker_part(settings, WORKER), *urgent]


def container_places(settings: StackSettings) -> Places:
    """Where things are inside containers."""
    ports = settings.ports
    return Places(
        home=_DATA,
        airflow_home=f"{_DATA}/stack/airflow",
        jobs=f"{_CODE}/jobs",
        dags=f"{_CODE}/dags",
        plugins=f"{_CODE}/plugins",
        local_settings=f"{_CODE}/dataflow_ops/airflow/config",
        listen="0.0.0.0",  # of the container: only `ports` decides what can be reached from outside
        public=f"{settings.host}:{ports.web}",
        web=f"{API}:{ports.web}",
        postgres=f"{POSTGRES}:{ports.postgres}",
        redis=f"{REDIS}:{ports.redis}",
        store=f"{STORE}:{ports.object_store}" if is_wanted(settings) else "",
    )


def _demo(settings: StackSettings) -> dict[str, str]:
    """What the demo job reads, as it is in the image."""
    library = _LIBRARY.format(version=settings.containers.python.split("-")[0])
    return {
        "DEMO_STDLIB": library,
        "DEMO_SITE": f"{library}/site-packages",
        "DEMO_CASES": f"{_CODE}/tests/cases/data",
    }


def _required(key: str) -> str:
    return f"${{{variable(key)}:?is not set; dataflow stack env makes a .env}}"


def _check(*command: str, start_s: int = 30) -> dict[str, Any]:
    return {
        "test": ["CMD", *command],
        "interval": "30s" if start_s > 30 else "5s",
        "timeout": "20s",
        "retries": 5,
        "start_period": f"{start_s}s",
    }


def _postgres(settings: StackSettings, keys: Keys) -> dict[str, Any]:
    port = str(settings.ports.postgres)
    tuning = [part for name, value in POSTGRES_TUNING.items() for part in ("-c", f"{name}={value}")]
    return {
        "image": settings.containers.postgres,
        "command": ["postgres", "-p", port, *tuning],
        "environment": {
            "POSTGRES_USER": DATABASE_USER,
            "POSTGRES_PASSWORD": keys.postgres_password,
            "POSTGRES_INITDB_ARGS": "--encoding=UTF8 --locale=C",
        },
        "volumes": ["postgres-data:/var/lib/postgresql/data"],
        "shm_size": "256m",
        "healthcheck": _check("pg_isready", "-h", "127.0.0.1", "-p", port, "-U", DATABASE_USER),
        "restart": "unless-stopped",
        "stop_signal": "SIGINT",
    }


def _redis(settings: StackSettings, keys: Keys) -> dict[str, Any]:
    port = str(settings.ports.redis)
    tuning = " ".join(f"--{name} {value}" for name, value in REDIS_TUNING.items())
    return {
        "image": settings.containers.redis,
        # Through the shell, so that the password stands in no command line.
        "command": [
            "sh",
            "-c",
            f'printf "requirepass %s\\n" "$$REDISCLI_AUTH" | exec redis-server - --port {port} {tuning}',
        ],
        "environment": {"REDISCLI_AUTH": keys.redis_password},
        "volumes": ["redis-data:/data"],
        "healthcheck": _check("redis-cli", "-p", port, "ping"),
        "restart": "unless-stopped",
    }


def _store(settings: StackSettings, keys: Keys) -> dict[str, Any]:
    port = settings.ports.object_store
    return {
        "image": settings.containers.object_store,
        "command": [
            *("server", "-dir=/data", "-ip=127.0.0.1", "-ip.bind=127.0.0.1"),
            *("-filer", "-s3", "-s3.ip.bind=0.0.0.0", f"-s3.port={port}", *TUNING),
        ],
        "environment": server_variables(keys),
        "volumes": ["object-data:/data"],
        "ports": [f"{settings.host}:{port}:{port}"],
        "healthcheck": _check("wget", "-q", "-O", "/dev/null", f"http://127.0.0.1:{port}/healthz"),
        "restart": "unless-stopped",
    }


def _image(settings: StackSettings) -> dict[str, Any]:
    return {
        "image": "dataflow-ops",
        "build": {"context": ".", "args": {"PYTHON_TAG": settings.containers.python}},
    }


def _prepare(settings: StackSettings, keys: Keys, shared: _Shared) -> dict[str, Any]:
    extra = prepare_variables(settings, keys.admin_password, _workers(settings))
    needed = (POSTGRES, STORE) if is_wanted(settings) else (POSTGRES,)
    return {
        **_image(settings),
        "command": ["python", "-m", "dataflow_ops.airflow.prepare"],
        "environment": {_MERGE: shared, **extra},
        "volumes": _volumes(),
        "depends_on": {name: {"condition": "service_healthy"} for name in needed},
        "restart": "on-failure",
        "init": True,
    }


def _airflow(settings: StackSettings, part: Part, shared: _Shared) -> dict[str, Any]:
    service: dict[str, Any] = {
        **_image(settings),
        "command": ["airflow", *part.arguments],
        "environment": {_MERGE: shared, **part.extra} if part.extra else shared,
        "volumes": _volumes(),
        "depends_on": {
            PREPARE: {"condition": "service_completed_successfully"},
            REDIS: {"condition": "service_healthy"},
        },
        "healthcheck": _check("python", "-m", "dataflow_ops.stack.probe", part.name, start_s=120),
        "restart": "unless-stopped",
        "stop_grace_period": f"{settings.stop_timeout_s:g}s",
        "init": True,
    }
    if part.name == API:
        service["ports"] = [f"{settings.host}:{settings.ports.web}:{settings.ports.web}"]
    if part.name == WORKER:
        service["deploy"] = {"replicas": _workers(settings)}
    return service


def _relay(settings: StackSettings, secrets: Sequence[str], shared: _Shared) -> dict[str, Any]:
    inside = f"{_CODE}/webhooks.yaml"
    needed = {name: f"${{{name}:?is not set; webhooks.yaml names it}}" for name in secrets}
    return {
        **_image(settings),
        "command": ["python", *ARGUMENTS],
        "environment": {_MERGE: shared, VARIABLE: inside, **needed},
        "volumes": [*_volumes(), f"{settings.webhooks}:{inside}:ro"],
        "depends_on": {PREPARE: {"condition": "service_completed_successfully"}},
        "restart": "unless-stopped",
        "stop_grace_period": f"{settings.stop_timeout_s:g}s",
        "init": True,
    }


def _workers(settings: StackSettings) -> str:
    return f"${{DATAFLOW_WORKERS:-{settings.workers.count}}}"


def _volumes() -> list[str]:
    return [f"data:{_DATA}", f"./jobs:{_CODE}/jobs:ro"]


class _Shared(dict[str, str]):
    """The environment that services have in common; written once, with an anchor."""


class _Merge(str):
    """YAML's merge key."""

    __slots__ = ()


_MERGE = _Merge("<<")


class _Dumper(yaml.SafeDumper):
    """Anchors only for :class:`_Shared`, under a name that says what it is."""

    def ignore_aliases(self, data: Any) -> bool:
        return not isinstance(data, _Shared)

    def generate_anchor(self, node: Any) -> str:
        return "environment"


def _represent_shared(dumper: _Dumper, data: Mapping[str, str]) -> yaml.Node:
    return dumper.represent_dict(dict(data))


def _represent_merge(dumper: _Dumper, data: str) -> yaml.Node:
    return dumper.represent_scalar("tag:yaml.org,2002:merge", str(data))


def _represent_list(dumper: _Dumper, data: list[Any]) -> yaml.Node:
    return dumper.represent_sequence("tag:yaml.org,2002:seq", data, flow_style=True)


_Dumper.add_representer(_Shared, _represent_shared)
_Dumper.add_representer(list, _represent_list)
_Dumper.add_representer(_Merge, _represent_merge)
_Dumper.add_representer(
    str,
    lambda dumper, data: dumper.represent_scalar(
        "tag:yaml.org,2002:str", data, style='"' if "$" in data or ": " in data else None
    ),
)
