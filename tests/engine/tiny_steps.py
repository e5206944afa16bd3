"""The smallest steps that the engine can run, importable in spawned workers."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pyarrow as pa

from dataflow_ops.engine.context import RunContext
from dataflow_ops.job_file import parse_job
from dataflow_ops.protocols import Input, OutputSpec, Partitioning, Side, Step
from dataflow_ops.settings import JobSettings
from dataflow_ops.state.migrate import migrate
from dataflow_ops.state.store import StateStore
from dataflow_ops.values import Counts, Numbers, StepResult, TaskSpec

NUMBERS = Numbers(1, 1, 1, 1, 1)
ROWS = pa.schema([("number", pa.int64())])


class Act:
    """One row for each task; a partition's name says what happens first.

    ``die``: killed, each time · ``die-once``: killed the first time · ``slow``: half a second ·
    ``mixed``: a result without a cursor, then one with it · ``ask-for-ever``: asks until somebody says that
    it is enough.
    """

    name = "act"
    layer = "ingest"
    partitioned_by: Partitioning = "chunk"
    inputs: tuple[Input, ...] = ()
    outputs = (OutputSpec("rows", ROWS),)

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def fingerprint(self) -> Mapping[str, object]:
        return {"version": 1}

    def run(self, side: Side, start: int) -> Iterator[StepResult]:
        name = side.partition
        with open(self._folder / f"{name}.pids", "a", encoding="utf-8") as out:
            out.write(f"{os.getpid()}\n")
        first = len((self._folder / f"{name}.pids").read_text().splitlines()) == 1
        if name == "die" or (name == "die-once" and first):
            os.kill(os.getpid(), signal.SIGKILL)
        if name.startswith("slow"):
            time.sleep(0.5)
        if name == "ask-for-ever":
            asking = self._folder / f"{name}.asking"
            asking.touch()
            while asking.read_text() != "enough":
                side.checkpoint()
                time.sleep(0.001)
        if name == "mixed":
            yield StepResult({"rows": pa.table({"number": [0]}, schema=ROWS)}, Counts(1, 1, documents_out=1))
            yield StepResult(counts=Counts(1, 1), cursor=2)
        yield StepResult({"rows": pa.table({"number": [1]}, schema=ROWS)}, Counts(1, 1, documents_out=1))


def build(context: RunContext) -> Mapping[str, Step]:
    return {"act": Act(context.root)}


def build_nothing(context: RunContext) -> Mapping[str, Step]:
    """A worker that can't even begin."""
    raise MemoryError


def settings() -> JobSettings:
    return parse_job({"dataset": {"id": "tiny"}, "run": {"max_attempts": 2}}, "test")


def context_in(folder: Path, **fields: object) -> RunContext:
    """A run with its state and its root in one folder."""
    url = f"sqlite:///{folder / 'state.db'}"
    migrate(url)
    chosen = settings()
    with StateStore(url) as state:
        state.create_run("r", "tiny", "tiny", "full", chosen.model_dump_json(), None)
        state.set_run_state("r", "RUNNING")
    return RunContext("r", chosen, folder, url, **fields)  # type: ignore[arg-type]


def enqueued(context: RunContext, *partitions: str) -> list[TaskSpec]:
    specs = [TaskSpec(f"{i:064x}", "act", "ingest", name) for i, name in enumerate(partitions)]
    with StateStore(context.state_url) as state:
        state.enqueue("r", specs)
    return specs
