"""A pool of spawned worker processes that survives the death of any of them.

Spawned, never forked: a child forked after numba, numpy or pyarrow started threads may hang for ever.
Workers get references; document text never crosses a pipe.
"""

from __future__ import annotations

import multiprocessing as mp
import os
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from types import TracebackType
from typing import Self

from dataflow_ops.engine.context import RunContext, StepBuilder
from dataflow_ops.engine.priority import stand_back
from dataflow_ops.engine.runner import TaskOutcome
from dataflow_ops.values import Numbers, TaskSpec

BUSY_WAIT_S = 0.5
"""How long a task that another live attempt holds is left alone before it is looked at again."""


@dataclass(slots=True)
class _Slot:
    process: BaseProcess
    pipe: Connection
    spec: TaskSpec | None = None


class Pool(AbstractContextManager["Pool"]):
    """Runs tasks on ``workers`` processes; with ``workers=0`` in this process.

    A worker that dies gives its task back as ``failed`` and is replaced when there is work for another.
    A worker whose parent dies ends at once: the task it held is claimed anew as soon as a run wants it.
    """

    def __init__(self, context: RunContext, build: StepBuilder, workers: int) -> None:
        self._context = context
        self._build = build
        self._spawn = mp.get_context("spawn")
        self._wanted = workers
        self._slots: list[_Slot] = []
        self._inline: object | None = None
        self.cut_off: list[TaskSpec] = []
        """Tasks whose workers :meth:`close` had to kill."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __enter__(self) -> Self:
        return self

    def resize(self, workers: int) -> None:
        """Use so many worker processes from the next :meth:`run` on; 0: this process."""
        self._wanted = workers

    def renew(self, context: RunContext) -> None:
        """Work for the run as it is now; workers that know it otherwise are ended. None may be busy."""
        if self._inline is not None:
            self._inline.close()  # type: ignore[attr-defined]
            self._inline = None
        self._end_workers()
        self._context = replace(context, urgent=self._context.urgent)

    def set_urgent(self, urgent: bool) -> None:
        """Whether workers keep their full share of the processors. Idle ones that don't fit are replaced.

        A process that stood back may not take its share again, so it is started anew.
        """
        if urgent == self._context.urgent:
            return
        self._context = replace(self._context, urgent=urgent)
        if not any(slot.spec for slot in self._slots):
            self._end_workers()

    def close(self, *, at_once: bool = False) -> None:
        """End all workers.

        Args:
            at_once: kill those that work on something, instead of giving them a few seconds.
        """
        for slot in self._slots if at_once else ():
            if slot.spec is not None:
                slot.process.kill()
                self.cut_off.append(slot.spec)
                slot.spec = None
        if self._inline is not None:
            self._inline.close()  # type: ignore[attr-defined]
            self._inline = None
        self._end_workers()

    def _end_workers(self) -> None:
        for slot in self._slots:
            try:
                slot.pipe.send(None)
            except OSError:
                slot.process.kill()
            slot.pipe.close()
        for slot in self._slots:
            # An idle one holds nothing: whoever paused wants the slot back now.
            slot.process.join(5 if slot.spec is not None else 1)
            if slot.process.is_alive():
                slot.process.kill()
                slot.process.join()
                if slot.spec is not None:
                    self.cut_off.append(slot.spec)
        self._slots.clear()

    def run(
        self,
        specs: Iterable[TaskSpec],
        numbers: Numbers,
        generation: int,
        halted: Callable[[], bool] = lambda: False,
    ) -> Iterator[TaskOutcome]:
        """Yield each task's outcome as it ends; ``busy`` ones are tried until they end otherwise.

        Once ``halted()`` is true no task is begun any more: those under way end and are yielded, the
        others are not.
        """
        if self._wanted == 0:
            yield from self._run_inline(specs, numbers, generation, halted)
            return
        self._abandon()
        waiting: deque[TaskSpec] = deque(specs)
        later: list[tuple[float, TaskSpec]] = []
        while True:
            now = time.monotonic()
            waiting.extend(spec for at, spec in later if at <= now)
            later = [(at, spec) for at, spec in later if at > now]
            while waiting and not halted() and (slot := self._idle()) is not None:
                if self._give(slot, waiting[0], numbers, generation):
                    waiting.popleft()
            under_way = any(s.spec for s in self._slots)
            if not under_way and (halted() or not (waiting or later)):
                return
            for outcome in self._collect(0.2 if later else 1.0):
                if outcome.ending == "busy":
                    later.append((time.monotonic() + BUSY_WAIT_S, outcome.spec))
                else:
                    yield outcome

    def _run_inline(
        self, specs: Iterable[TaskSpec], numbers: Numbers, generation: int, halted: Callable[[], bool]
    ) -> Iterator[TaskOutcome]:
        from dataflow_ops.engine.worker import Worker

        if self._inline is None:
            self._inline = Worker(self._context, self._build)
        for spec in specs:
            while not halted():
                outcome = self._inline.run(spec, numbers, generation)  # type: ignore[attr-defined]
                if outcome.ending != "busy":
                    yield outcome
                    break
                time.sleep(BUSY_WAIT_S)

    def _idle(self) -> _Slot | None:
        """A worker without a task: one that is there, or a new one."""
        for slot in self._slots[: self._wanted]:
            if slot.spec is None:
                return slot
        if len(self._slots) < self._wanted:
            self._slots.append(self._start())
            return self._slots[-1]
        return None

    def _abandon(self) -> None:
        """End workers whose task nobody waits for: an earlier :meth:`run` was left in the middle."""
        for slot in [s for s in self._slots if s.spec is not None]:
            slot.process.kill()
            slot.process.join()
            slot.pipe.close()
            self._slots.remove(slot)

    def _start(self) -> _Slot:
        ours, theirs = self._spawn.Pipe()
        process = self._spawn.Process(
            target=serve, args=(theirs, self._context, self._build), name="dataflow-worker"
        )
        with _environment_of_workers(), _deaf_to_interrupts():
            process.start()
        theirs.close()
        return _Slot(process, ours)

    def _give(self, slot: _Slot, spec: TaskSpec, numbers: Numbers, generation: int) -> bool:
        """Hand a task to a worker; False where that worker died while it was idle."""
        try:
            slot.pipe.send((spec, numbers, generation))
        except OSError:
            self._remove(slot)
            return False
        slot.spec = spec
        return True

    def _collect(self, timeout: float) -> Iterator[TaskOutcome]:
        ready = wait([s.pipe for s in self._slots], timeout)
        for slot in list(self._slots):
            if slot.pipe not in ready:
                continue
            try:
                outcome = slot.pipe.recv()
            except (EOFError, OSError):
                yield from self._bury(slot)
                continue
            slot.spec = None
            yield outcome

    def _bury(self, slot: _Slot) -> Iterator[TaskOutcome]:
        self._remove(slot)
        if slot.spec is not None:
            code = slot.process.exitcode or 0
            why = signal.Signals(-code).name if code < 0 else f"exit code {code}"
            yield TaskOutcome(slot.spec, "failed", f"WorkerDied: the worker process ended with {why}")

    def _remove(self, slot: _Slot) -> None:
        slot.process.join()
        slot.pipe.close()
        self._slots.remove(slot)


@contextmanager
def _deaf_to_interrupts() -> Iterator[None]:
    """A Ctrl-C goes to the whole group; the parent decides. What is ignored at its start stays ignored in a
    child, so that none dies with a traceback while it still imports.
    """
    if threading.current_thread() is not threading.main_thread():  # only there may signals be set
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


_THREADS = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMBA_NUM_THREADS",
    "RAYON_NUM_THREADS",
)
_PURGE = "MIMALLOC_PURGE_DELAY"


@contextmanager
def _environment_of_workers() -> Iterator[None]:
    """One thread per worker: the processes are the parallelism. Libraries read these when imported, which
    in a spawned child happens before any code of ours runs, so they must stand in the environment.

    Arrow keeps what it freed for ten seconds (in milliseconds, unless somebody set it): the next batch needs
    it, and memory that the system gives anew costs more than many a kernel.
    """
    wanted = {**dict.fromkeys(_THREADS, "1"), _PURGE: os.environ.get(_PURGE, "10000")}
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def serve(pipe: Connection, context: RunContext, build: StepBuilder) -> None:
    """Main loop of a worker process; ends when its parent closes the pipe, and at once when it dies."""
    import pyarrow as pa

    from dataflow_ops.engine.worker import Worker

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides; a Ctrl-C goes to the whole group
    if not context.urgent:
        stand_back()
    threading.Thread(target=_end_with_parent, name="parent-watch", daemon=True).start()
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    with Worker(context, build) as worker:
        while True:
            try:
                message = pipe.recv()
            except EOFError:
                return
            if message is None:
                return
            spec, numbers, generation = message
            outcome = worker.run(spec, numbers, generation)
            try:
                pipe.send(outcome)
            except OSError:
                return


def _end_with_parent() -> None:
    """Wait for the parent's death, then be gone: nobody would hear of the task's end, and its next owner
    must not wait for it. As safe as any kill: what was not committed is made again.
    """
    parent = mp.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)
