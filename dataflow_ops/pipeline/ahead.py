"""Looking ahead: steps of a run that were done before, so that no task is started to find that out."""

from __future__ import annotations

from dataflow_ops.pipeline.flow import STEP_NAMES, steps_until
from dataflow_ops.pipeline.ordered import is_ordered, needs_turn
from dataflow_ops.pipeline.session import Session


def nothing_to_do(session: Session, until: str | None) -> list[str]:
    """Steps of an opened run, whose sources are listed, that need not be started.

    The driver plans them one after the other, as it would in each step: an output counts only if it is there
    with the recorded size and time. At the first step with anything left the look ahead ends, since what
    follows reads what that step will make. So it does before steps that days take in turn.

    Args:
        session: of the process that listed the sources; ``discover`` has run.
        until: last layer of the run.

    Returns:
        Steps that are done, and those after the last layer.

    Raises:
        DataFlowError: outputs or the listing can't be read.
    """
    wanted = steps_until(until)
    after = [name for name in STEP_NAMES if name not in wanted]
    done: list[str] = []
    for name in wanted[1:]:
        if is_ordered(name) and needs_turn(session.row):
            break
        planned = session.driver.plan(name)
        session.driver.index.forget(name)
        if planned.todo or planned.report.dead:
            break
        session.driver.reporter.step_planned(name, planned.report.tasks, planned.report.skipped)
        done.append(name)
    return done + after
