"""Whether everything is there that a step, or a version, is made of.

What is read by a partition's own name is missed when it is read. What is gathered from all partitions of a
producer is not: fewer would make a smaller result that looks like the whole. It happens where somebody marks
a task as done in the orchestrator.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from dataflow_ops.pipeline.flow import STEP_NAMES, partitions
from dataflow_ops.pipeline.tally import RunFailed
from dataflow_ops.protocols import Step
from dataflow_ops.values import Numbers

if TYPE_CHECKING:
    from dataflow_ops.pipeline.driver import Driver

GATHERED = ("slice", "all", "pointer")
"""Ways to read an input that take whatever partitions are there."""


def need_inputs(driver: Driver, step: Step, numbers: Numbers, lost: Collection[str]) -> None:
    """Stop where a producer of a step is not done in full.

    Args:
        driver: of the run.
        step: what is about to be planned.
        numbers: the run's ranges.
        lost: chunks that were given up before the step.

    Raises:
        RunFailed: names the producer.
    """
    for item in step.inputs:
        if item.take in GATHERED and item.step in STEP_NAMES:
            done = {partition for partition, _ in driver.index.outputs(item.step, item.kind)}
            _all_of(_expected(driver, item.step, numbers, lost), done, item.step, f"step '{step.name}'")


def need_shipped(driver: Driver) -> None:
    """Stop where a version would lack outputs.

    Raises:
        RunFailed: names the step.
    """
    numbers, lost = driver.numbers(), set(driver.dead_chunks())
    fates = {partition for partition, _ in driver.index.outputs("scatter", "fates")}
    for name, done in (("scatter", fates), ("export", driver.index.finished("export"))):
        _all_of(_expected(driver, name, numbers, lost), done, name, "the version")


def _expected(driver: Driver, name: str, numbers: Numbers, lost: Collection[str]) -> list[str]:
    if name == "discover":
        return ["all"]
    return partitions(name, numbers, [c for c in driver.chunk_ids() if c not in lost])


def _all_of(expected: Sequence[str], done: Collection[str], producer: str, reader: str) -> None:
    missing = [partition for partition in expected if partition not in done]
    if missing:
        named = ", ".join(missing[:3]) + (", …" if len(missing) > 3 else "")
        raise RunFailed(
            f"{reader} would be made of too little: of step '{producer}' {len(missing)} of {len(expected)}"
            f" partitions are not done ({named}). Was a task of it marked as done by hand? Clear it with"
            " everything downstream, or run the job again: what is done is skipped"
        )
