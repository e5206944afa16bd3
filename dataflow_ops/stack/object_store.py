"""The stack's own object store: SeaweedFS, in one process, reached by S3 alone."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from dataflow_ops.errors import ConfigError, DataFlowError, StackError
from dataflow_ops.stack.keys import Keys
from dataflow_ops.stack.settings import StackSettings

BUCKET: Final = "dataflow"
"""Made by the preparation; ``storage_root: s3://dataflow/data`` puts data sets there."""
PORTS: Final = 8
"""How many ports it takes, from ``ports.object_store`` on; only the first is for others."""
TUNING: Final = (
    "-volume.max=0",  # as many as the disk has room for
    "-master.volumeSizeLimitMB=1024",
    "-master.telemetry=false",
    # Doors that nobody uses, on fixed ports.
    "-s3.port.iceberg=0",
    "-s3.port.lance=0",
    # A bucket's name that is wrong is told, not made.
    "-s3.autoCreateBucket=false",
)
_LOOPBACK: Final = "127.0.0.1"
_PATIENCE_S: Final = 60.0


def is_wanted(settings: StackSettings) -> bool:
    """Whether the stack is to have one: as the settings say, else unless they name another server."""
    if settings.object_store is not None:
        return settings.object_store
    return "DATAFLOW_S3_ENDPOINT" not in settings.environment


def find_weed(settings: StackSettings) -> str | None:
    """SeaweedFS' program; None where the stack is to have no object store, or it is not installed.

    Raises:
        ConfigError: ``object_store: true``, and it is not there.
    """
    if not is_wanted(settings):
        return None
    beside = Path(sys.executable).with_name("weed")
    found = str(beside) if beside.is_file() else shutil.which("weed")
    if found is None and settings.object_store:
        raise ConfigError(
            "object_store: true, but SeaweedFS (weed) is not installed: `make up` does that; or leave it out"
        )
    return found


def weed_command(weed: str, folder: Path, host: str, port: int) -> list[str]:
    """The server in the foreground. Only S3, which asks for credentials, listens beyond the loopback.

    Args:
        weed: the program.
        folder: for its data.
        host: address for S3.
        port: for S3; the next seven are its own.
    """
    inner = [
        f"-{part}.port{kind}={port + number}"
        for number, (part, kind) in enumerate(
            [
                *(("master", ""), ("volume", ""), ("filer", "")),
                *(("s3", ".grpc"), ("master", ".grpc"), ("volume", ".grpc"), ("filer", ".grpc")),
            ],
            start=1,
        )
    ]
    return [
        *(weed, "-logtostderr", "server", f"-dir={folder}"),
        *(f"-ip={_LOOPBACK}", f"-ip.bind={_LOOPBACK}", *inner),
        *("-filer", "-s3", f"-s3.ip.bind={host}", f"-s3.port={port}", *TUNING),
    ]


def server_variables(keys: Keys) -> dict[str, str]:
    """What the server itself is told: who may do everything. Not in its command line, which others see."""
    return {
        "AWS_ACCESS_KEY_ID": keys.s3_access_key,
        "AWS_SECRET_ACCESS_KEY": keys.s3_secret_key,
        # A bucket begins with one volume instead of seven.
        "WEED_MASTER_VOLUME_GROWTH_COPY_1": "1",
    }


def client_variables(address: str, keys: Keys) -> dict[str, str]:
    """How the stack's processes reach it.

    Args:
        address: ``host:port``.
        keys: the stack's secrets.
    """
    return {
        "DATAFLOW_S3_ENDPOINT": f"http://{address}",
        "AWS_ACCESS_KEY_ID": keys.s3_access_key,
        "AWS_SECRET_ACCESS_KEY": keys.s3_secret_key,
        "DATAFLOW_STACK_BUCKET": BUCKET,
    }


def is_well(environment: Mapping[str, str], patience_s: float = 3.0) -> bool:
    """Whether it answers."""
    import httpx

    try:
        answer = httpx.get(
            f"{environment['DATAFLOW_S3_ENDPOINT']}/healthz", timeout=patience_s, trust_env=False
        )
    except httpx.HTTPError:
        return False
    return answer.is_success


def make_bucket(bucket: str, environment: Mapping[str, str], patience_s: float = _PATIENCE_S) -> None:
    """Make a bucket where it is not there, and wait until something can be stored in it.

    Args:
        bucket: its name.
        environment: says where the server is, and holds credentials.
        patience_s: a server that has just started takes a few seconds, though it answers.

    Raises:
        StackError: it does not come to that.
    """
    from botocore.exceptions import ClientError

    from dataflow_ops.clients.s3 import S3Access, client_for, code_of, told

    client = client_for(
        S3Access(
            environment["DATAFLOW_S3_ENDPOINT"],
            access_key=environment["AWS_ACCESS_KEY_ID"],
            secret_key=environment["AWS_SECRET_ACCESS_KEY"],
        )
    )
    until = time.monotonic() + patience_s
    while True:
        try:
            with told(f"s3://{bucket}"):
                try:
                    client.create_bucket(Bucket=bucket)
                except ClientError as e:
                    if code_of(e) not in ("BucketAlreadyExists", "BucketAlreadyOwnedByYou"):
                        raise
                client.put_object(Bucket=bucket, Key=".stack/ready", Body=b"ready")
                return
        except DataFlowError as e:
            if time.monotonic() > until:
                raise StackError(f"nothing can be stored in the stack's object store: {e}") from e
        time.sleep(1.0)
