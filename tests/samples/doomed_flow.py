"""Run as a process: cleans or exports and kills itself at a moment of a batch, as ``kill -9`` would."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from dataflow_ops.samples.cleaning.task import CleanStep
from dataflow_ops.samples.export.task import ExportStep
from dataflow_ops.samples.running import Batch, SampleStep, run_task
from dataflow_ops.state.samples.records import Claim
from dataflow_ops.state.samples.store import SampleStore
from dataflow_ops.storage.local import LocalStore


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def step_of(kind: str, store: SampleStore, root: Path) -> SampleStep[Any]:
    if kind == "clean":
        return CleanStep(store)
    return ExportStep(store, LocalStore(root), lambda: False)


class Doomed:
    """Dies at the ``number``-th batch: before it is written, before its commit, or behind it."""

    def __init__(self, step: SampleStep[Any], moment: str, number: int) -> None:
        self.batches = step.batches
        self._step, self._moment, self._number = step, moment, number
        self._seen = 0

    def keep(self, connection: sa.Connection, claim: Claim, batch: Batch[Any]) -> Mapping[str, float]:
        self._seen += 1
        if self._at("before"):
            die()
        counts = self._step.keep(connection, claim, batch)
        if self._at("written"):
            die()
        return counts

    def told(self, _: int) -> None:
        if self._at("committed"):
            die()

    def _at(self, moment: str) -> bool:
        return (self._seen, self._moment) == (self._number, moment)


if __name__ == "__main__":
    kind, url, root, task_id, moment, number = sys.argv[1:]
    with SampleStore(url) as store:
        doomed = Doomed(step_of(kind, store, Path(root)), moment, int(number))
        run_task(store, task_id, doomed, told=doomed.told)
