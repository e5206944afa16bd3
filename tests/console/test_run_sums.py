from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from dataflow_ops.console.sums import REST, Sums
from dataflow_ops.errors import DatabaseUnavailable
from dataflow_ops.state.store import StateStore


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def state(tmp_path: Path) -> Iterator[StateStore]:
    with StateStore(f"sqlite:///{tmp_path / 'state.db'}") as state:
        yield state


def test_an_answer_is_good_for_a_multiple_of_its_cost(state: StateStore) -> None:
    clock, asked = Clock(), []
    sums = Sums(state, patience_s=60, clock=clock)

    def question() -> int:
        asked.append(1)
        clock.now += 0.02
        return len(asked)

    key = ("any", "r1")
    assert sums.any(key, question) == (1, True)
    clock.now += REST * 0.02 - 0.03
    assert sums.any(key, question) == (1, True), "still good"
    clock.now += 0.03
    assert sums.any(key, question) == (2, True)
    sums.forget("r2")
    assert sums.any(key, question) == (2, True)
    sums.forget("r1")
    assert sums.any(key, question) == (3, True)
    sums.close()


def test_nobody_waits_for_what_takes_long(state: StateStore) -> None:
    go = threading.Event()
    sums = Sums(state, patience_s=0.01)
    asked = []

    def slow() -> str:
        asked.append(1)
        assert go.wait(60)
        return "done"

    key = ("any", "r1")
    assert sums.any(key, slow) == (None, False)
    assert sums.any(key, slow) == (None, False)
    go.set()
    while sums.any(key, slow) != ("done", True):
        pass
    assert len(asked) == 1, "asked once, however many wait"
    sums.close()


def test_an_old_answer_stands_while_a_dear_one_is_found_anew(state: StateStore) -> None:
    clock, go, answers = Clock(), threading.Event(), iter([1, 2])
    sums = Sums(state, patience_s=60, clock=clock)

    def dear() -> int:
        number = next(answers)
        if number == 2:
            assert go.wait(60)
        clock.now += 1.0
        return number

    key = ("any", "r1")
    assert sums.any(key, dear) == (1, True)
    clock.now += 100.0
    assert sums.any(key, dear) == (1, True), "not a moment is waited, whatever the patience"
    go.set()
    while sums.any(key, dear)[0] != 2:
        pass
    sums.close()


def test_a_database_that_is_away_is_told_and_asked_again(state: StateStore) -> None:
    sums = Sums(state, patience_s=60)

    def away() -> int:
        raise DatabaseUnavailable("gone")

    key = ("any", "r1")
    with pytest.raises(DatabaseUnavailable):
        sums.any(key, away)
    assert sums.any(key, lambda: 5) == (5, True)
    sums.close()
