"""Run as a process: imports a file and kills itself at a moment of a batch, as ``kill -9`` would."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Mapping

import sqlalchemy as sa

from dataflow_ops.samples.importing import ImportStep, Read
from dataflow_ops.samples.running import Batch, run_task
from dataflow_ops.state.samples.records import Claim
from dataflow_ops.state.samples.store import SampleStore


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class DoomedStep(ImportStep):
    """Dies at the ``number``-th batch: before it is written, half way, or before its commit."""

    moment = ""
    number = 0
    seen = 0

    def keep(self, connection: sa.Connection, claim: Claim, batch: Batch[Read]) -> Mapping[str, float]:
        self.seen += 1
        doomed = self.seen == self.number
        if doomed and self.moment == "before":
            die()
        counts = super().keep(connection, claim, batch)
        if doomed and self.moment == "written":
            die()
        return counts


def main(url: str, task_id: str, rows: str, moment: str, number: str) -> None:
    with SampleStore(url) as store:
        step = DoomedStep(store, batch_rows=int(rows))
        step.moment, step.number = moment, int(number)
        if moment == "committed":
            run_task(store, task_id, step, told=lambda _: die() if step.seen == step.number else None)
        run_task(store, task_id, step)


if __name__ == "__main__":
    main(*sys.argv[1:])
