"""The two state machines as literal tables: what may happen to a task and to a run. Pure, no database.

A *move* is (state, event) → state. Whatever is not in a table does not happen: :func:`move` raises.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

from dataflow_ops.errors import IllegalMove

TaskState = Literal["PENDING", "RUNNING", "PAUSED", "SUCCESS", "FAILED", "DEAD", "CANCELLED"]
TaskEvent = Literal[
    "claim", "reclaim", "commit", "pause", "fail", "exhaust", "revive", "ghost", "cancel", "enqueue"
]
RunState = Literal[
    "PLANNED",
    "RUNNING",
    "PAUSED",
    "SUCCEEDED",
    "SUCCEEDED_WITH_DEAD",
    "AWAITING_APPROVAL",
    "FAILED",
    "CANCELLED",
]
RunEvent = Literal[
    "start",
    "pause",
    "resume",
    "again",
    "succeed",
    "succeed_with_dead",
    "await_approval",
    "approve",
    "approve_with_dead",
    "reject",
    "fail",
    "cancel",
]

Moves = Mapping[tuple[str, str], str]

TASK_MOVES: Final[Moves] = {
    ("PENDING", "claim"): "RUNNING",
    ("PAUSED", "claim"): "RUNNING",
    ("FAILED", "claim"): "RUNNING",
    ("RUNNING", "reclaim"): "RUNNING",  # the lease ran out: a new epoch, the old attempt is fenced off
    ("RUNNING", "commit"): "SUCCESS",
    ("RUNNING", "pause"): "PAUSED",
    ("RUNNING", "fail"): "FAILED",
    ("RUNNING", "exhaust"): "DEAD",  # failed, or died silently, with no attempt left
    ("FAILED", "exhaust"): "DEAD",  # max_attempts was lowered since
    ("DEAD", "revive"): "PENDING",
    ("SUCCESS", "ghost"): "PENDING",  # done in state, gone on disk
    ("PENDING", "cancel"): "CANCELLED",
    ("RUNNING", "cancel"): "CANCELLED",
    ("PAUSED", "cancel"): "CANCELLED",
    ("FAILED", "cancel"): "CANCELLED",
    ("CANCELLED", "enqueue"): "PENDING",
}

RUN_MOVES: Final[Moves] = {
    ("PLANNED", "start"): "RUNNING",
    ("RUNNING", "start"): "RUNNING",  # the process died without a word and the run is taken up again
    ("FAILED", "start"): "RUNNING",  # the disk has room again; finished tasks are skipped
    ("CANCELLED", "start"): "RUNNING",
    ("SUCCEEDED_WITH_DEAD", "start"): "RUNNING",  # dead chunks were revived
    ("PAUSED", "start"): "RUNNING",
    ("SUCCEEDED", "again"): "RUNNING",  # cleared in the orchestrator: what is done is looked at anew
    ("PAUSED", "resume"): "RUNNING",
    ("PLANNED", "pause"): "PAUSED",
    ("RUNNING", "pause"): "PAUSED",
    ("RUNNING", "succeed"): "SUCCEEDED",
    ("RUNNING", "succeed_with_dead"): "SUCCEEDED_WITH_DEAD",
    ("RUNNING", "await_approval"): "AWAITING_APPROVAL",
    ("AWAITING_APPROVAL", "approve"): "SUCCEEDED",
    ("AWAITING_APPROVAL", "approve_with_dead"): "SUCCEEDED_WITH_DEAD",
    ("AWAITING_APPROVAL", "reject"): "CANCELLED",
    ("PLANNED", "fail"): "FAILED",
    ("RUNNING", "fail"): "FAILED",
    ("PAUSED", "fail"): "FAILED",
    ("PLANNED", "cancel"): "CANCELLED",
    ("RUNNING", "cancel"): "CANCELLED",
    ("PAUSED", "cancel"): "CANCELLED",
    ("AWAITING_APPROVAL", "cancel"): "CANCELLED",
    ("FAILED", "cancel"): "CANCELLED",
}

TASK_STATES: Final = frozenset(state for state, _ in TASK_MOVES) | frozenset(TASK_MOVES.values())
RUN_STATES: Final = frozenset(state for state, _ in RUN_MOVES) | frozenset(RUN_MOVES.values())

OPEN_TASKS: Final = ("PENDING", "RUNNING", "PAUSED", "FAILED")
"""States of a task that something may still come of, and that cancelling acts on."""
LIVE_RUNS: Final = ("PLANNED", "RUNNING", "PAUSED")
"""States of a run that still wants its tasks."""
FINISHED_RUNS: Final = ("SUCCEEDED", "SUCCEEDED_WITH_DEAD", "AWAITING_APPROVAL")
"""States of a run that did all that it was to do."""


def move(state: str, event: str, moves: Moves = TASK_MOVES) -> str:
    """The state after an event.

    Args:
        state: where the task (or run) is.
        event: what happens to it.
        moves: :data:`TASK_MOVES` or :data:`RUN_MOVES`.

    Raises:
        IllegalMove: the table has no such move.
    """
    try:
        return moves[state, event]
    except KeyError:
        allowed = ", ".join(sorted(e for s, e in moves if s == state)) or "nothing"
        raise IllegalMove(f"'{event}' can't happen in state {state}; possible there: {allowed}") from None


def sources(event: str, moves: Moves = TASK_MOVES) -> tuple[str, ...]:
    """The states in which an event may happen, in the order of the table."""
    return tuple(state for state, e in moves if e == event)


def event_towards(state: str, target: str, moves: Moves = RUN_MOVES) -> str:
    """An event that leads from ``state`` to ``target`` in one move.

    Raises:
        IllegalMove: no single move leads there.
    """
    for (origin, event), end in moves.items():
        if origin == state and end == target and event != "again":  # that is only done where it is asked for
            return event
    raise IllegalMove(f"no move leads from {state} to {target}")
