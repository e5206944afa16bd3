"""Which failures Airflow tries again: those that another attempt can help, such as a lost worker."""

from __future__ import annotations

from typing import Any

from airflow.sdk import RetryDecision, RetryPolicy  # noqa: TID253 - this package is where Airflow belongs

from dataflow_ops.errors import DataFlowError


class OnlyWhereItHelps(RetryPolicy):
    """Fails at once where somebody must do something first: the message is what counts then."""

    def evaluate(
        self, exception: BaseException, try_number: int, max_tries: int, context: Any = None
    ) -> RetryDecision:
        """Follow the error's own word; leave all others to ``retries``."""
        if isinstance(exception, DataFlowError) and not exception.retryable:
            return RetryDecision.fail(f"another attempt would end alike: {exception}")
        return RetryDecision.default()
