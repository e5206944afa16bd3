"""How much work of a run is left, in seconds of one worker, as far as it was ever measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dataflow_ops.console.shown_layers import Totals
from dataflow_ops.pipeline.flow import partitioning, steps_until


@dataclass(frozen=True, slots=True)
class StepWork:
    """One step. ``left_s`` is ``None`` where nobody has measured what a task of it costs.

    Attributes:
        step: name.
        share: of its tasks, those that are done: 0 to 1.
        done_s: worker seconds spent on them.
        left_s: worker seconds that the others will take.
        left: tasks that are left.
    """

    step: str
    share: float
    done_s: float
    left_s: float | None
    left: int


def work_of(totals: Totals, before: Totals, until: str | None) -> list[StepWork]:
    """Every step of a run, in order.

    A task costs what the finished ones of its step cost in this run, else in the run before. A step that has
    no tasks yet gets as many as there are chunks, or as many as it had before.

    Args:
        totals: of the run.
        before: of the full run before it; empty where there is none.
        until: last layer of the run.
    """
    chunks = totals["fetch"].number if "fetch" in totals else 0
    return [_step(step, totals, before, chunks) for step in steps_until(until)]


def _step(step: str, totals: Totals, before: Totals, chunks: int) -> StepWork:
    now, old = totals.get(step), before.get(step)
    if now is not None and now.settled:
        return StepWork(step, 1.0, now.seconds, 0.0, 0)
    each = next((one.seconds / one.done for one in (now, old) if one is not None and one.done), None)
    done = now.done if now is not None else 0
    if now is not None:
        number: int | None = now.number
    elif partitioning(step) == "chunk" and chunks:
        number = chunks
    else:
        number = old.number if old is not None else None
    spent = now.seconds if now is not None else 0.0
    if number is None:
        return StepWork(step, 0.0, spent, None, 0)
    left = number - done
    return StepWork(
        step, done / number if number else 0.0, spent, None if each is None else left * each, left
    )


def share_done(work: Sequence[StepWork]) -> float:
    """How much of some steps is done, 0 to 1: by their cost where it is known of all, else step by step."""
    if not work:
        return 0.0
    left = [one.left_s for one in work]
    if all(seconds is not None for seconds in left):
        spent = sum(one.done_s for one in work)
        whole = spent + sum(seconds for seconds in left if seconds is not None)
        if whole > 0:
            return spent / whole
    return sum(one.share for one in work) / len(work)


def seconds_left(work: Sequence[StepWork], workers: float, begun_s: float = 0.0) -> float | None:
    """Seconds until the last step is done; ``None`` where the cost of a step is unknown or nobody works.

    Args:
        work: all steps of the run.
        workers: worker seconds that are spent each second.
        begun_s: what the tasks that are being worked on have spent already.
    """
    if workers <= 0:
        return None
    total, credit = 0.0, begun_s
    for one in work:
        if one.left_s is None:
            return None
        if one.left:
            here = max(0.0, one.left_s - credit)
            credit = max(0.0, credit - one.left_s)
            # More workers than tasks are of no use: the step at the end of dedup has one.
            total += here / min(workers, one.left)
    return total
