"""Runs one task: claim → batches → publish → commit. The same for every caller."""

from __future__ import annotations

import hashlib
import os
import time
import traceback
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import psutil

from dataflow_ops.control.pause import PauseWatch
from dataflow_ops.engine.checkpoints import Checkpoints
from dataflow_ops.engine.context import RunContext, owner_is_gone, owner_name
from dataflow_ops.engine.faults import is_blameless, is_systemic, plain
from dataflow_ops.engine.heartbeat import Heartbeat
from dataflow_ops.engine.inputs import OutputIndex, resolve
from dataflow_ops.engine.progress import Totals
from dataflow_ops.engine.scratch import scratch_folder
from dataflow_ops.engine.side import RawFiles, TaskSide, batches
from dataflow_ops.errors import (
    CommitUnknown,
    DataFlowError,
    LeaseLost,
    Paused,
    SourceChanged,
    StateError,
)
from dataflow_ops.protocols import MapStep, OutputSpec, RunStep, Step
from dataflow_ops.state.store import StateStore
from dataflow_ops.storage.chunk_store import ChunkStore
from dataflow_ops.storage.staging import Staging
from dataflow_ops.values import Claim, Counts, Numbers, Output, StepResult, TaskSpec

Ending = Literal["done", "skipped", "busy", "paused", "failed", "dead"]


@dataclass(frozen=True, slots=True)
class TaskOutcome:
    """How an attempt ended.

    Attributes:
        spec: the task.
        ending: ``busy``: another live attempt holds it · ``failed``: may be tried again · ``dead``: no
            attempts left.
        message: error class and text for ``failed`` and ``dead``.
        systemic: the fault concerns the whole run.
        damaged: for corrupt input: the key of the task whose output must be made again.
        counts: for ``done``.
        seconds: wall time of this attempt.
    """

    spec: TaskSpec
    ending: Ending
    message: str = ""
    systemic: bool = False
    damaged: str = ""
    counts: Counts | None = None
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class TaskDeps:
    """Collaborators of :func:`run_task` inside one process."""

    context: RunContext
    state: StateStore
    chunks: ChunkStore
    raw: RawFiles
    pause: PauseWatch
    steps: Mapping[str, Step]


def run_task(deps: TaskDeps, step: Step, spec: TaskSpec, index: OutputIndex, numbers: Numbers) -> TaskOutcome:
    """Run one task unless it is done or somebody else's.

    Document-level and file-level faults are inside the step's ``dead`` output and are no failure here.
    """
    began, cpu = time.monotonic(), _cpu_seconds()
    deps.pause.begin()
    try:
        claim = _claim(deps, spec)
    except DataFlowError as e:
        error = plain(e)
        if isinstance(error, CommitUnknown):  # the task may be ours without our knowing: look again
            return TaskOutcome(spec, "busy", _told(error))
        if not is_systemic(error):
            raise
        return TaskOutcome(spec, "failed", _told(error), systemic=True)
    if isinstance(claim, TaskOutcome):
        return claim
    try:
        with (
            Heartbeat(deps.state.hasty(), claim, deps.context.lease_s / 4) as beat,
            scratch_folder(step.name) as scratch,
        ):
            side = TaskSide(
                step,
                spec.partition,
                numbers,
                deps.context.settings.run.memory_budget_mb << 20,
                scratch,
                resolve(step, spec.partition, index),
                index,
                deps.chunks,
                deps.raw,
                lambda s, k: _schema(deps.steps, s, k),
                lambda: _ask(deps, spec, beat),
            )
            return _attempt(deps, step, spec, claim, side, beat, began, cpu)
    except LeaseLost as e:
        return TaskOutcome(spec, "busy", f"LeaseLost: {e}", seconds=time.monotonic() - began)
    except (KeyboardInterrupt, SystemExit):
        # Somebody wants this process to end; the task has done nothing wrong.
        with suppress(DataFlowError):
            give_back(deps.state.hasty(), claim)
        raise
    except Exception as e:  # noqa: BLE001 - a fault in any step must end in state, with its trace, not in a dead worker
        return _failed(deps, spec, claim, e, began)


def _cpu_seconds() -> float:
    """CPU time of this process and of its living children (the parse guard's)."""
    total = time.process_time()
    # The kernel lists a thread's children here; psutil's way reads all of /proc, for every task.
    listed = Path(f"/proc/self/task/{os.getpid()}/children")
    for pid in listed.read_text().split() if listed.exists() else ():
        try:
            times = psutil.Process(int(pid)).cpu_times()
        except psutil.Error:
            continue  # it ended between the listing and the look
        total += times.user + times.system
    return total


def _claim(deps: TaskDeps, spec: TaskSpec) -> Claim | TaskOutcome:
    limit = deps.context.settings.run.max_attempts
    claim = deps.state.claim(spec.key, owner_name(), deps.context.lease_s, limit)
    if claim is not None:
        return claim
    record = deps.state.records([spec.key]).get(spec.key)
    if record is None:
        raise StateError(f"task {spec.step}/{spec.partition} was never enqueued")
    if record.state == "SUCCESS":
        return TaskOutcome(spec, "skipped", counts=record.counts)
    if record.state == "DEAD":
        return TaskOutcome(spec, "dead", f"{record.error_type}: {record.error_message}")
    if record.state == "CANCELLED":
        message = f"StateError: {spec.step}/{spec.partition} was cancelled, as its run was"
        return TaskOutcome(spec, "failed", message, systemic=True)
    if record.state == "RUNNING" and owner_is_gone(record.owner):
        deps.state.expire_leases(record.owner or "")
        return _claim(deps, spec)
    return TaskOutcome(spec, "busy", f"held by {record.owner}")


def _ask(deps: TaskDeps, spec: TaskSpec, beat: Heartbeat) -> None:
    """What every task asks at each batch boundary, and in the midst of whatever takes long.

    Raises:
        LeaseLost: another attempt owns the task.
        Paused: somebody asked for a pause, and no other run wants the task.
    """
    beat.check()
    flag = deps.pause.should_stop(spec.key)
    if flag is not None:
        raise Paused(f"{spec.step}/{spec.partition}: {flag.who} asked for a pause")


def _attempt(
    deps: TaskDeps,
    step: Step,
    spec: TaskSpec,
    claim: Claim,
    side: TaskSide,
    beat: Heartbeat,
    began: float,
    cpu: float,
) -> TaskOutcome:
    context, hooks = deps.context, deps.context.hooks
    specs = {o.kind: o for o in step.outputs}
    staging = Staging(deps.chunks.blobs, spec.key)
    totals, start = _resume(deps, spec, staging)
    # What an earlier success recorded: a file that no longer matches it is quarantined, not argued with.
    recorded = {o.kind: o.sha256 for o in deps.state.records([spec.key])[spec.key].outputs}
    writer = deps.chunks.writer(
        step.name, spec.partition, spec.key, claim.epoch, specs, recorded, side.scratch
    )
    work = Checkpoints(deps.state, staging, claim, step.name, hooks, totals, start)
    published: list[Output] = []
    try:
        for stretch in staging.resume(start):
            for kind, table in stretch.tables.items():
                writer.append(kind, table)
        for end, result in _results(deps, step, side, start):
            _check_kinds(step, specs, result)
            for kind, table in result.outputs.items():
                writer.append(kind, table)
            for made in result.files:
                published.append(
                    deps.chunks.publish_file(
                        made, file_uri(spec, made.kind, made.path.suffix), recorded.get(made.kind, "")
                    )
                )
            totals.add(result)
            work.add(end, result)
            beat.progress = {"rows": totals.counts.documents_in, "position": end}
            side.checkpoint()
            if work.due(context.stage_every_s):
                work.save()
        totals.counts.check(f"{step.name}/{spec.partition}")
        beat.check()
        hooks.reached(f"before publish {step.name}")
        outputs = [*writer.finish(), *published]
        hooks.reached(f"after publish {step.name}")
    except Paused:
        work.pause()
        return TaskOutcome(spec, "paused", seconds=time.monotonic() - began)
    finally:
        writer.abort()
    beat.check()
    seconds = time.monotonic() - began
    totals.metrics["cpu_seconds"] = totals.metrics.get("cpu_seconds", 0.0) + _cpu_seconds() - cpu
    hooks.reached(f"before commit {step.name}")
    try:
        deps.state.commit(
            claim, outputs, totals.counts, totals.metrics, totals.rule_hits, totals.dead(step.name), seconds
        )
    except CommitUnknown:
        if not deps.state.committed(claim):
            raise
    hooks.reached(f"after commit {step.name}")
    staging.clear()
    return TaskOutcome(spec, "done", counts=totals.counts, seconds=seconds)


def _resume(deps: TaskDeps, spec: TaskSpec, staging: Staging) -> tuple[Totals, int]:
    """Totals and position of the last checkpoint whose staged rows are all there and whole."""
    cursor = deps.state.read_cursor(spec.key)
    if cursor is None or cursor.offset == 0:
        return Totals(), 0
    reached = 0
    for stretch in staging.resume(cursor.offset):
        reached = stretch.last_row
    if reached != cursor.offset:
        return Totals(), 0  # staged rows are damaged or swept: from the start, which is always right
    return Totals.from_json(cursor.detail), reached


def _results(
    deps: TaskDeps, step: Step, side: TaskSide, start: int
) -> Iterator[tuple[int | None, StepResult]]:
    """``(position after it, or None where the step can't resume, result)`` in order."""
    if isinstance(step, MapStep):
        state = step.open(side)
        for row, batch in batches(side, start, deps.context.batch_rows, deps.context.batch_bytes):
            yield row + batch.num_rows, step.process(batch, row, state)
    elif isinstance(step, RunStep):
        for result in step.run(side, start):
            yield result.cursor, result
    else:
        raise StateError(f"step '{step.name}' is neither a MapStep nor a RunStep")


def file_uri(spec: TaskSpec, kind: str, suffix: str) -> str:
    """Where a finished file of a task lies: by content key, flat, whatever folders its kind names."""
    name = hashlib.sha256(kind.encode()).hexdigest()[:16]
    return f"data/{spec.step}/{spec.key[:2]}/part_{spec.partition}_{spec.key[:16]}.{name}{suffix}"


def _check_kinds(step: Step, specs: Mapping[str, OutputSpec], result: StepResult) -> None:
    odd = [k for k in result.outputs if k not in specs]
    if odd:
        raise StateError(f"step '{step.name}' wrote output(s) that it did not declare: {', '.join(odd)}")


def _schema(steps: Mapping[str, Step], step: str, kind: str) -> object:
    return next(o.schema for o in steps[step].outputs if o.kind == kind)


def _failed(deps: TaskDeps, spec: TaskSpec, claim: Claim, error: Exception, began: float) -> TaskOutcome:
    trace = traceback.format_exc()
    error = plain(error)
    systemic = is_systemic(error)
    damaged = getattr(error, "producer_key", "")
    message = _told(error)
    state = "FAILED"
    try:
        # A source that moved, or an input that somebody else must make again, costs no attempt either.
        if damaged or is_blameless(error) or isinstance(error, SourceChanged):
            give_back(deps.state, claim)
        else:
            attempts = 1 << 30 if systemic else deps.context.settings.run.max_attempts
            state = deps.state.fail(claim, type(error).__name__, str(error), trace, attempts)
    except LeaseLost:
        return TaskOutcome(spec, "busy", message, seconds=time.monotonic() - began)
    except DataFlowError as e:
        # The state database is full or away. Somebody claims the task when this process is gone.
        message, systemic = message if systemic else _told(plain(e)), True
    return TaskOutcome(
        spec,
        "dead" if state == "DEAD" else "failed",
        message,
        systemic,
        damaged,
        seconds=time.monotonic() - began,
    )


def give_back(state: StateStore, claim: Claim) -> None:
    """PAUSED where the cursor stands: the next claim uses no attempt, and goes on from there.

    Raises:
        LeaseLost: another attempt owns the task.
    """
    at = state.read_cursor(claim.key)
    if at is None:
        state.pause_task(claim, 0)
    else:
        state.pause_task(claim, at.offset, at.processed_rows, at.detail)


def _told(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
