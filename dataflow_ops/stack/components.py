"""Which processes make up the stack, what each waits for, and how each ends: one table for both forms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from dataflow_ops.stack.settings import StackSettings

POSTGRES, REDIS, STORE, PREPARE = "postgres", "redis", "object-store", "prepare"
API, SCHEDULER, PROCESSOR, TRIGGERER = "api-server", "scheduler", "dag-processor", "triggerer"
URGENT = "worker-urgent"
RELAY = "relay"


def stages(names: Sequence[str]) -> list[list[str]]:
    """In which order components end: who hands out and does work, then what they report to, then servers.

    Args:
        names: of all components, in the order in which they start.
    """
    servers = [name for name in (REDIS, STORE, POSTGRES) if name in names]
    web = [name for name in (API,) if name in names]
    return [[name for name in names if name not in (*servers, *web)], web, *([name] for name in servers)]


@dataclass(frozen=True)
class Part:
    """One Airflow process.

    Attributes:
        name: of the component; workers are numbered.
        arguments: after ``airflow``.
        extra: variables that only this process gets.
    """

    name: str
    arguments: tuple[str, ...]
    extra: dict[str, str] = field(default_factory=dict)


def worker_name(number: int) -> str:
    """Name of the worker with this number, from 1."""
    return f"worker-{number}"


def celery_arguments(name: str, queues: tuple[str, ...], concurrency: int) -> tuple[str, ...]:
    """``airflow celery worker …``.

    Logs of tasks lie in a folder that the api-server reads itself, so workers serve none; gossip between
    workers only costs Redis messages.
    """
    return (
        *("celery", "worker", "--queues", ",".join(queues), "--concurrency", str(concurrency)),
        *("--celery-hostname", f"{name}@%h", "--skip-serve-logs", "--without-mingle", "--without-gossip"),
    )


def airflow_parts(settings: StackSettings) -> list[Part]:
    """Airflow's processes, servers of others first."""
    return [
        Part(API, ("api-server",)),
        Part(SCHEDULER, ("scheduler", "--skip-serve-logs")),
        Part(PROCESSOR, ("dag-processor",)),
        Part(TRIGGERER, ("triggerer", "--skip-serve-logs")),
        *[worker_part(settings, worker_name(number + 1)) for number in range(settings.workers.count)],
        urgent_part(settings),
    ]


def worker_part(settings: StackSettings, name: str) -> Part:
    """A worker for everything that is not urgent."""
    workers = settings.workers
    return Part(
        name,
        celery_arguments(name, workers.queues, workers.concurrency),
        {"DATAFLOW_CORES_PER_TASK": str(workers.cores_per_task)},
    )


def urgent_part(settings: StackSettings) -> Part:
    """The worker that is always free for urgent tasks."""
    return Part(
        URGENT,
        celery_arguments(URGENT, ("urgent",), settings.urgent.concurrency),
        {"DATAFLOW_CORES_PER_TASK": str(settings.urgent.cores_per_task)},
    )


def prepare_variables(settings: StackSettings, password: str, workers: str) -> dict[str, str]:
    """What only the preparation gets: first user, and what the pools' sizes follow from.

    A pool has exactly as many slots as workers have: a task that is queued starts at once, so the order
    of starting follows priority to the last moment, and its token can't expire while it waits.

    Args:
        settings: the stack's.
        password: of the first user.
        workers: how many there are.
    """
    return {
        "DATAFLOW_STACK_USER": settings.user,
        "DATAFLOW_STACK_PASSWORD": password,
        "DATAFLOW_STACK_WORKERS": workers,
        "DATAFLOW_STACK_CONCURRENCY": str(settings.workers.concurrency),
        "DATAFLOW_STACK_SLOTS_ELSEWHERE": str(settings.workers.slots_elsewhere),
        "DATAFLOW_STACK_URGENT_SLOTS": str(settings.urgent.concurrency),
    }
