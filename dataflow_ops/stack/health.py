"""Whether each component does its work: asked of it itself, not of its process alone."""

from __future__ import annotations

import socket
import time
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from dataflow_ops.stack.components import (
    API,
    POSTGRES,
    PROCESSOR,
    REDIS,
    RELAY,
    SCHEDULER,
    STORE,
    TRIGGERER,
)
from dataflow_ops.stack.object_store import is_well

_PATIENCE_S = 3.0
_STEADY_S = 5.0
"""A relay that does not know what to do has ended by then."""
_JOBS = {SCHEDULER: "scheduler", PROCESSOR: "dag_processor", TRIGGERER: "triggerer"}
"""Component -> its name in the health page. Workers are not on it."""


def answers(name: str, environment: Mapping[str, str]) -> bool:
    """Whether a server accepts connections with the stack's own login.

    Args:
        name: ``postgres``, ``redis`` or ``object-store``.
        environment: of the stack.
    """
    if name == STORE:
        return is_well(environment, _PATIENCE_S)
    return _postgres(environment) if name == POSTGRES else _redis(environment)


def health_page(environment: Mapping[str, str]) -> Mapping[str, Any] | None:
    """Airflow's own health page, or None while the api-server does not answer."""
    import httpx

    inside = environment["AIRFLOW__CORE__EXECUTION_API_SERVER_URL"].removesuffix("/execution/")
    url = f"{inside}/api/v2/monitor/health"
    try:
        answer = httpx.get(url, timeout=_PATIENCE_S, trust_env=False)
        page = answer.raise_for_status().json()
    except (httpx.HTTPError, ValueError):
        return None
    return page if isinstance(page, dict) else None


def node_name(worker: str) -> str:
    """What Celery calls a worker of this host."""
    return f"{worker}@{socket.gethostname()}"


def live_workers(environment: Mapping[str, str], asked: Sequence[str]) -> set[str]:
    """Which of these Celery workers answer a ping.

    Args:
        environment: of the stack.
        asked: their names, ``name@host``; one that does not answer costs the whole patience of 2 s.
    """
    from celery import Celery
    from kombu.exceptions import KombuError
    from redis.exceptions import RedisError

    if not asked:
        return set()
    app = Celery(broker=environment["AIRFLOW__CELERY__BROKER_URL"], set_as_current=False)
    try:
        replies = app.control.broadcast(
            "ping", destination=list(asked), reply=True, timeout=2.0, limit=len(asked)
        )
    except (KombuError, RedisError, OSError):
        return set()
    finally:
        app.close()
    return {name for reply in replies or [] for name in reply}


def healthy(
    names: Sequence[str], environment: Mapping[str, str], since: Mapping[str, float]
) -> dict[str, tuple[bool, str]]:
    """``(whether it is well, what was seen)`` for each running component.

    Args:
        names: components whose processes run.
        environment: of the stack.
        since: when each process started, epoch seconds: a heartbeat from before is its predecessor's.
    """
    found: dict[str, tuple[bool, str]] = {}
    for server in (POSTGRES, REDIS, STORE):
        if server in names:
            well = answers(server, environment)
            found[server] = (well, "answers" if well else "does not answer yet")
    page = health_page(environment) if API in names else None
    if API in names:
        found[API] = (page is not None, "answers" if page is not None else "does not answer yet")
    for name, job in _JOBS.items():
        if name in names:
            found[name] = _job(page, job, since[name])
    if RELAY in names:
        # It has no door to knock at; what it can't send is told by `dataflow doctor`.
        runs = time.time() - since[RELAY] > _STEADY_S
        found[RELAY] = (runs, "runs" if runs else "has just been started")
    workers = [name for name in names if name.startswith("worker-")]
    nodes = [node_name(name) for name in workers]
    live = live_workers(environment, nodes) if found.get(REDIS, (False, ""))[0] else set()
    for name in workers:
        well = node_name(name) in live
        found[name] = (well, "answers" if well else "does not answer yet")
    return found


def _job(page: Mapping[str, Any] | None, job: str, since: float) -> tuple[bool, str]:
    if page is None:
        return False, "unknown: the api-server does not answer"
    section = page.get(job) or {}
    beat = section.get(f"latest_{job}_heartbeat")
    if not beat:
        return False, "no heartbeat yet"
    if datetime.fromisoformat(beat).timestamp() < since:
        return False, "no heartbeat since its start"
    return section.get("status") == "healthy", f"heartbeat {beat[11:19]}"


def _postgres(environment: Mapping[str, str]) -> bool:
    import psycopg

    url = environment["DATAFLOW_STATE_URL"].replace("postgresql+psycopg://", "postgresql://")
    try:
        # The server's own database: ours are made only once it answers.
        with psycopg.connect(url, dbname="postgres", connect_timeout=int(_PATIENCE_S)):
            return True
    except psycopg.Error:
        return False


def _redis(environment: Mapping[str, str]) -> bool:
    import redis

    try:
        with redis.Redis.from_url(
            environment["DATAFLOW_REDIS_URL"], socket_timeout=_PATIENCE_S, socket_connect_timeout=_PATIENCE_S
        ) as client:
            return bool(client.ping())
    except redis.RedisError:
        return False
