"""Budgets and rate limits."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataflow_ops.clients.endpoint_errors import CallStopped
from dataflow_ops.samples.augment.budget import Bound, Budget, BudgetReached
from dataflow_ops.samples.augment.pacing import Pacing
from dataflow_ops.samples.augment.templates import Limits, Prices
from dataflow_ops.state.samples.generations import Usage


def budget(tokens: int | None = None, cost: float | None = None, spent: int = 0) -> Budget:
    limits = Limits(budget_tokens=tokens, budget_cost=cost)
    return Budget(limits, Prices(prompt=1e6, completion=2e6), Usage(spent), threading.Event())


def test_what_fits_and_what_does_not() -> None:
    found = budget(100, spent=50)
    found.reserve(Bound(30, 0.0))
    found.settle(Bound(30, 0.0), Usage(10, 5))
    found.reserve(Bound(35, 0.0))
    found.settle(Bound(35, 0.0), Usage(lost_tokens=35))
    with pytest.raises(BudgetReached, match="100 of 100 tokens are used, the next question may take 1"):
        found.reserve(Bound(1, 0.0))


def test_money() -> None:
    found = budget(cost=10.0)
    bound = found.bound(2, 4)
    assert (bound.tokens, bound.cost) == (6, 10.0)
    found.reserve(bound)
    found.settle(bound, Usage(1, 1, found.cost(1, 1)))
    with pytest.raises(BudgetReached, match=r"3\.0000 of 10\.0000 USD"):
        found.reserve(bound)


def test_who_waits_gets_what_others_spare() -> None:
    found = budget(100)
    found.reserve(Bound(80, 0.0))
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(found.reserve, Bound(30, 0.0))
        assert not waiting.done()
        found.settle(Bound(80, 0.0), Usage(10))
        waiting.result(10)


def test_a_stop_ends_the_waiting() -> None:
    stop = threading.Event()
    found = Budget(Limits(budget_tokens=10), Prices(), Usage(), stop)
    found.reserve(Bound(10, 0.0))
    stop.set()
    with pytest.raises(CallStopped):
        found.reserve(Bound(1, 0.0))


@given(st.lists(st.tuples(st.integers(1, 40), st.floats(0, 1)), max_size=40), st.integers(1, 200))
def test_a_budget_is_never_passed(questions: list[tuple[int, float]], limit: int) -> None:
    found, used = budget(limit), 0
    for most, share in questions:
        try:
            found.reserve(Bound(most, 0.0))
        except BudgetReached:
            assert used + most > limit
            continue
        took = round(most * share)
        used += took
        found.settle(Bound(most, 0.0), Usage(took))
        assert used <= limit


class Clock:
    """Time goes by only while somebody waits."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Stop(threading.Event):
    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self._clock = clock

    def wait(self, timeout: float | None = None) -> bool:
        self._clock.now += timeout or 0.0
        return self.is_set()


@given(st.lists(st.integers(0, 500), min_size=1, max_size=60), st.integers(1, 120), st.integers(100, 3000))
def test_no_minute_holds_more_than_allowed(tokens: list[int], requests: int, per_minute: int) -> None:
    clock = Clock()
    pacing = Pacing(Stop(clock), requests, per_minute, clock)
    admitted: list[tuple[float, int]] = []
    for number in tokens:
        pacing.admit(number)
        admitted.append((clock.now, number))
    for at, _ in admitted:
        within = [number for moment, number in admitted if at <= moment < at + 60 - 1e-6]
        assert len(within) <= requests
        # A question goes out when there is room, whatever its own size.
        assert sum(within[:-1]) <= per_minute


def test_what_was_not_used_lets_the_next_go_sooner() -> None:
    clock = Clock()
    pacing = Pacing(Stop(clock), None, 60, clock)
    pacing.admit(600)
    pacing.give_back(590)
    pacing.admit(1)
    assert clock.now == pytest.approx(110.0)


def test_a_hold_holds_everybody() -> None:
    clock = Clock()
    pacing = Pacing(Stop(clock), None, None, clock)
    pacing.hold(7)
    pacing.hold(3)
    pacing.admit(1)
    assert clock.now == 107.0
    pacing.admit(1)
    assert clock.now == 107.0


def test_a_stop_is_heard() -> None:
    stop = threading.Event()
    pacing = Pacing(stop, 1)
    pacing.admit(1)
    stop.set()
    for wait in (lambda: pacing.admit(1), lambda: pacing.rest(100)):
        with pytest.raises(CallStopped):
            wait()
