"""A budget in tokens and money that is never passed: reserved before a try, settled after it.

What is reserved is an upper bound, so the last of a budget may stay unused: less than one question may take.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Final

from dataflow_ops.clients.endpoint_errors import CallStopped
from dataflow_ops.errors import DataFlowError
from dataflow_ops.samples.augment.templates import Limits, Prices
from dataflow_ops.state.samples.generations import Usage

_MILLION: Final = 1_000_000
_LOOK_S: Final = 0.2


class BudgetReached(DataFlowError):
    """No further question fits into the budget: raise it, and the task goes on."""


@dataclass(frozen=True, slots=True)
class Bound:
    """Most that one try may take."""

    tokens: int
    cost: float


class Budget:
    """What may still be spent. Threads share one.

    Args:
        limits: ``budget_tokens`` and ``budget_cost``; None for no limit.
        prices: of a million tokens.
        spent: before this process began.
        stop: set when everybody is to give up waiting.
    """

    def __init__(self, limits: Limits, prices: Prices, spent: Usage, stop: threading.Event) -> None:
        self._limits = limits
        self._prices = prices
        self._stop = stop
        self._spent = spent
        self._reserved = Bound(0, 0.0)
        self._changed = threading.Condition()

    def bound(self, prompt_tokens: int, completion_tokens: int) -> Bound:
        """What a try of so many tokens may take."""
        return Bound(prompt_tokens + completion_tokens, self.cost(prompt_tokens, completion_tokens))

    def cost(self, prompt_tokens: int, completion_tokens: int) -> float:
        """In the currency of the prices."""
        prices = self._prices
        return (prompt_tokens * prices.prompt + completion_tokens * prices.completion) / _MILLION

    def reserve(self, bound: Bound) -> None:
        """Set ``bound`` aside; wait where others may still give back enough.

        Only for who has nothing set aside: else two could wait for each other.

        Raises:
            BudgetReached: it does not fit, and nobody has anything set aside.
            CallStopped: told to stop.
        """
        with self._changed:
            while not self._fits(bound):
                if self._stop.is_set():
                    raise CallStopped("stopped before the question was asked")
                if self._reserved.tokens <= 0:
                    raise BudgetReached(self._told(bound))
                self._changed.wait(_LOOK_S)
            self._reserved = Bound(self._reserved.tokens + bound.tokens, self._reserved.cost + bound.cost)

    def settle(self, bound: Bound, used: Usage) -> None:
        """Give back what was set aside, and count what was used."""
        with self._changed:
            tokens = self._reserved.tokens - bound.tokens
            # Sums of fractions that come and go leave a rest, which must not count for ever.
            self._reserved = Bound(tokens, self._reserved.cost - bound.cost if tokens else 0.0)
            self._spent += used
            self._changed.notify_all()

    def _fits(self, bound: Bound) -> bool:
        tokens, cost = self._limits.budget_tokens, self._limits.budget_cost
        if tokens is not None and self._spent.tokens + self._reserved.tokens + bound.tokens > tokens:
            return False
        return cost is None or self._spent.most_cost + self._reserved.cost + bound.cost <= cost

    def _told(self, bound: Bound) -> str:
        limits, spent = self._limits, self._spent
        parts = []
        if limits.budget_tokens is not None and spent.tokens + bound.tokens > limits.budget_tokens:
            parts.append(
                f"{spent.tokens:,} of {limits.budget_tokens:,} tokens are used, the next question may take"
                f" {bound.tokens:,}: raise --budget-tokens"
            )
        if limits.budget_cost is not None and spent.most_cost + bound.cost > limits.budget_cost:
            name = self._prices.currency
            parts.append(
                f"{spent.most_cost:,.4f} of {limits.budget_cost:,.4f} {name} are spent, the next question may"
                f" cost {bound.cost:,.4f}: raise --budget-cost"
            )
        return f"the budget is reached: {'; '.join(parts)}"
