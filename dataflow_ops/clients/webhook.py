"""One event as a signed HTTP request, and what the receiver's answer means for it.

The signature is HMAC-SHA256 (RFC 2104) over ``timestamp.body``; ``docs/webhooks.md`` shows how to check it.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final, Literal

import httpx

from dataflow_ops import __version__
from dataflow_ops.clients.retry_after import asked_to_wait

KEY_HEADER: Final = "Idempotency-Key"
TIMESTAMP_HEADER: Final = "X-DataFlow-Timestamp"
SIGNATURE_HEADER: Final = "X-DataFlow-Signature"
TOPIC_HEADER: Final = "X-DataFlow-Topic"
MOST_RETRY_AFTER_S: Final = 86_400.0
"""Longest wait that a receiver may ask for, seconds."""
_CONNECT_S: Final = 5.0
_BODY_S: Final = 1.0
_MOST_ANSWER_BYTES: Final = 400
_MOST_READ_BYTES: Final = 65_536
_LATER: Final = frozenset({408, 425})
_TOO_MANY: Final = 429
_UNAVAILABLE: Final = 503

Verdict = Literal["accepted", "refused", "again", "busy", "away"]


@dataclass(frozen=True, slots=True)
class Target:
    """Where to send.

    Attributes:
        url: ``http`` or ``https``.
        secret: key of the signature.
        timeout_s: longest time for one request, from its connection to the answer's headers.
    """

    url: str
    secret: bytes = field(repr=False)
    timeout_s: float = 10.0


@dataclass(frozen=True, slots=True)
class Message:
    """What is sent: the same bytes and the same key at every try."""

    key: str
    topic: str
    body: bytes


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of a request.

    Attributes:
        verdict: ``accepted`` · ``refused``: it will never be accepted · ``again``: it failed, and may have
            arrived · ``busy``: the receiver wants fewer requests · ``away``: it can't be reached, so nothing
            has arrived.
        told: what happened, for a person.
        wait_s: how long the receiver wants to be left alone; ``None`` where it does not say.
    """

    verdict: Verdict
    told: str = ""
    wait_s: float | None = None


def message_of(
    event_id: int, topic: str, subject: str, payload: Mapping[str, Any], created_at: float
) -> Message:
    """The message of an event.

    The key holds when the event was written, too: databases that begin anew count from 1 again, and several
    of them may send to one receiver.
    """
    key = f"{event_id}-{round(created_at * 1_000_000)}"
    at = datetime.fromtimestamp(created_at, UTC).isoformat(timespec="milliseconds")
    body = {
        "id": event_id,
        "key": key,
        "topic": topic,
        "subject": subject,
        "created_at": at.replace("+00:00", "Z"),
        "payload": dict(payload),
    }
    text = json.dumps(body, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return Message(key, topic, text.encode("utf-8", "replace"))


def signature(secret: bytes, timestamp: str, body: bytes) -> str:
    """``v1=`` and 64 hex digits."""
    return "v1=" + hmac.new(secret, timestamp.encode() + b"." + body, hashlib.sha256).hexdigest()


def headers(message: Message, secret: bytes, timestamp: int) -> dict[str, str]:
    """All headers of a request that is sent at ``timestamp``, seconds since 1970 (UTC)."""
    return {
        "Content-Type": "application/json; charset=utf-8",
        "User-Agent": f"dataflow-ops/{__version__}",
        KEY_HEADER: message.key,
        TOPIC_HEADER: message.topic,
        TIMESTAMP_HEADER: str(timestamp),
        SIGNATURE_HEADER: signature(secret, str(timestamp), message.body),
    }


async def send(
    client: httpx.AsyncClient, target: Target, message: Message, clock: Callable[[], float]
) -> Answer:
    """Send one message once. Redirects are not followed.

    Args:
        client: with whatever connections and proxies it has.
        target: where to.
        message: what.
        clock: seconds since 1970 (UTC).

    Returns:
        What it means; network faults are answers, too.
    """
    request = client.build_request(
        "POST",
        target.url,
        content=message.body,
        headers=headers(message, target.secret, int(clock())),
        timeout=httpx.Timeout(target.timeout_s, connect=min(_CONNECT_S, target.timeout_s)),
    )
    try:
        # httpx counts the time between two bytes: a receiver that sends one now and then would hold us.
        async with asyncio.timeout(target.timeout_s):
            response = await client.send(request, stream=True, follow_redirects=False)
    except TimeoutError:
        return Answer("again", f"no answer within {target.timeout_s:g} s")
    except (httpx.ConnectError, httpx.ConnectTimeout) as e:
        return Answer("away", f"can't be reached: {_cause(e)}")
    except httpx.TimeoutException:
        return Answer("again", f"no answer within {target.timeout_s:g} s")
    except httpx.TransportError as e:
        return Answer("again", f"the connection broke: {_cause(e)}")
    try:
        text = await _beginning(response)
        return judge(response.status_code, response.headers, text, clock())
    finally:
        await response.aclose()


def judge(status: int, sent: Mapping[str, str], text: str, now: float) -> Answer:
    """What an answer means.

    Args:
        status: of HTTP.
        sent: the answer's headers, by lower-case name.
        text: beginning of the answer's body.
        now: seconds since 1970 (UTC), for a ``Retry-After`` that is a date.
    """
    if 200 <= status < 300:
        return Answer("accepted")
    asked_s = asked_to_wait(sent, now)
    wait_s = None if asked_s is None else min(MOST_RETRY_AFTER_S, asked_s)
    told = f"answered {status}" + (f": {text}" if text else "")
    if status == _TOO_MANY or (status == _UNAVAILABLE and wait_s is not None):
        return Answer("busy", told, wait_s)
    if 300 <= status < 400:
        where = _line(sent.get("location", "?").encode("utf-8", "replace"))
        return Answer("again", f"answered {status}: moved to {where}; correct its url")
    if 400 <= status < 500 and status not in _LATER:
        return Answer("refused", told)
    return Answer("again", told, wait_s)


async def _beginning(response: httpx.Response) -> str:
    """The first characters of the body. A short one is read to its end: then the connection serves again."""
    text, size = b"", 0
    try:
        async with asyncio.timeout(_BODY_S):
            async for part in response.aiter_bytes(_MOST_ANSWER_BYTES):
                size += len(part)
                text += part[: _MOST_ANSWER_BYTES - len(text)]
                if size > _MOST_READ_BYTES:
                    break
    except (TimeoutError, httpx.HTTPError):
        return _line(text)  # the status says what counts
    return _line(text)


def _line(text: bytes) -> str:
    shown = text[:_MOST_ANSWER_BYTES].decode("utf-8", "replace")
    return " ".join("".join(c if c.isprintable() else " " for c in shown).split())


def _cause(error: BaseException) -> str:
    """What lies at the bottom: the layers above it only say that something failed."""
    told = str(error) or type(error).__name__
    below: BaseException | None = error
    while below is not None:
        if isinstance(below, OSError) and str(below):
            told = below.strerror or str(below)
        if isinstance(below, BaseExceptionGroup):
            below = below.exceptions[0]
        else:
            below = below.__cause__ or below.__context__
    return told
