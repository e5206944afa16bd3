from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataflow_ops.errors import IllegalMove
from dataflow_ops.state.machine import (
    LIVE_RUNS,
    OPEN_TASKS,
    RUN_MOVES,
    RUN_STATES,
    TASK_MOVES,
    TASK_STATES,
    event_towards,
    move,
    sources,
)

TASK_EVENTS = sorted({event for _, event in TASK_MOVES})
RUN_EVENTS = sorted({event for _, event in RUN_MOVES})

# Written down a second time, by hand, from the table in the design: state -> states that may follow.
FOLLOWERS = {
    "PENDING": {"RUNNING", "CANCELLED"},
    "RUNNING": {"RUNNING", "SUCCESS", "PAUSED", "FAILED", "DEAD", "CANCELLED"},
    "PAUSED": {"RUNNING", "CANCELLED"},
    "FAILED": {"RUNNING", "DEAD", "CANCELLED"},
    "DEAD": {"PENDING"},
    "SUCCESS": {"PENDING"},
    "CANCELLED": {"PENDING"},
}


def test_task_moves_are_those_of_the_design() -> None:
    found: dict[str, set[str]] = {}
    for (state, _), after in TASK_MOVES.items():
        found.setdefault(state, set()).add(after)
    assert found == FOLLOWERS


@pytest.mark.parametrize("state", sorted(TASK_STATES))
@pytest.mark.parametrize("event", TASK_EVENTS)
def test_every_task_event_moves_or_is_refused(state: str, event: str) -> None:
    if (state, event) in TASK_MOVES:
        assert move(state, event) == TASK_MOVES[state, event]
    else:
        with pytest.raises(IllegalMove, match=state):
            move(state, event)


@given(st.lists(st.sampled_from(TASK_EVENTS), max_size=60))
def test_a_walk_never_leaves_the_machine(events: list[str]) -> None:
    state = "PENDING"
    for event in events:
        try:
            after = move(state, event)
        except IllegalMove:
            continue
        assert after in FOLLOWERS[state]
        # Nothing but work leads to SUCCESS, nothing but a claim or a reclaim to RUNNING.
        assert after != "SUCCESS" or (state, event) == ("RUNNING", "commit")
        assert after != "RUNNING" or event in ("claim", "reclaim")
        # Paused is neither failed nor done, and costs nothing to leave.
        if after == "PAUSED":
            assert move(after, "claim") == "RUNNING"
        state = after


@given(st.lists(st.sampled_from(RUN_EVENTS), max_size=60))
def test_a_run_never_leaves_its_machine(events: list[str]) -> None:
    state = "PLANNED"
    for event in events:
        try:
            after = move(state, event, RUN_MOVES)
        except IllegalMove:
            continue
        assert after in RUN_STATES
        if after == "SUCCEEDED":
            assert state in ("RUNNING", "AWAITING_APPROVAL")
        if state == "SUCCEEDED":
            assert event == "again", "what is done is done again only where that is asked for"
        state = after


def test_every_state_can_be_reached_and_a_good_run_only_begins_again() -> None:
    for moves, start in ((TASK_MOVES, "PENDING"), (RUN_MOVES, "PLANNED")):
        reached = {start}
        while True:
            more = {after for (state, _), after in moves.items() if state in reached} - reached
            if not more:
                break
            reached |= more
        assert reached == {state for state, _ in moves} | set(moves.values())
    assert {event for state, event in RUN_MOVES if state == "SUCCEEDED"} == {"again"}
    assert TASK_STATES == {state for state, _ in TASK_MOVES}


def test_open_tasks_are_those_that_can_be_cancelled() -> None:
    assert set(OPEN_TASKS) == set(sources("cancel"))
    assert set(LIVE_RUNS) < set(sources("cancel", RUN_MOVES))


def test_event_towards() -> None:
    assert event_towards("RUNNING", "PAUSED") == "pause"
    with pytest.raises(IllegalMove, match="SUCCEEDED"):
        event_towards("SUCCEEDED", "FAILED")
