"""Which failures Airflow tries again: those that another attempt can help, such as a lost worker."""

from __future__ import annotations

from typing import Any, Final

from airflow.sdk import RetryDecision, RetryPolicy  # noqa: TID253 - this package is where Airflow belongs
from airflow.sdk.exceptions import AirflowException  # noqa: TID253

from dataflow_ops.errors import DataFlowError

UNFORESEEN: Final = 3
"""Attempts in all at what fails with an error that nobody foresaw: it is hardly a passing one."""


class OnlyWhereItHelps(RetryPolicy):
    """Fails at once where somebody must do something first: the message is what counts then.

    All ``retries`` are for what comes from outside and passes: lost workers, servers that restart.
    """

    def evaluate(
        self, exception: BaseException, try_number: int, max_tries: int, context: Any = None
    ) -> RetryDecision:
        """Follow the error's own word where it has one."""
        if isinstance(exception, DataFlowError) and not exception.retryable:
            return RetryDecision.fail(f"another attempt would end alike: {exception}")
        passing = isinstance(exception, DataFlowError | AirflowException | OSError | SystemExit)
        if not passing and try_number >= UNFORESEEN:
            return RetryDecision.fail(f"it failed {try_number} times with {type(exception).__name__}")
        return RetryDecision.default()
