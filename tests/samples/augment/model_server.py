"""A model endpoint for tests: real HTTP on the loopback, with every fault by a seeded script, and a log.

An answer is *final* when a client that got it whole does not ask again: good, empty, refused, broken JSON, a
wrong encoding. Whoever asks again after a final answer has lost it, and the log tells.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

Script = Callable[[str, int], str]
"""Key and number of the try, from 0 → name of what the server does."""

FINAL: Final = ("answer", "slow", "empty", "blank", "refusal", "json", "encoding", "gzip_lie", "filtered")
SHARES: Final[Mapping[str, float]] = {
    "slow": 0.08,
    "empty": 0.02,
    "blank": 0.01,
    "limit": 0.03,
    "limit_date": 0.003,
    "broken": 0.05,
    "json": 0.02,
    "cut": 0.03,
    "cut_early": 0.02,
    "encoding": 0.01,
    "gzip_lie": 0.01,
    "refusal": 0.01,
}
"""Share of each fault; the rest is answered."""


@dataclass(slots=True)
class Call:
    """One request as the server saw it; times by ``time.monotonic``."""

    key: str
    nth: int
    what: str
    began: float
    ended: float
    body: Mapping[str, Any]
    whole: bool
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def final(self) -> bool:
        return self.what in FINAL and self.whole


def seeded(seed: int, shares: Mapping[str, float] = SHARES) -> Script:
    """What is done depends on seed, key and try alone."""

    def script(key: str, nth: int) -> str:
        digest = hashlib.sha256(f"{seed}:{key}:{nth}".encode()).digest()
        left = int.from_bytes(digest[:8], "big") / 2**64
        for name, share in shares.items():
            left -= share
            if left < 0:
                return name
        return "answer"

    return script


class ModelServer:
    """The server; its log is :attr:`calls`.

    Args:
        script: what it does.
        slow_s: how long ``slow`` takes.
        delay_s: how long every answer takes.
        api_key: that it asks for; None asks for none.
    """

    def __init__(
        self,
        script: Script = lambda key, nth: "answer",
        slow_s: float = 0.3,
        delay_s: float = 0.0,
        api_key: str | None = None,
    ) -> None:
        self.script = script
        self.slow_s = slow_s
        self.delay_s = delay_s
        self.api_key = api_key
        self.calls: list[Call] = []
        self.conflicts: list[str] = []
        """Keys under which a second, different request came."""
        self.most_at_once = 0
        self._at_once = 0
        self._seen: dict[str, tuple[str, int]] = {}
        self._lock = threading.Lock()
        server = self

        class Handler(_Handler):
            owner = server

        self._http = _Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}/v1"
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.05,), daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        self._http.shutdown()
        self._http.server_close()

    def enter(self, key: str, raw: bytes) -> int | None:
        """Number of the try; None where the same key was used for another request."""
        digest = hashlib.sha256(raw).hexdigest()
        with self._lock:
            self._at_once += 1
            self.most_at_once = max(self.most_at_once, self._at_once)
            before, number = self._seen.get(key, (digest, 0))
            if before != digest:
                self.conflicts.append(key)
                return None
            self._seen[key] = (digest, number + 1)
            return number

    def leave(self, call: Call) -> None:
        with self._lock:
            self._at_once -= 1
            self.calls.append(call)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that went away is what these tests are about."""


class _Handler(BaseHTTPRequestHandler):
    owner: ModelServer
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:
        """Quiet: the log is :attr:`ModelServer.calls`."""

    def do_POST(self) -> None:
        began = time.monotonic()
        raw = self.rfile.read(int(self.headers["Content-Length"]))
        key = self.headers.get("Idempotency-Key", "")
        body = json.loads(raw)
        nth = self.owner.enter(key, raw)
        what = "conflict" if nth is None else self.owner.script(key, nth)
        if self.owner.api_key and self.headers.get("Authorization") != f"Bearer {self.owner.api_key}":
            what = "unauthorized"
        whole = False
        try:
            time.sleep(self.owner.delay_s + (self.owner.slow_s if what in ("slow", "hang") else 0))
            getattr(self, f"_{what}")(body)
            whole = self._is_there()
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True
        self.owner.leave(Call(key, nth or 0, what, began, time.monotonic(), body, whole, dict(self.headers)))

    def _is_there(self) -> bool:
        """Whether the client has not closed its side, as far as this side knows."""
        self.connection.setblocking(False)
        try:
            return self.connection.recv(1, socket.MSG_PEEK) != b""
        except BlockingIOError:
            return True
        except OSError:
            return False
        finally:
            self.connection.setblocking(True)

    def _send(self, status: int, data: bytes, **headers: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", headers.pop("content_type", "application/json"))
        self.send_header("Content-Length", str(len(data)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(data)
        self.wfile.flush()

    def _answer(self, body: Mapping[str, Any]) -> None:
        self._send(200, completion(answer_to(body), body))

    _slow = _hang = _answer

    def _empty(self, body: Mapping[str, Any]) -> None:
        self._send(200, completion("", body))

    def _blank(self, body: Mapping[str, Any]) -> None:
        self._send(200, completion(" \n\u200b", body))

    def _refusal(self, body: Mapping[str, Any]) -> None:
        self._send(200, completion("抱歉，我无法回答这个问题。", body))

    def _filtered(self, body: Mapping[str, Any]) -> None:
        self._send(200, completion("half an ans", body, "content_filter"))

    def _limit(self, body: Mapping[str, Any]) -> None:
        self._send(429, b'{"error": {"message": "slow down"}}', Retry_After="0.2")

    def _limit_date(self, body: Mapping[str, Any]) -> None:
        self._send(
            429, b'{"error": {"message": "slow down"}}', Retry_After=formatdate(time.time() + 1, usegmt=True)
        )

    def _broken(self, body: Mapping[str, Any]) -> None:
        self._send(500, b"<html>Internal Server Error</html>", content_type="text/html")

    def _json(self, body: Mapping[str, Any]) -> None:
        self._send(200, completion(answer_to(body), body)[:-20])

    def _encoding(self, body: Mapping[str, Any]) -> None:
        text = completion("很好的回答", body).decode("utf-8")
        self._send(200, text.encode("gbk"))

    def _gzip_lie(self, body: Mapping[str, Any]) -> None:
        self._send(200, completion(answer_to(body), body), Content_Encoding="gzip")

    def _gzip(self, body: Mapping[str, Any]) -> None:
        self._send(200, gzip.compress(completion(answer_to(body), body)), Content_Encoding="gzip")

    def _cut(self, body: Mapping[str, Any]) -> None:
        data = completion(answer_to(body), body)
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data[: len(data) // 2])
        self.wfile.flush()
        self._hang_up()

    def _cut_early(self, body: Mapping[str, Any]) -> None:
        self._hang_up()

    def _hang_up(self) -> None:
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)

    def _conflict(self, body: Mapping[str, Any]) -> None:
        self._send(422, b'{"error": {"message": "another request has this Idempotency-Key"}}')

    def _too_long(self, body: Mapping[str, Any]) -> None:
        self._send(400, b'{"error": {"message": "maximum context length exceeded"}}')

    def _unauthorized(self, body: Mapping[str, Any]) -> None:
        given = self.headers.get("Authorization", "").removeprefix("Bearer ")
        self._send(401, json.dumps({"error": {"message": f"Incorrect API key provided: {given}"}}).encode())


def answer_to(body: Mapping[str, Any]) -> str:
    """What the model says: the same for the same request."""
    digest = hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()
    return f"Better, 更好 ({digest[:12]}): {body['messages'][-1]['content'][:40]}"


def completion(text: str, body: Mapping[str, Any], finish_reason: str = "stop") -> bytes:
    """Bytes of an answer, with usage: a token for each four characters."""
    asked = sum(len(str(message.get("content", ""))) for message in body["messages"])
    return json.dumps(
        {
            "id": "c",
            "object": "chat.completion",
            "choices": [
                {
                    "index": 0,
                    "message": {"role": "assistant", "content": text},
                    "finish_reason": finish_reason,
                }
            ],
            "usage": {"prompt_tokens": asked // 4 + 1, "completion_tokens": len(text) // 4 + 1},
        },
        ensure_ascii=False,
    ).encode("utf-8")


@contextmanager
def model_server(*args: Any, **kwargs: Any) -> Iterator[ModelServer]:
    """A running :class:`ModelServer`."""
    server = ModelServer(*args, **kwargs)
    server.start()
    try:
        yield server
    finally:
        server.close()
