"""How much work of a run is left, in seconds of one worker, as far as it was ever measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dataflow_ops.console.planned import Planned
from dataflow_ops.console.shown_layers import LAYER_OF, Totals
from dataflow_ops.pipeline.flow import steps_until
from dataflow_ops.state.totals import SETTLED


@dataclass(frozen=True, slots=True)
class StepWork:
    """One step. ``left_s`` is ``None`` where nobody has measured what a task of it costs.

    Attributes:
        step: name.
        done: its tasks that are done.
        number: its tasks in all; ``None`` where nobody knows.
        left_s: worker seconds that the others will take.
        weight_s: worker seconds that it took in the run before: it stays as it is while this one goes on.
    """

    step: str
    done: int
    number: int | None
    left_s: float | None
    weight_s: float | None = None

    @property
    def share(self) -> float:
        """Of its tasks, those that are done: 0 to 1."""
        return self.done / self.number if self.number else 0.0

    @property
    def left(self) -> int:
        """Tasks that are left; 0 where nobody knows."""
        return 0 if self.number is None else self.number - self.done


def work_of(totals: Totals, before: Totals, until: str | None, planned: Planned) -> list[StepWork]:
    """Every step of a run, in order.

    A task costs what the finished ones of its step cost in this run, else in the run before. A step that has
    no tasks yet gets as many as are planned, or as many as it had before.

    Args:
        totals: of the run.
        before: of the full run before it; empty where there is none.
        until: last layer of the run.
        planned: tasks of its steps, as far as they are known.
    """
    return [_step(step, totals, before, planned) for step in steps_until(until) if step in LAYER_OF]


def _step(step: str, totals: Totals, before: Totals, planned: Planned) -> StepWork:
    now, old = totals.get(step), before.get(step)
    weight = old.seconds if old is not None else None
    if now is not None and now.settled:
        return StepWork(step, now.number, now.number, 0.0, weight)
    each = next((one.seconds / one.done for one in (now, old) if one is not None and one.done), None)
    if now is not None:
        number: int | None = now.number
    else:
        number = planned.get(step) or (old.number if old is not None else None)
    done = 0 if now is None else sum(now.tasks.get(state, 0) for state in SETTLED)
    if number is None or each is None:
        return StepWork(step, done, number, None, weight)
    return StepWork(step, done, number, (number - done) * each, weight)


def tasks_done(work: Sequence[StepWork]) -> tuple[int, int] | None:
    """Tasks of some steps that are done, and all of them; None where nobody knows how many there will be."""
    if not work or any(one.number is None for one in work):
        return None
    return sum(one.done for one in work), sum(one.number or 0 for one in work)


def share_of_tasks(work: Sequence[StepWork]) -> float:
    """How much of a layer is done, 0 to 1, as its tasks say; 0 until it is known how many there are."""
    counted = tasks_done(work)
    return counted[0] / counted[1] if counted is not None and counted[1] else 0.0


def share_of_run(work: Sequence[StepWork]) -> float:
    """How much of a run is done, 0 to 1.

    Each step counts for what it took in the run before, else all count for the same. That doesn't change on
    the way, so that the share never goes back.
    """
    if not work:
        return 0.0
    weights = [one.weight_s for one in work]
    known = [weight for weight in weights if weight is not None]
    if len(known) == len(weights) and sum(known) > 0:
        return sum(one.share * weight for one, weight in zip(work, known, strict=True)) / sum(known)
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
