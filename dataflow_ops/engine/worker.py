"""One process that runs tasks: opens its own state, storage and steps, once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Self

from dataflow_ops.engine.base_records import record_source
from dataflow_ops.engine.context import RunContext, StepBuilder
from dataflow_ops.engine.inputs import OutputIndex
from dataflow_ops.engine.raw import RawStore
from dataflow_ops.engine.runner import TaskDeps, TaskOutcome, run_task
from dataflow_ops.engine.watching import pause_watch
from dataflow_ops.protocols import Step
from dataflow_ops.state.store import StateStore
from dataflow_ops.storage.chunk_store import ChunkStore
from dataflow_ops.storage.opening import open_store
from dataflow_ops.values import Numbers, TaskSpec


class Worker(AbstractContextManager["Worker"]):
    """Runs tasks in this process.

    Args:
        context: the run.
        build: builds the steps; collaborators that must be closed are the steps' own ``close``.
    """

    def __init__(self, context: RunContext, build: StepBuilder) -> None:
        self._state = StateStore(context.state_url, context.patience_s)
        self._steps: Mapping[str, Step] = build(context)
        self._used: dict[str, Step] = {}
        self._index = OutputIndex(record_source(self._state, context.base), context.run_id)
        self._generation = 0
        blobs = open_store(context.root, context.disk)
        self._deps = TaskDeps(
            context,
            self._state,
            ChunkStore(blobs),
            RawStore(context.settings, blobs),
            pause_watch(self._state.hasty(), context),
            self._steps,
        )

    def run(self, spec: TaskSpec, numbers: Numbers, generation: int = 0) -> TaskOutcome:
        """Run one task. A new ``generation`` means that earlier steps were made again: look them up anew."""
        if generation != self._generation:
            self._index.forget()
            self._generation = generation
        step = self._used[spec.step] = self._steps[spec.step]
        return run_task(self._deps, step, spec, self._index, numbers)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the state store and what the steps hold (child processes)."""
        for step in self._used.values():
            close: Callable[[], None] | None = getattr(step, "close", None)
            if close is not None:
                close()
        self._state.close()
