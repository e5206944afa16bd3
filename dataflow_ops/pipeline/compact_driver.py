"""Drives the three steps of a compaction: the same planning, skipping and pool as the flow's."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from dataflow_ops.engine.inputs import plan_step
from dataflow_ops.errors import CorruptOutput
from dataflow_ops.pipeline.compact_plan import Group
from dataflow_ops.pipeline.compact_steps import Work
from dataflow_ops.pipeline.driver import Driver
from dataflow_ops.pipeline.flow import COMPACTION
from dataflow_ops.pipeline.tally import Planned, StepReport
from dataflow_ops.values import Numbers

_NUMBERS = Numbers(1, 1, 1, 1, 1)
"""No step of a compaction is cut into ranges."""


class CompactDriver(Driver):
    """See :class:`Driver`, whose steps are those of the flow.

    Args:
        arguments: as for :class:`Driver`.
        work: the versions to be put together.
    """

    def __init__(self, *arguments: Any, work: Work) -> None:
        super().__init__(*arguments)
        self.work = work

    def groups(self) -> list[Group]:
        """The new shards.

        Raises:
            CorruptOutput: what ``weigh`` wrote is damaged; it names the task.
        """
        for partition, output in self.index.outputs("weigh", "content"):
            if not self.chunks.verify(output):
                error = CorruptOutput(f"{output.uri} is gone or damaged")
                error.producer_key = self.index.finished("weigh")[partition].key
                raise error
        return self.work.groups_of(self.index, self.chunks)

    def _plan(self, name: str, only: Sequence[str] | None) -> Planned:
        step = self.steps[name]
        if name == "weigh":
            wanted = list(self.work.shards)
        elif name == "pack":
            wanted = [group.name for group in self.groups() if not group.taken_over]
        else:
            wanted = list(self.work.lineage)
        specs = self._with_retries(plan_step(step, wanted, self.index, _NUMBERS))
        self.state.enqueue(self.context.run_id, specs)
        report = StepReport(name, tasks=len(specs))
        return Planned(self._split(specs, report) if specs else [], _NUMBERS, report)

    def make_again(self, producer_keys: Iterable[str], reader: str) -> None:
        """Rerun tasks whose outputs were found damaged, and what lies between them and the reader."""
        for key, record in self.state.records(list(producer_keys)).items():
            self.reporter.note(f"{record.step}/{record.partition}: stored bytes are damaged; made again")
            self.state.ghost(key)
        self.forget()
        last = COMPACTION.index(reader) if reader in COMPACTION else len(COMPACTION)
        for name in COMPACTION[:last]:
            self.run_step(name)
