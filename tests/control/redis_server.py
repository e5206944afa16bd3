"""A private Redis server on a free port of the loopback interface, flushed, stopped and started at will.

For a test module or conftest: ``from tests.control.redis_server import redis_server  # noqa: F401``.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

_START_TIMEOUT_S = 20


class RedisServer:
    """A server that keeps its port over restarts, and nothing else: it holds its data in memory only."""

    def __init__(self, binary: str, folder: Path) -> None:
        self._binary = binary
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port: int = probe.getsockname()[1]

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def client(self) -> redis.Redis:
        return redis.Redis.from_url(self.url, decode_responses=True)

    def start(self) -> None:
        command = [self._binary, "--port", str(self.port), "--bind", "127.0.0.1", "--save", ""]
        with (self._folder / "redis.log").open("ab") as log:
            self._process = subprocess.Popen(
                [*command, "--appendonly", "no", "--dir", str(self._folder)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        deadline = time.monotonic() + _START_TIMEOUT_S
        while time.monotonic() < deadline:
            try:
                with self.client() as client:
                    client.ping()
            except redis.ConnectionError:
                assert self._process.poll() is None, (self._folder / "redis.log").read_text()[-2000:]
                time.sleep(0.02)
            else:
                return
        raise RuntimeError("Redis did not start")

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def restart(self) -> None:
        self.stop()
        self.start()

    def flush(self) -> None:
        with self.client() as client:
            client.flushall()

    def keys(self) -> list[str]:
        with self.client() as client:
            return sorted(client.keys("*"))


@pytest.fixture
def redis_server(tmp_path: Path) -> Iterator[RedisServer]:
    """A running, empty server. Skips where Redis is not installed."""
    binary = shutil.which("redis-server")
    if binary is None:
        line = "Redis is not installed (no redis-server on PATH)"
        if os.environ.get("DATAFLOW_REQUIRE_STACK") == "1":
            pytest.fail(line)
        pytest.skip(line)
    folder = tmp_path / "redis"
    folder.mkdir()
    server = RedisServer(binary, folder)
    server.start()
    try:
        yield server
    finally:
        server.stop()
