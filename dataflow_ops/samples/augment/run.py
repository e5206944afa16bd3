"""A task of augmentation from its claim to its end: SUCCESS, PAUSED or FAILED, each with a clear word."""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Protocol

from dataflow_ops.clients.openai_api import OpenAiApi
from dataflow_ops.engine.context import owner_name
from dataflow_ops.errors import (
    CommitUnknown,
    ConfigError,
    DatabaseUnavailable,
    DataFlowError,
    LeaseLost,
)
from dataflow_ops.samples.augment.batches import Batches
from dataflow_ops.samples.augment.budget import Budget
from dataflow_ops.samples.augment.calls import Caller
from dataflow_ops.samples.augment.pacing import Pacing
from dataflow_ops.samples.augment.step import AugmentStep, Hears, Pause, Watch, told_of
from dataflow_ops.samples.augment.tally import Tally
from dataflow_ops.samples.augment.templates import Template
from dataflow_ops.samples.running import LEASE_S, beating, free_if_dead, give_back, until_there
from dataflow_ops.state.database import dump
from dataflow_ops.state.records import CursorRecord
from dataflow_ops.state.samples.failures import IN_QUEUE, Which, count_failures, reopen_task
from dataflow_ops.state.samples.generations import spent
from dataflow_ops.state.samples.records import Claim, SampleTask
from dataflow_ops.state.samples.store import SampleStore
from dataflow_ops.state.samples.targets import ready_files

KIND: Final = "augment"
_SETTLED: Final = ("answered", "failed", "reused")
_LOOK_S: Final = 0.5
_SPARE_S: Final = 5.0
_GOES_ON: Final = {
    "flag": "; once that is taken back the same command goes on",
    "budget": "; then the same command goes on",
    "interrupt": "; the same command goes on",
}
"""What paused a task -> how it goes on, behind the reason."""


class HearsAll(Hears, Protocol):
    """Hears of a whole task."""

    def begins(self, task: SampleTask, tally: Tally, total: int) -> None:
        """It is known how much there is to do."""


@dataclass(frozen=True, slots=True)
class Ended:
    """How a task ended.

    Attributes:
        task_id: which.
        state: ``SUCCESS``, ``PAUSED``, ``FAILED`` or ``CANCELLED``.
        message: for people.
        total: requests of the whole task.
        counts: so far, as the task's row has them.
        waiting: failures that somebody has to decide about.
        pause: why it is PAUSED.
    """

    task_id: str
    state: str
    message: str
    total: int
    counts: Mapping[str, float]
    waiting: int = 0
    pause: Pause | None = None

    def as_json(self) -> dict[str, Any]:
        """For programs."""
        return {
            "task": self.task_id,
            "state": self.state,
            "message": self.message,
            "total": self.total,
            "counts": dict(self.counts),
            "waiting": self.waiting,
        }


def ask_for_task(
    store: SampleStore, template: Template, dataset: str, who: str, task_id: str | None = None
) -> SampleTask:
    """The task of a template on the files that a data set has now; asked for again, the same task.

    A task that is done runs again where failures of it were put back.

    Args:
        store: the samples.
        template: what is asked.
        dataset: whose files.
        who: name of the person or service.
        task_id: None for one that follows from template, data set and files.

    Raises:
        ConfigError: the data set has no files, or the id belongs to another task.
    """
    with store.read() as connection:
        files = ready_files(connection, dataset)
    if not files:
        raise ConfigError(
            f"data set {dataset!r} has no samples;"
            f" `dataflow samples import FILE --dataset {dataset}` brings some"
        )
    settings = {"template": template.deciding, "prompt_version": template.prompt_version}
    task = store.create_task(
        task_id or _task_id(template, dataset, files), dataset, KIND, settings, files, who
    )
    if task.state == "SUCCESS":
        with store.write() as connection:
            reopen_task(connection, store.db, task.task_id)
        task = store.sample_task(task.task_id)
    return task


def run_augment(
    store: SampleStore,
    task: SampleTask,
    template: Template,
    api: OpenAiApi,
    watch: Watch,
    hears: HearsAll,
    owner: str | None = None,
    lease_s: float = LEASE_S,
) -> Ended:
    """Run a task until it is done, paused or failed; it goes on where its cursor stands.

    Args:
        store: with the patience of work that is under way.
        task: from :func:`ask_for_task`.
        template: the one that it was made with; its limits may differ.
        api: the endpoint.
        watch: of the pause flags that hold for the task.
        hears: of the progress.
        owner: who runs it; this process when None.
        lease_s: seconds of silence after which others may take the task.

    Raises:
        ConfigError: the template is another one than the task's.
        IllegalMove: the task was cancelled before.
        LeaseLost: another process holds it, or took it over.
        StateError: the database stayed away.
    """
    if task.settings.get("prompt_version") != template.prompt_version:
        raise ConfigError(
            f"task {task.task_id} was made with another template (or an older text of {template.name});"
            " take that one, or leave out --task for a new task"
        )
    if task.state == "SUCCESS":
        return _done(store, task.task_id, int(sum(task.counts.get(n, 0) for n in _SETTLED)))
    flag = watch.flag()
    if flag is not None and task.state in ("PENDING", "PAUSED", "FAILED"):
        return _paused(task.task_id, Pause("flag", told_of(flag)), 0, task.counts)
    claim = _claim(store, task.task_id, owner or owner_name(), lease_s, hears)
    stop = threading.Event()
    batches = Batches(store, claim, template)
    with beating(store, claim):  # counting may take longer than a lease
        with store.read() as connection:
            tally = Tally.of(spent(connection, task.task_id), claim.task.counts)
        total = batches.total()
    hears.begins(claim.task, tally, total)
    limits = template.limits
    pacing = Pacing(stop, limits.requests_per_minute, limits.tokens_per_minute)
    budget = Budget(limits, template.prices, tally.used, stop)
    caller = Caller(store, claim, template, api, pacing, budget, stop)
    step = AugmentStep(store, claim, batches, caller, tally, watch, stop, limits.concurrency, hears)
    try:
        step.run()
    except LeaseLost:
        now = store.sample_task(task.task_id)
        if now.state != "CANCELLED":
            raise
        told = f"{now.error_message or 'cancelled'}; answers that came stay"
        return Ended(task.task_id, "CANCELLED", told, total, now.counts)
    except (CommitUnknown, DatabaseUnavailable):
        raise  # nothing more can be written: whoever claims the task next goes on from its cursor
    except Exception as e:
        give_back(store, claim, "FAILED", partial(store.fail_task, claim, e, tally.difference()))
        if not isinstance(e, DataFlowError):
            raise
        return Ended(task.task_id, "FAILED", str(e), total, tally.counts())
    if step.pause is not None:
        at, pause = step.at or CursorRecord(None, 0, 0, {}), step.pause
        give_back(store, claim, "PAUSED", lambda: store.pause_task(claim, at, tally.difference(), pause.why))
        return _paused(task.task_id, pause, total, tally.counts())
    give_back(store, claim, "SUCCESS", lambda: store.finish_task(claim, tally.difference()))
    return _done(store, task.task_id, total)


def _claim(store: SampleStore, task_id: str, owner: str, lease_s: float, hears: Hears) -> Claim:
    """Claim a task; one whose owner died without a word at once, or when its lease is over."""
    began = time.monotonic()
    said = False
    while True:
        try:
            free_if_dead(store, task_id)
            return until_there(store, lambda: store.claim_task(task_id, owner, lease_s))
        except LeaseLost:
            if time.monotonic() - began > lease_s + _SPARE_S:
                raise
            if not said:
                hears.note(f"another process holds {task_id}; waiting until its lease is over")
                said = True
            time.sleep(_LOOK_S)


def _task_id(template: Template, dataset: str, files: Sequence[str]) -> str:
    mark = hashlib.sha256(dump([template.prompt_version, *files]).encode()).hexdigest()[:10]
    return f"augment-{dataset[:80]}-{template.name}-{mark}"


def _paused(task_id: str, pause: Pause, total: int, counts: Mapping[str, float]) -> Ended:
    return Ended(task_id, "PAUSED", f"{pause.why}{_GOES_ON[pause.by]}", total, counts, pause=pause)


def _done(store: SampleStore, task_id: str, total: int) -> Ended:
    counts = store.sample_task(task_id).counts
    with store.read() as connection:
        groups = count_failures(connection, Which(task_id))
    queue = {state: sum(number for one, _, number in groups if one == state) for state in IN_QUEUE}
    told = f"{counts.get('answered', 0):,.0f} answered"
    if counts.get("reused"):
        told += f", {counts['reused']:,.0f} known from other tasks"
    if queue["DROPPED"]:
        told += f", {queue['DROPPED']:,} given up"
    if queue["REQUEUED"]:
        told += f", {queue['REQUEUED']:,} put back meanwhile: the same command asks them again"
    if queue["OPEN"]:
        told += f", {queue['OPEN']:,} in the failure queue: `dataflow samples failures list` shows them"
    return Ended(task_id, "SUCCESS", told, total, counts, queue["OPEN"])
