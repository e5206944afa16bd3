"""Sample tasks: where each stands, what it did, how fast, and until when."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from dataflow_ops.console.runs import command
from dataflow_ops.console.sample_desk import SampleDesk
from dataflow_ops.state.machine import OPEN_TASKS
from dataflow_ops.state.records import CursorRecord
from dataflow_ops.state.samples.failures import Which, count_failures
from dataflow_ops.state.samples.records import SampleTask
from dataflow_ops.state.samples.targets import Wanted, count_targets

SHOWN: Final = 50
"""Newest tasks of a data set on its page."""
FAMILIES: Final = {
    "rule.": "rules",
    "changed.": "changes",
    "left_out.": "left_out",
    "repaired_": "repaired",
}
"""Beginning of a count's name → under which key of the answer it is listed."""
_USAGE: Final = ("prompt_tokens", "completion_tokens", "lost_tokens", "cut_tokens")
_COST: Final = ("cost", "lost_cost", "cut_cost")


def tasks(desk: SampleDesk, dataset: str) -> dict[str, Any]:
    """The newest tasks of a data set."""
    found = desk.store.sample_tasks(dataset, limit=SHOWN)
    return {"tasks": rows(desk, found), "more": len(found) == SHOWN}


def rows(desk: SampleDesk, found: Iterable[SampleTask]) -> list[dict[str, Any]]:
    """How tasks show, in their order."""
    names = _Names(desk)
    return [_row(desk, task, names) for task in found]


def datasets(desk: SampleDesk, readable: Callable[[str], bool]) -> dict[str, Any]:
    """Data sets that have files of samples, by name.

    Args:
        desk: open.
        readable: which data sets may be shown.
    """
    found: dict[str, dict[str, Any]] = {}
    for file in desk.store.sample_files():
        one = found.setdefault(
            file.dataset, {"dataset": file.dataset, "files": 0, "records": 0, "rows": 0, "refused": 0}
        )
        one["files"] += 1
        for name in ("records", "rows", "refused"):
            one[name] += getattr(file, name)
    return {"datasets": [found[name] for name in sorted(found) if readable(name)]}


class _Names:
    """Paths of files by id, read once an answer."""

    def __init__(self, desk: SampleDesk) -> None:
        self._desk = desk
        self._known: dict[str, dict[str, str]] = {}

    def path(self, dataset: str, file: str) -> str:
        if dataset not in self._known:
            self._known[dataset] = {one.id: one.path for one in self._desk.store.sample_files(dataset)}
        return self._known[dataset].get(file, file)


def _row(desk: SampleDesk, task: SampleTask, names: _Names) -> dict[str, Any]:
    store = desk.store
    at = store.sample_cursor(task.task_id)
    flag = store.paused(task.task_id, task.dataset) if task.state in OPEN_TASKS else None
    processed = at.processed_rows if at else 0
    total = _total(desk, task)
    running = task.state == "RUNNING" and not task.silent
    rate = desk.pace.rate(task.task_id, task.epoch, processed) if running else None
    left = None if total is None else max(0, total - processed)
    return {
        "task": task.task_id,
        "dataset": task.dataset,
        "kind": task.kind,
        "state": task.state,
        "silent": task.silent,
        "who": task.who,
        "attempt": task.attempt,
        "created_at": task.created_at,
        "started_at": task.started_at,
        "ended_at": task.ended_at,
        "updated_at": task.updated_at,
        "error": _error(task),
        "note": task.error_message if task.state == "PAUSED" and flag is None else None,
        "pause": None
        if flag is None
        else {"scope": flag.scope, "who": flag.who, "why": flag.why, "since": flag.created_at},
        "at": _at(task, at, names),
        "rows": processed,
        "total": total,
        "progress": _progress(task, at, total),
        "rate": rate,
        "eta": left / rate if rate and left is not None else None,
        **_counted(task.counts),
        "model": _model(task) if task.kind == "augment" else None,
        "failures": _failures(desk, task) if task.kind == "augment" else None,
        "cli": _commands(task),
    }


def _error(task: SampleTask) -> dict[str, str | None] | None:
    """What went wrong. A cancelled task says by whom, and has no type.

    A paused one says why in the same place, which is no error.
    """
    if task.error_message is None or task.state == "PAUSED":
        return None
    return {"type": task.error_type, "message": task.error_message}


def _total(desk: SampleDesk, task: SampleTask) -> int | None:
    """Rows that a task has before it; None where that shows only as it reads, or it has ended."""
    if task.kind != "augment" or task.highest_id is None:
        return task.snapshot_rows
    if task.state not in OPEN_TASKS:
        return None
    target = task.settings["template"]["target"]
    wanted = Wanted(target["turns"], tuple(target["roles"]), tuple(target["status"]), task.highest_id)

    def count() -> int:
        with desk.store.read() as connection:
            return count_targets(connection, wanted, task.files)

    return desk.pace.total(task.task_id, task.epoch, count)


def _at(task: SampleTask, at: CursorRecord | None, names: _Names) -> dict[str, Any] | None:
    if at is None or at.file_id is None:
        return None
    number = task.files.index(at.file_id) + 1 if at.file_id in task.files else None
    return {
        "file": at.file_id,
        "path": names.path(task.dataset, at.file_id),
        "number": number,
        "of": len(task.files),
        "offset": at.offset,
    }


def _progress(task: SampleTask, at: CursorRecord | None, total: int | None) -> float | None:
    """0..1 by rows; None where their number is not known. Done is done, whatever was left out."""
    if task.state == "SUCCESS":
        return 1.0
    if total is None:
        return None
    if total == 0:
        return 0.0
    return min(1.0, (at.processed_rows if at else 0) / total)


def _counted(counts: Mapping[str, float]) -> dict[str, Any]:
    """Sums by name, and those that come in families as lists, the most frequent first."""
    plain = {name: n for name, n in counts.items() if not name.startswith(tuple(FAMILIES))}
    listed: dict[str, list[dict[str, Any]]] = {}
    for beginning, key in FAMILIES.items():
        some = [(name[len(beginning) :], n) for name, n in counts.items() if name.startswith(beginning)]
        listed[key] = [
            {"name": name, "count": n} for name, n in sorted(some, key=lambda one: (-one[1], one[0]))
        ]
    return {"counts": plain, **listed}


def _model(task: SampleTask) -> dict[str, Any]:
    template = task.settings["template"]
    counts = task.counts
    return {
        "template": template["name"],
        "model": template["model"],
        "answered": counts.get("answered", 0),
        "failed": counts.get("failed", 0),
        "reused": counts.get("reused", 0),
        "tokens": sum(counts.get(name, 0) for name in _USAGE),
        "prompt_tokens": counts.get("prompt_tokens", 0),
        "completion_tokens": counts.get("completion_tokens", 0),
        "cost": sum(counts.get(name, 0) for name in _COST),
    }


def _failures(desk: SampleDesk, task: SampleTask) -> dict[str, int]:
    found: dict[str, int] = {}
    with desk.store.read() as connection:
        for state, _, number in count_failures(connection, Which(task_id=task.task_id)):
            found[state] = found.get(state, 0) + number
    return found


def _commands(task: SampleTask) -> dict[str, str]:
    words: dict[str, Sequence[str]] = {
        "pause": ("samples", "pause", task.task_id),
        "resume": ("samples", "resume", task.task_id),
        "cancel": ("samples", "cancel", task.task_id),
        "list": ("samples", "tasks", "--dataset", task.dataset),
    }
    return {name: command(*some) for name, some in words.items()}
