"""What runs, since when, with how much memory, and whether it is well."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

from dataflow_ops.stack import plan, processes
from dataflow_ops.stack.components import API, POSTGRES, REDIS, STORE
from dataflow_ops.stack.health import healthy
from dataflow_ops.stack.layout import Layout, read_json

SUPERVISOR = "supervisor"
WELL = ("healthy", "done")


@dataclass(frozen=True)
class Row:
    """One component.

    Attributes:
        name: of the component.
        state: ``healthy``, ``starting`` (runs, does not answer), ``done`` (runs once), ``waiting`` (its turn
            comes when others answer), ``down``.
        detail: what was seen.
        pid: of its process, or None.
        uptime_s: seconds since its start, or None.
        memory_bytes: of the process and all below it, or None.
        address: where it listens, or empty.
        starts: how often it was started since the last ``down``.
    """

    name: str
    state: str
    detail: str
    pid: int | None = None
    uptime_s: float | None = None
    memory_bytes: int | None = None
    address: str = ""
    starts: int = 0


def look(layout: Layout, *, deep: bool = True, memory: bool = False) -> list[Row]:
    """The supervisor and all components of the plan, in the order in which they start.

    Args:
        layout: of the stack.
        deep: ask the components themselves; otherwise only whether their processes run.
        memory: add up memory too, which takes longer.
    """
    components, _ = plan.load(layout)
    if not components:
        return []
    records = {c.name: processes.load(layout.pids / f"{c.name}.json") for c in components}
    alive = {name: r for name, r in records.items() if r is not None and processes.is_alive(r)}
    own = components[-1].environment
    since = {name: record.started for name, record in alive.items()}
    seen = healthy(list(alive), own, since) if deep else {}
    addresses = _addresses(own)
    done = read_json(layout.prepared)
    supervisor = _supervisor(layout, memory)
    rows = [supervisor]
    for component in components:
        name = component.name
        notes = read_json(layout.pids / f"{name}.history.json") or {}
        record = alive.get(name)
        state, detail = "down", _last_end(notes)
        if component.once and done == component.digest:
            state, detail, record = "done", "", None
        elif record is not None:
            well, detail = seen.get(name, (not deep, ""))
            state = "healthy" if well else "starting"
        elif not notes and supervisor.state in WELL:
            state, detail = "waiting", ", ".join(component.after)
        rows.append(
            Row(
                name,
                state,
                detail,
                pid=None if record is None else record.pid,
                uptime_s=None if record is None else max(0.0, time.time() - record.started),
                memory_bytes=processes.memory_bytes(record) if record is not None and memory else None,
                address=addresses.get(name, ""),
                starts=int(notes.get("starts", 0)),
            )
        )
    return rows


def is_up(rows: list[Row]) -> bool:
    """Whether there is a stack and all of it is well."""
    return bool(rows) and all(row.state in WELL for row in rows)


def _supervisor(layout: Layout, memory: bool) -> Row:
    record = processes.load(layout.pids / f"{SUPERVISOR}.json")
    if record is None or not processes.is_alive(record):
        return Row(SUPERVISOR, "down", "nobody restarts what falls; `dataflow stack up` starts it")
    return Row(
        SUPERVISOR,
        "healthy",
        "",
        pid=record.pid,
        uptime_s=max(0.0, time.time() - record.started),
        memory_bytes=processes.memory_bytes(record, below=False) if memory else None,
    )


def _addresses(own: Mapping[str, str]) -> dict[str, str]:
    return {
        POSTGRES: own["DATAFLOW_STATE_URL"].split("@")[-1].split("/")[0],
        REDIS: own["DATAFLOW_REDIS_URL"].split("@")[-1].split("/")[0],
        STORE: own.get("DATAFLOW_S3_ENDPOINT", "").removeprefix("http://"),
        API: own["AIRFLOW__API__BASE_URL"],
    }


def _last_end(notes: Mapping[str, object]) -> str:
    ended = notes.get("ended")
    if not isinstance(ended, dict):
        return "not started"
    at = time.strftime("%H:%M:%S", time.localtime(float(ended["at"])))
    return f"ended at {at}" + ("" if ended["code"] is None else f" with code {ended['code']}")
