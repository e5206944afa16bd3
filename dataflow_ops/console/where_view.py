"""Where a run is now: who works on what, how far, what takes long, what fails."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Final

from dataflow_ops.console.glances import FewChunks, facts_of_chunks, files_of_chunk
from dataflow_ops.console.place import Place
from dataflow_ops.console.runs import is_live, known_run
from dataflow_ops.console.shown_layers import SHOWN, order_of
from dataflow_ops.errors import ConfigError, CorruptOutput
from dataflow_ops.pipeline.flow import STEP_NAMES, partitioning
from dataflow_ops.state.glance import TaskGlance
from dataflow_ops.state.records import RunRecord

SHOWN_RUNNING = 40
SHOWN_SLOWEST = 5
SHOWN_BROKEN = 40
LOOKED_INTO = 8
"""Of so many chunks, the newest, failures are counted against all records."""
FILE_SHIFT: Final = 40
"""A cursor of ``parse`` is ``number of the file << 40 | records of it``."""


def where(place: Place, run_id: str, layer: str | None = None) -> dict[str, Any]:
    """What the run works on.

    Args:
        place: the home.
        run_id: the run.
        layer: only this layer (one of the six shown).

    Raises:
        NotThere: no such run.
        ConfigError: no such layer.
    """
    row = known_run(place, run_id)
    steps = steps_in(layer)
    running = place.state.tasks_in(run_id, ("RUNNING",), steps, SHOWN_RUNNING) if is_live(row) else []
    broken = place.state.tasks_in(run_id, ("FAILED", "DEAD"), steps, SHOWN_BROKEN)
    until = place.sums.until()
    slowest, slow_known = _slowest(place, row, steps, until)
    failing, failing_known = (
        place.sums.any(("failures", run_id), partial(_failures, place, row), until)
        if "parse" in steps
        else (None, True)
    )
    chunks = [t.partition for t in (*running, *slowest, *broken) if partitioning(t.step) == "chunk"]
    facts = facts_of_chunks(place, run_id, chunks) if chunks else {}
    source = {chunk: row["source_id"] for chunk, row in facts.items()}
    return {
        "running": _running(place, row, running, source),
        "slowest": [
            {
                "step": task.step,
                "partition": task.partition,
                "source": source.get(task.partition),
                "seconds": task.seconds,
                "documents": task.documents_in,
            }
            for task in slowest
        ],
        "failures": failing or {"parser": [], "host": [], "media_type": [], "chunks": 0, "of_chunks": 0},
        "error_tasks": [_broken(task) for task in sorted(broken, key=lambda t: -(t.ended_at or 0.0))],
        "complete": slow_known and failing_known,
    }


def steps_in(layer: str | None) -> list[str]:
    """Steps of a shown layer, of all for ``None``.

    Raises:
        ConfigError: no such layer.
    """
    if not layer:
        return list(STEP_NAMES)
    known = dict(SHOWN)
    if layer not in known:
        raise ConfigError(f"no such layer '{layer}'; there are {', '.join(known)}")
    return list(known[layer])


def _running(
    place: Place, row: RunRecord, tasks: Sequence[TaskGlance], source: dict[str, str]
) -> list[dict[str, Any]]:
    if not tasks:
        return []
    now = place.state.now()
    cursors = place.state.cursors_of([task.key for task in tasks])
    expected = _expected(place, row.run_id, tasks)
    found = []
    for task in tasks:
        offset, rows = cursors.get(task.key, (0, 0))
        position = task.progress.get("position")
        found.append(
            {
                "step": task.step,
                "layer": next(name for name, steps in SHOWN if task.step in steps),
                "partition": task.partition,
                "source": source.get(task.partition),
                "file": _file(place, row.run_id, task, offset if position is None else position),
                "row": max(rows, int(task.progress.get("rows") or 0)),
                "rows": expected.get((task.step, task.partition)),
                "worker": worker(task.owner),
                "heartbeat_age_s": None if task.heartbeat_at is None else max(0.0, now - task.heartbeat_at),
                "attempt": task.attempt,
                "seconds": None if task.started_at is None else max(0.0, now - task.started_at),
            }
        )
    return found


def worker(owner: str | None) -> str:
    """Host and process of a lease's owner, without the start time that makes it unique."""
    return (owner or "").rpartition(":")[0] or (owner or "")


def _expected(place: Place, run_id: str, tasks: Sequence[TaskGlance]) -> dict[tuple[str, str], int]:
    """Rows that a task will read: what the chunk step before it wrote. Files tell no number of records."""
    by_chunk = [step for step in STEP_NAMES if partitioning(step) == "chunk"]
    found: dict[tuple[str, str], int] = {}
    for step in {task.step for task in tasks}:
        if step not in by_chunk or order_of(step) <= order_of("parse"):
            continue
        mine = [task.partition for task in tasks if task.step == step]
        # From parse on every chunk step goes through the rows that parse wrote.
        for partition, rows in place.state.counts_of_partitions(run_id, "parse", mine).items():
            found[step, partition] = rows
    return found


def _file(place: Place, run_id: str, task: TaskGlance, position: int) -> str | None:
    if task.step not in ("fetch", "parse"):
        return None
    try:
        files = files_of_chunk(place, run_id, task.partition) if task.step == "parse" else []
    except CorruptOutput:
        return None  # it is being made anew
    number = position >> FILE_SHIFT
    return files[number] if number < len(files) else None


def _slowest(
    place: Place, row: RunRecord, steps: Sequence[str], until: float
) -> tuple[list[TaskGlance], bool]:
    """The tasks that took longest, of all steps that were asked for."""
    totals, complete = place.sums.totals(row.run_id, until)
    found: list[TaskGlance] = []
    for step in steps:
        if step in totals and totals[step].done:
            question = partial(place.state.slowest_tasks, row.run_id, step, SHOWN_SLOWEST)
            tasks, known = place.sums.any(("slowest", row.run_id, step), question, until)
            found += tasks or []
            complete = complete and known
    found.sort(key=lambda task: (-(task.seconds or 0.0), task.step, task.partition))
    return found[:SHOWN_SLOWEST], complete


def _failures(place: Place, row: RunRecord) -> dict[str, Any]:
    """Failed records against all records, by parser, host and media type, in the newest chunks.

    The dead letters alone have no denominator: a host with a thousand failures may have a million pages.
    """
    from dataflow_ops.observe.chunks import Chunks
    from dataflow_ops.observe.failures import failures

    tasks = place.state.newest_tasks(row.run_id, "parse", LOOKED_INTO, until=row.ended_at)
    newest = [task.partition for task in tasks]
    total = place.state.number_of_tasks(row.run_id, "parse")
    found = failures(Chunks(FewChunks(place, row.run_id, newest)), top=10)
    shown: dict[str, Any] = {
        name: [
            {
                "name": one["name"],
                "failed": one["failed"],
                "documents": one["total"],
                "share": one["failed"] / one["total"] if one["total"] else None,
            }
            for one in rows
        ]
        for name, rows in found.items()
    }
    return {**shown, "chunks": len(newest), "of_chunks": total}


def _broken(task: TaskGlance) -> dict[str, Any]:
    return {
        "step": task.step,
        "partition": task.partition,
        "state": task.state,
        "attempt": task.attempt,
        "error_type": task.error_type,
        "error_message": task.error_message,
        "trace": task.error_trace,
    }
