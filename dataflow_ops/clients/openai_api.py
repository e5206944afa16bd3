"""Any endpoint that speaks OpenAI's ``/chat/completions``: one question, one answer, or a typed error.

A question is tried again where that may help (429, 5xx, cut connections, time-outs), after exponential
back-off with full jitter (https://aws.amazon.com/builders-library/timeouts-retries-and-backoff-with-jitter/)
or after what ``Retry-After`` asks for. All tries of a question carry the same bytes and the same
``Idempotency-Key``. The API key is taken out of whatever is kept of an answer.
"""

from __future__ import annotations

import json
import os
import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final
from urllib.parse import urlsplit

import httpx

from dataflow_ops.clients.endpoint_errors import (
    EndpointAway,
    EndpointError,
    EndpointRefused,
    Gate,
    QuestionRefused,
    UnreadableAnswer,
)
from dataflow_ops.clients.openai_answers import Completion, UnreadableBody, inflate, read_completion
from dataflow_ops.clients.retry_after import asked_to_wait
from dataflow_ops.errors import ConfigError

MOST_BYTES: Final = 16 * 2**20
"""Longest answer that is read."""
_TRANSIENT: Final = (408, 425, 429)
_ABOUT_ALL: Final = (401, 402, 403, 404, 405, 407)
"""What is refused to every question alike: login, payment, address."""
_SHOWN: Final = 300
_SECRET: Final = 8
"""Characters of the shortest key that is a secret."""


@dataclass(frozen=True, slots=True)
class Patience:
    """How long to wait and how often to try.

    Attributes:
        connect_s: for a connection.
        read_s: for the next bytes of an answer.
        total_s: for one try in all; noticed at the next bytes, so at most ``read_s`` late.
        tries: most tries of a question.
        base_s: upper bound of the first back-off, doubled with each try.
        cap_s: upper bound of any back-off.
        most_wait_s: longest ``Retry-After`` that is waited for.
    """

    connect_s: float = 10.0
    read_s: float = 120.0
    total_s: float = 300.0
    tries: int = 6
    base_s: float = 1.0
    cap_s: float = 60.0
    most_wait_s: float = 3600.0


def read_key(name: str | None) -> str:
    """The API key in an environment variable; ``""`` where no variable is named.

    Raises:
        ConfigError: the variable is not set, or holds what no header can.
    """
    if name is None:
        return ""
    key = os.environ.get(name, "").strip()
    if not key:
        raise ConfigError(
            f"the environment variable {name} (endpoint.api_key_env) is not set: export the key"
        )
    if not (key.isascii() and key.isprintable()):
        raise ConfigError(f"the environment variable {name} holds characters that no API key has")
    return key


def check_base_url(url: str) -> str:
    """``url`` without a slash at its end.

    Raises:
        ConfigError: it is not http(s), or holds a login or a query, which would land in state and logs.
    """
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigError(f"endpoint.base_url {url!r}: write it as https://HOST/v1")
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise ConfigError(
            f"endpoint.base_url of {parts.hostname}: leave out login, query and fragment; the key comes from"
            " the variable that endpoint.api_key_env names"
        )
    return url.rstrip("/")


class OpenAiApi:
    """A client; threads may share it.

    Args:
        http: the connections; its pool should hold as many as there are threads.
        base_url: without ``/chat/completions``.
        key: sent as ``Authorization: Bearer``; ``""`` sends none.
        patience: time-outs and tries.
        draw: a number in [0, 1) for the jitter.
        now: seconds since 1970, for dates in ``Retry-After``.
    """

    def __init__(
        self,
        http: httpx.Client,
        base_url: str,
        key: str = "",
        patience: Patience | None = None,
        draw: Callable[[], float] = random.random,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._http = http
        self._url = f"{check_base_url(base_url)}/chat/completions"
        self._key = key
        self.patience = patience or Patience()
        self._draw = draw
        self._now = now

    def __repr__(self) -> str:
        return f"OpenAiApi({self._url!r})"

    def complete(self, body: Mapping[str, Any], idempotency_key: str, gate: Gate, tokens: int) -> Completion:
        """Ask, as often as it takes.

        Args:
            body: the request, sent as JSON with sorted keys.
            idempotency_key: the same for the same body, another for any other.
            gate: where it waits.
            tokens: what the question and its answer may take, for the gate.

        Raises:
            EndpointAway: no try got through.
            QuestionRefused: 4xx about this question.
            EndpointRefused: 4xx about login, payment or address, or a redirect.
            UnreadableAnswer: an answer came that can't be read.
            CallStopped: by the gate.
        """
        content = json.dumps(body, sort_keys=True, separators=(",", ":")).encode("ascii")
        began, lost = time.monotonic(), 0
        for tried in range(1, self.patience.tries + 1):
            gate.admit(tokens, lost)
            try:
                answer = self._try(content, idempotency_key)
                seconds = time.monotonic() - began
                found = read_completion(answer.raw, answer.content_type, tried, lost, seconds)
                return replace(found, raw=self._scrubbed(answer.raw))
            except UnreadableBody as e:
                raise UnreadableAnswer(str(e), self._scrubbed(answer.raw), tried, lost + 1) from e
            except _Failed as e:
                lost += e.lost
                if e.final is not None:
                    raise e.final(str(e), e.raw, tried, lost) from e.__cause__
                fault = e
            self._wait(gate, fault, tried, lost)
        raise EndpointAway(f"{fault} ({self.patience.tries} tries)", fault.raw, self.patience.tries, lost)

    def _wait(self, gate: Gate, fault: _Failed, tried: int, lost: int) -> None:
        """Back off before the next try, if there is one."""
        patience = self.patience
        asked = fault.wait_s
        if asked is not None and asked > patience.most_wait_s:
            raise EndpointAway(
                f"{fault}; it asks to wait {asked:,.0f} s, more than the {patience.most_wait_s:,.0f} s that"
                " are waited",
                fault.raw,
                tried,
                lost,
            )
        if asked is not None:
            gate.hold(asked)
        if tried < patience.tries:
            back_off = self._draw() * min(patience.cap_s, patience.base_s * 2 ** (tried - 1))
            # After a date that all wait for, the jitter keeps them from coming back at the same moment.
            gate.rest(back_off if asked is None else asked + min(1.0, back_off))

    def _try(self, content: bytes, idempotency_key: str) -> _Answer:
        headers = {
            "Content-Type": "application/json",
            "Accept": "application/json",
            "Accept-Encoding": "identity",
            "Idempotency-Key": idempotency_key,
        }
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        limits = self.patience
        timeout = httpx.Timeout(
            connect=limits.connect_s, read=min(limits.read_s, limits.total_s), write=limits.read_s, pool=None
        )
        deadline = time.monotonic() + limits.total_s
        try:
            with self._http.stream(
                "POST", self._url, content=content, headers=headers, timeout=timeout, follow_redirects=False
            ) as response:
                raw = _read(response, deadline)
                status, found = response.status_code, response.headers
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.ProxyError) as e:
            raise _Failed(f"the endpoint can't be reached: {self._why(e)}") from e
        except httpx.TimeoutException as e:
            raise _Failed(f"the endpoint took too long: {self._why(e)}", lost=1) from e
        except httpx.HTTPError as e:
            raise _Failed(f"the connection was cut: {self._why(e)}", lost=1) from e
        if status < 300:
            # What the model wrote is never touched; only what is kept of it for people is scrubbed.
            return _Answer(self._plain(raw, found.get("content-encoding", "")), found.get("content-type", ""))
        raw = self._scrubbed(raw)
        said = f"the endpoint answers {status}: {_said(raw)}"
        if status in _TRANSIENT or status >= 500:
            raise _Failed(said, raw, wait_s=asked_to_wait(found, self._now()))
        raise _Failed(
            said, raw, final=EndpointRefused if status in _ABOUT_ALL or status < 400 else QuestionRefused
        )

    def _plain(self, raw: bytes, encoding: str) -> bytes:
        try:
            return inflate(raw, encoding, MOST_BYTES)
        except UnreadableBody as e:
            raise _Failed(str(e), self._scrubbed(raw), lost=1, final=UnreadableAnswer) from e

    def _why(self, error: httpx.HTTPError) -> str:
        text = self._scrubbed(str(error).encode("utf-8", "replace")).decode("utf-8", "replace")
        return f"{type(error).__name__} {text}".rstrip()

    def _scrubbed(self, raw: bytes) -> bytes:
        """Without the API key: some endpoints repeat it when they refuse it."""
        # Endpoints that want none are given a word such as EMPTY, which is no secret.
        return raw.replace(self._key.encode("ascii"), b"***") if len(self._key) >= _SECRET else raw


@dataclass(frozen=True, slots=True)
class _Answer:
    raw: bytes
    content_type: str


class _Failed(Exception):
    """One try failed; with ``final`` another one would not help."""

    def __init__(
        self,
        message: str,
        raw: bytes = b"",
        lost: int = 0,
        wait_s: float | None = None,
        final: type[EndpointError] | None = None,
    ) -> None:
        super().__init__(message)
        self.raw = raw
        self.lost = lost
        self.wait_s = wait_s
        self.final = final


def _read(response: httpx.Response, deadline: float) -> bytes:
    raw = bytearray()
    for chunk in response.iter_raw():
        raw += chunk
        if len(raw) > MOST_BYTES:
            raise _Failed(f"the answer is longer than {MOST_BYTES:,} bytes", lost=1, final=UnreadableAnswer)
        if time.monotonic() > deadline:
            raise httpx.ReadTimeout("the answer was not complete in time")
    return bytes(raw)


def _said(raw: bytes) -> str:
    """What an error answer says, short: OpenAI's ``error.message`` where there is one."""
    text = raw.decode("utf-8", "replace")
    try:
        found = json.loads(text)
        error = found.get("error", found)
        text = str(error.get("message", error) if isinstance(error, dict) else error)
    except (ValueError, AttributeError, RecursionError):
        pass  # no JSON: the text itself is what it says
    return " ".join(text.split())[:_SHOWN] or "(nothing)"
