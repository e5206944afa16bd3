"""``Retry-After`` (RFC 9110, 10.2.3): seconds, or a date."""

from __future__ import annotations

import math
from collections.abc import Mapping
from email.utils import parsedate_to_datetime


def asked_to_wait(headers: Mapping[str, str], now: float) -> float | None:
    """How many seconds a server asks to wait; None where it does not say, or says nothing sensible.

    Args:
        headers: of the answer, names in any case (``httpx.Headers``) or in small letters.
        now: seconds since 1970. Where the answer has a ``Date``, that is taken: the server's own clock.
    """
    value = headers.get("retry-after", "").strip()
    if not value:
        return None
    try:
        seconds = float(value)
    except ValueError:
        at, said_at = _moment(value), _moment(headers.get("date", ""))
        if at is None:
            return None
        return max(0.0, at - (now if said_at is None else said_at))
    return seconds if math.isfinite(seconds) and seconds >= 0 else None


def _moment(date: str) -> float | None:
    """Seconds since 1970 of an HTTP date."""
    try:
        return parsedate_to_datetime(date).timestamp()
    except (ValueError, TypeError, OverflowError):
        return None
