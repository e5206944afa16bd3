"""A real HTTP server that receives events, and misbehaves as a script says.

As a program (``python -m tests.pipeline.receiver PORT FILE``) it can be killed: what it applied is in the
file.
"""

from __future__ import annotations

import json
import socket
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

SECRET = "0123456789abcdef-of-the-tests"

Script = Callable[[Mapping[str, Any], int], "int | str | tuple[int, Mapping[str, str]]"]
"""(event, number of the try from 1) -> a status, (status, headers), ``hang``, ``cut``, ``drip`` or ``lost``.

``lost``: applied, but the connection breaks before the answer.
"""


def verifier() -> Callable[..., bool]:
    """The function that the documentation gives to receivers."""
    text = (Path(__file__).parents[2] / "docs" / "webhooks.md").read_text(encoding="utf-8")
    names: dict[str, Any] = {}
    exec(text.split("```python\n")[1].split("```")[0], names)
    return names["is_ours"]  # type: ignore[no-any-return]


class Receiver:
    """Receives; applies each event once, by its key."""

    def __init__(
        self, script: Script = lambda event, number: 200, port: int = 0, file: Path | None = None
    ) -> None:
        self.script = script
        self.applied: list[dict[str, Any]] = []
        self.tries: Counter[str] = Counter()
        self.accepted: Counter[str] = Counter()
        self.faults: list[str] = []
        self.connections: set[object] = set()
        self.at_once = self.most_at_once = 0
        self._file = file
        self._busy: set[str] = set()
        self._lock = threading.Lock()
        self._is_ours = verifier()
        self._bodies: dict[str, bytes] = {}
        self._known: set[str] = set()
        if file is not None and file.exists():
            self._known = {json.loads(line)["key"] for line in file.read_text("utf-8").splitlines()}
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                receiver._handle(self)

            def log_message(self, *_: object) -> None:
                """Nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self._server.daemon_threads = True
        self.port = self._server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}/events"

    def __enter__(self) -> Receiver:
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def serve(self) -> None:
        """Until the process ends."""
        self._server.serve_forever()

    def by_subject(self) -> dict[str, list[int]]:
        """Ids in the order in which they were applied."""
        found: dict[str, list[int]] = {}
        for event in self.applied:
            found.setdefault(event["subject"], []).append(event["id"])
        return found

    def _handle(self, request: BaseHTTPRequestHandler) -> None:
        body = request.rfile.read(int(request.headers["Content-Length"]))
        event, key = json.loads(body), request.headers["Idempotency-Key"]
        with self._lock:
            self.connections.add(request.client_address)
            if not self._is_ours(SECRET, request.headers, body):
                self.faults.append(f"{key}: not signed")
            if event["key"] != key or self._bodies.setdefault(key, body) != body:
                self.faults.append(f"{key}: another body or key")
            if key in self._busy:
                self.faults.append(f"{key}: sent twice at the same time")
            self._busy.add(key)
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)
            self.tries[key] += 1
            action = self.script(event, self.tries[key])
            status = action[0] if isinstance(action, tuple) else action
            if action == "lost" or (isinstance(status, int) and 200 <= status < 300):
                self.accepted[key] += 1
                self._apply(event, key)
        try:
            self._answer(request, action, key)
        except OSError:
            request.close_connection = True

    def _apply(self, event: dict[str, Any], key: str) -> None:
        if key in self._known:
            return
        self._known.add(key)
        self.applied.append(event)
        if self._file is not None:
            with open(self._file, "a", encoding="utf-8") as file:
                file.write(json.dumps(event) + "\n")

    def _answer(self, request: BaseHTTPRequestHandler, action: Any, key: str) -> None:
        def over() -> None:
            with self._lock:
                self._busy.discard(key)
                self.at_once -= 1

        if action in ("hang", "drip"):
            connection = request.connection
            connection.settimeout(0.05)
            end = time.monotonic() + 20
            while time.monotonic() < end:  # until the other side has had enough
                if action == "drip":
                    connection.sendall(b"H")
                try:
                    if connection.recv(1) == b"":
                        break
                except TimeoutError:
                    continue
                except OSError:
                    break
            over()
            request.close_connection = True
        elif action in ("cut", "lost"):
            over()
            request.connection.shutdown(socket.SHUT_RDWR)
            request.close_connection = True
        else:
            status, more = action if isinstance(action, tuple) else (action, {})
            over()  # before the answer: it is on its way
            text = b"fine" if status == 200 else b"" if status < 300 else "it broke: 坏了".encode()
            request.send_response(status)
            for name, value in more.items():
                request.send_header(name, value)
            request.send_header("Content-Length", str(len(text)))
            request.end_headers()
            request.wfile.write(text)


if __name__ == "__main__":
    Receiver(port=int(sys.argv[1]), file=Path(sys.argv[2])).serve()
