"""S3 servers for tests, on free ports of the loopback interface: moto (fast, forgiving) and SeaweedFS (real).

For a test module: ``from tests.storage.s3_server import moto, moto_url  # noqa: F401``. Each URL is a prefix
in a bucket of its own; the environment says how to reach it, as a user's would. Tests on SeaweedFS carry
``pytest.mark.s3`` and ``pytest.mark.xdist_group("s3")``: one server serves them all.
"""

from __future__ import annotations

import ctypes
import itertools
import logging
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dataflow_ops.clients.s3 import S3Access, client_for
from dataflow_ops.stack.object_store import PORTS, weed_command

_START_TIMEOUT_S = 60
_BUCKETS = itertools.count(1)
KEY, SECRET = "test-access", "test-secret"
_VARIABLES = ("AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_ENDPOINT_URL")


class S3Server:
    """A running server."""

    def __init__(self, endpoint: str) -> None:
        self.endpoint = endpoint

    @property
    def access(self) -> S3Access:
        """Access with everything said."""
        return S3Access(self.endpoint, "us-east-1", True, KEY, SECRET)

    @property
    def client(self) -> Any:
        """A client beside the code under test."""
        return client_for(self.access)

    def bucket(self) -> str:
        """A new, empty bucket."""
        name = f"bucket-{os.getpid()}-{next(_BUCKETS)}"
        self.client.create_bucket(Bucket=name)
        return name

    def variables(self) -> dict[str, str]:
        """What a user sets to reach it."""
        return {
            "DATAFLOW_S3_ENDPOINT": self.endpoint,
            "AWS_ACCESS_KEY_ID": KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_EC2_METADATA_DISABLED": "true",
        }


class Weed(S3Server):
    """SeaweedFS in a process of its own; keeps its data over restarts."""

    def __init__(self, binary: str, folder: Path) -> None:
        self._binary = binary
        self._folder = folder
        self._port = free_row(PORTS)
        self._process: subprocess.Popen[bytes] | None = None
        super().__init__(f"http://127.0.0.1:{self._port}")

    def start(self) -> None:
        """Returns when something could be stored: it answers seconds before that."""
        command = weed_command(self._binary, self._folder, "127.0.0.1", self._port)
        with (self._folder / "weed.log").open("ab") as log:
            self._process = subprocess.Popen(
                # Each test has a bucket, and each bucket a volume: more than the disk has room for.
                [*command, "-volume.max=1000"],
                cwd=self._folder,
                env={
                    **os.environ,
                    "AWS_ACCESS_KEY_ID": KEY,
                    "AWS_SECRET_ACCESS_KEY": SECRET,
                    "WEED_MASTER_VOLUME_GROWTH_COPY_1": "1",
                },
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=_die_with_parent if sys.platform == "linux" else None,
            )
        deadline = time.monotonic() + _START_TIMEOUT_S
        while time.monotonic() < deadline:
            assert self._process.poll() is None, (self._folder / "weed.log").read_text()[-2000:]
            if _answers(self._port) and self._stores():
                return
            time.sleep(0.2)
        raise RuntimeError("SeaweedFS did not start")

    def stop(self) -> None:
        """Kill it, as a power cut would."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def restart(self) -> None:
        """Kill and start it on the same data."""
        self.stop()
        self.start()

    def _stores(self) -> bool:
        import boto3
        from botocore.config import Config
        from botocore.exceptions import BotoCoreError, ClientError

        client = boto3.client(
            "s3",
            endpoint_url=self.endpoint,
            aws_access_key_id=KEY,
            aws_secret_access_key=SECRET,
            region_name="us-east-1",
            config=Config(retries={"total_max_attempts": 1}, s3={"addressing_style": "path"}),
        )
        try:
            client.create_bucket(Bucket="ready")
        except (BotoCoreError, ClientError) as e:
            if "BucketAlready" not in str(e):
                return False
        try:
            client.put_object(Bucket="ready", Key="ready", Body=b"ready")
        except (BotoCoreError, ClientError):
            return False
        return True


def find_weed() -> str | None:
    """The program: of this environment, else on PATH."""
    beside = Path(sys.executable).with_name("weed")
    return str(beside) if beside.is_file() else shutil.which("weed")


@pytest.fixture(scope="session")
def weed() -> Iterator[Weed]:
    """A running SeaweedFS for the session, its data gone afterwards. Skips where it is not installed."""
    binary = find_weed()
    if binary is None:
        line = "SeaweedFS is not installed (no weed in this environment or on PATH)"
        if os.environ.get("DATAFLOW_REQUIRE_S3") == "1":
            pytest.fail(line)
        pytest.skip(line)
    with tempfile.TemporaryDirectory(prefix="dataflow-weed-", ignore_cleanup_errors=True) as folder:
        server = Weed(binary, Path(folder))
        server.start()
        try:
            yield server
        finally:
            server.stop()


@pytest.fixture(scope="session")
def moto() -> Iterator[S3Server]:
    """moto as a server in a thread of this process."""
    os.environ.setdefault("MOTO_S3_DEFAULT_KEY_BUFFER_SIZE", "65536")
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.WARNING)
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        yield S3Server(f"http://{host}:{port}")
    finally:
        server.stop()


def pointed(server: S3Server, monkeypatch: pytest.MonkeyPatch, prefix: str = "some/root") -> str:
    """A storage root in a new bucket; the environment leads to the server."""
    for name in _VARIABLES:
        monkeypatch.delenv(name, raising=False)
    for name, value in server.variables().items():
        monkeypatch.setenv(name, value)
    return f"s3://{server.bucket()}/{prefix}"


@pytest.fixture
def moto_url(moto: S3Server, monkeypatch: pytest.MonkeyPatch) -> str:
    """A storage root on moto."""
    return pointed(moto, monkeypatch)


@pytest.fixture
def weed_url(weed: Weed, monkeypatch: pytest.MonkeyPatch) -> str:
    """A storage root on SeaweedFS."""
    return pointed(weed, monkeypatch)


def free_row(count: int) -> int:
    """The first of so many free ports in a row."""
    while True:
        first = random.randrange(20_000, 32_000)  # below those that the system gives out by itself
        if not any(_answers(port) for port in range(first, first + count)):
            return first


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _die_with_parent() -> None:
    """Also where pytest is killed: PR_SET_PDEATHSIG is 1."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)
