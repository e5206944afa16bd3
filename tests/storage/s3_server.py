"""S3 servers for tests, on free ports of the loopback interface: moto (fast, forgiving) and SeaweedFS (real).

For a test module: ``from tests.storage.s3_server import moto, moto_url  # noqa: F401``. Each URL is a prefix
in a bucket of its own; the environment says how to reach it, as a user's would. Tests on SeaweedFS carry
``pytest.mark.s3`` and ``pytest.mark.xdist_group("s3")``: one server serves them all.
"""

from __future__ import annotations

import ctypes
import itertools
import json
import logging
import os
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
        self._ports = _free_ports(4)
        self._process: subprocess.Popen[bytes] | None = None
        super().__init__(f"http://127.0.0.1:{self._ports[3]}")
        config = {
            "identities": [
                {
                    "name": "tests",
                    "credentials": [{"accessKey": KEY, "secretKey": SECRET}],
                    "actions": ["Admin", "Read", "Write", "List", "Tagging"],
                }
            ]
        }
        (folder / "s3.json").write_text(json.dumps(config))

    def start(self) -> None:
        """Returns when something could be stored: the ports are open seconds before that."""
        master, volume, filer, s3 = self._ports
        with (self._folder / "weed.log").open("ab") as log:
            self._process = subprocess.Popen(
                [
                    *(self._binary, "-logtostderr", "server", f"-dir={self._folder}"),
                    *("-ip=127.0.0.1", "-ip.bind=127.0.0.1", f"-master.port={master}"),
                    *(f"-volume.port={volume}", "-volume.max=1000", "-master.volumeSizeLimitMB=1024"),
                    *("-filer", f"-filer.port={filer}", "-s3", f"-s3.port={s3}"),
                    # Ports that it would open at fixed numbers: two servers on one machine collide.
                    *("-s3.port.iceberg=0", "-s3.port.lance=0"),
                    f"-s3.config={self._folder / 's3.json'}",
                    # Its other doors have fixed ports, and it would report home.
                    *("-s3.port.iceberg=0", "-s3.port.lance=0", "-master.telemetry=false"),
                    "-s3.autoCreateBucket=false",
                ],
                cwd=self._folder,
                # Each bucket has volumes of its own: seven, by default.
                env={**os.environ, "WEED_MASTER_VOLUME_GROWTH_COPY_1": "1"},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=_die_with_parent if sys.platform == "linux" else None,
            )
        deadline = time.monotonic() + _START_TIMEOUT_S
        while time.monotonic() < deadline:
            assert self._process.poll() is None, (self._folder / "weed.log").read_text()[-2000:]
            if _answers(s3) and self._stores():
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


def _free_ports(count: int) -> list[int]:
    """Ports that are free, and whose neighbours 10,000 above are: SeaweedFS speaks gRPC there."""
    found: list[int] = []
    probes = []
    try:
        while len(found) < count:
            probe = socket.socket()
            probes.append(probe)
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
            with socket.socket() as above:
                try:
                    above.bind(("127.0.0.1", port + 10_000 if port < 55_000 else port - 10_000))
                except OSError:
                    continue
            # Ephemeral ports begin high; lower ones leave room for the neighbour.
            found.append(port if port < 55_000 else port - 10_000)
    finally:
        for probe in probes:
            probe.close()
    return found


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _die_with_parent() -> None:
    """Also where pytest is killed: PR_SET_PDEATHSIG is 1."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)
