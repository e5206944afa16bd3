from __future__ import annotations

import gzip
import pickle
import random
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataflow_ops.clients.s3 import (
    S3Access,
    access_from_environment,
    client_for,
    split_url,
    told,
    tried,
)
from dataflow_ops.clients.s3_read import listed, look, open_object, read_range
from dataflow_ops.errors import (
    ConfigError,
    DataFlowError,
    ObjectChanged,
    ObjectMissing,
    ObjectStoreAway,
    ObjectStoreRefused,
    StorageFull,
)
from tests.storage.s3_server import KEY, SECRET, S3Server, moto  # noqa: F401


def test_urls_are_taken_apart() -> None:
    assert split_url("s3://corpus/web/2026/") == ("corpus", "web/2026")
    assert split_url("s3://corpus") == split_url("s3://corpus/") == ("corpus", "")
    assert split_url("s3://corpus/原始/网页") == ("corpus", "原始/网页")


@pytest.mark.parametrize(
    "url", ["s3://", "s3:///x", "http://a/b", "s3://b/a//c", "s3://b/../c", "s3://u:p@b"]
)
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(ConfigError):
        split_url(url)


def test_environment_says_how_to_reach_the_server() -> None:
    assert access_from_environment({}) == S3Access()
    said = {"DATAFLOW_S3_ENDPOINT": "http://10.0.0.5:9000", "AWS_REGION": "eu-central-1"}
    assert access_from_environment(said) == S3Access("http://10.0.0.5:9000", "eu-central-1")
    ours = {**said, "DATAFLOW_S3_REGION": "here", "DATAFLOW_S3_PATH_STYLE": "False"}
    assert access_from_environment(ours) == S3Access("http://10.0.0.5:9000", "here", False)


@pytest.mark.parametrize(
    "environment",
    [
        {"DATAFLOW_S3_ENDPOINT": "10.0.0.5:9000"},
        {"DATAFLOW_S3_ENDPOINT": "http://user:hunter2@10.0.0.5"},
        {"DATAFLOW_S3_PATH_STYLE": "yes please"},
    ],
)
def test_wrong_settings_name_their_variable(environment: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match=next(iter(environment))) as error:
        access_from_environment(environment)
    assert "hunter2" not in str(error.value)


def test_secrets_stay_out_of_sight_but_travel() -> None:
    access = S3Access("http://a:1", "", None, "the-key", "the-secret", "the-token")
    assert "the-" not in repr(access)
    assert pickle.loads(pickle.dumps(access)) == access


def test_importing_the_client_imports_no_boto3() -> None:
    line = "import sys, dataflow_ops.clients.s3_read; assert not {'boto3', 'botocore'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", line], check=True)


def test_addressing_follows_the_endpoint() -> None:
    def style(access: S3Access) -> str:
        return str(client_for(access).meta.config.s3["addressing_style"])

    assert style(S3Access("http://127.0.0.1:1", "", None, "k", "s")) == "path"
    assert style(S3Access("http://127.0.0.1:1", "", False, "k", "s")) == "auto"
    assert style(S3Access("", "us-east-1", None, "k", "s")) == "auto"
    assert client_for(S3Access("", "eu-west-1", None, "k", "s")) is client_for(
        S3Access("", "eu-west-1", None, "k", "s")
    )


def failure(code: str, status: int) -> Exception:
    from botocore.exceptions import ClientError

    answer = {"Error": {"Code": code, "Message": "m"}, "ResponseMetadata": {"HTTPStatusCode": status}}
    return ClientError(answer, "PutObject")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("code", "status", "kind"),
    [
        ("NoSuchKey", 404, ObjectMissing),
        ("404", 404, ObjectMissing),
        ("NoSuchBucket", 404, ObjectStoreRefused),
        ("AccessDenied", 403, ObjectStoreRefused),
        ("403", 403, ObjectStoreRefused),
        ("SlowDown", 503, ObjectStoreAway),
        ("SomethingNew", 500, ObjectStoreAway),
        ("TooManyRequests", 429, ObjectStoreAway),
        ("BadDigest", 400, ObjectStoreAway),
        ("XMinioStorageFull", 507, StorageFull),
        ("InvalidArgument", 400, ObjectStoreRefused),
    ],
)
def test_answers_become_our_errors(code: str, status: int, kind: type[DataFlowError]) -> None:
    with pytest.raises(kind, match="s3://b/k"), told("s3://b/k"):
        raise failure(code, status)


def test_a_garbled_body_is_sent_again_and_others_are_not() -> None:
    calls: list[str] = []

    def fails(code: str, status: int, times: int) -> str:
        calls.append(code)
        if len(calls) <= times:
            raise failure(code, status)
        return "done"

    assert tried(lambda: fails("IncompleteBody", 400, 2), pause_s=0.001) == "done"
    assert len(calls) == 3
    calls.clear()
    with pytest.raises(Exception, match="AccessDenied"):
        tried(lambda: fails("AccessDenied", 403, 9), pause_s=0.001)
    assert len(calls) == 1
    calls.clear()
    with pytest.raises(Exception, match="IncompleteBody"):
        tried(lambda: fails("IncompleteBody", 400, 99), pause_s=0.001, tries=4)
    assert len(calls) == 4


def test_no_bucket_is_told_as_such(moto: S3Server) -> None:  # noqa: F811
    with pytest.raises(ObjectStoreRefused, match="make the bucket first"):
        list(listed(moto.client, "no-such-bucket-here"))


def test_listing_in_pages(moto: S3Server) -> None:  # noqa: F811
    client, bucket = moto.client, moto.bucket()
    keys = [*(f"a/{i:03} 中&<>.txt" for i in range(25)), "ab"]
    for key in [*keys, "b", "a/folder/"]:
        client.put_object(Bucket=bucket, Key=key, Body=key.encode())
    found = list(listed(client, bucket, "a", page=10))
    assert [one.key for one in found] == keys
    assert [one.size for one in found] == [len(key.encode()) for key in keys]
    for one in found:
        again = look(client, bucket, one.key)
        assert again is not None
        assert again[:4] == one[:4]
    assert look(client, bucket, "a/nothing") is None


DATA = random.Random(5).randbytes(2_500_000)


@pytest.fixture(scope="module")
def bucket(moto: S3Server) -> str:  # noqa: F811
    name = moto.bucket()
    moto.client.put_object(Bucket=name, Key="data", Body=DATA)
    moto.client.put_object(Bucket=name, Key="empty", Body=b"")
    return name


def test_ranges(moto: S3Server, bucket: str) -> None:  # noqa: F811
    client = moto.client
    assert read_range(client, bucket, "data", 10, 20) == DATA[10:30]
    assert read_range(client, bucket, "data", len(DATA) - 5, 100) == DATA[-5:]
    assert read_range(client, bucket, "data", len(DATA) + 5, 100) == b""
    assert read_range(client, bucket, "empty", 0, 10) == b""
    with pytest.raises(ObjectMissing):
        read_range(client, bucket, "other", 0, 1)
    with pytest.raises(ObjectChanged):
        read_range(client, bucket, "data", 0, 1, etag="0123")


@given(st.lists(st.tuples(st.integers(0, len(DATA) + 10), st.integers(-1, 400_000)), max_size=6))
def test_reads_and_seeks_are_those_of_a_file(moves: list[tuple[int, int]]) -> None:
    with open_object(_CLIENT[0], _CLIENT[1], "data") as file:
        for place, count in moves:
            assert file.seek(place) == place
            assert file.read(count) == DATA[place : place + count if count >= 0 else None]


_CLIENT: list = []


@pytest.fixture(scope="module", autouse=True)
def _known(moto: S3Server, bucket: str) -> None:  # noqa: F811
    _CLIENT[:] = [moto.client, bucket]


def test_a_file_can_be_read_by_what_reads_files(moto: S3Server, bucket: str) -> None:  # noqa: F811
    lines = [f"line {i} 行\n".encode() for i in range(50_000)]
    moto.client.put_object(Bucket=bucket, Key="lines.gz", Body=gzip.compress(b"".join(lines)))
    with gzip.open(open_object(moto.client, bucket, "lines.gz")) as file:
        assert list(file) == lines
    with open_object(moto.client, bucket, "empty") as file:
        assert file.read() == b""
    with pytest.raises(ObjectMissing):
        open_object(moto.client, bucket, "nothing")


def test_a_replaced_object_is_no_mixture(moto: S3Server) -> None:  # noqa: F811
    client, bucket = moto.client, moto.bucket()
    client.put_object(Bucket=bucket, Key="k", Body=bytes(1_000_000))
    with open_object(client, bucket, "k") as file:
        assert file.read(10) == bytes(10)
        client.put_object(Bucket=bucket, Key="k", Body=b"1" * 1_000_000)
        file.seek(900_000)
        with pytest.raises(ObjectChanged):
            file.read(10)


@contextmanager
def cutting(target: tuple[str, int], after: int) -> Iterator[tuple[str, list[int]]]:
    """A way to a server that cuts each connection after so many bytes of an answer; lists the cuts."""
    cuts: list[int] = []
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                near, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=carry, args=(near,), daemon=True).start()

    def carry(near: socket.socket) -> None:
        with suppress(OSError), near, socket.create_connection(target) as far:
            request = b""
            while b"\r\n\r\n" not in request:
                if not (got := near.recv(65536)):
                    return
                request += got
            far.sendall(request)
            passed = 0
            while got := far.recv(16384):
                near.sendall(got)
                passed += len(got)
                if passed > after:
                    cuts.append(passed)
                    return

    threading.Thread(target=serve, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}", cuts
    finally:
        listener.close()


def test_a_body_that_breaks_off_goes_on_where_it_broke(moto: S3Server, bucket: str) -> None:  # noqa: F811
    host, _, port = moto.endpoint.removeprefix("http://").partition(":")
    with cutting((host, int(port)), after=600_000) as (endpoint, cuts):
        client = client_for(S3Access(endpoint, "", None, KEY, SECRET))
        assert read_range(client, bucket, "data", 0, len(DATA)) == DATA
    assert len(cuts) >= 4


@pytest.mark.parametrize("size", [1_500_000, 1_000])
def test_a_replaced_object_is_not_taken_up_where_another_broke(moto: S3Server, size: int) -> None:  # noqa: F811
    client, bucket = moto.client, moto.bucket()
    client.put_object(Bucket=bucket, Key="k", Body=bytes(1_500_000))
    host, _, port = moto.endpoint.removeprefix("http://").partition(":")

    def replace(**_: object) -> None:
        if cuts:
            client.put_object(Bucket=bucket, Key="k", Body=b"1" * size)

    with cutting((host, int(port)), after=600_000) as (endpoint, cuts):
        broken = client_for(S3Access(endpoint, "", None, KEY, SECRET))
        broken.meta.events.register("before-send.s3.GetObject", replace)
        with pytest.raises(ObjectChanged):
            read_range(broken, bucket, "k", 0, None)
    assert cuts


def test_nobody_there_is_away() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    import boto3
    from botocore.config import Config

    client = boto3.client(
        "s3",
        endpoint_url=f"http://127.0.0.1:{port}",
        aws_access_key_id="k",
        aws_secret_access_key="s",
        region_name="here",
        config=Config(retries={"total_max_attempts": 1}),
    )
    with pytest.raises(ObjectStoreAway, match="does not answer"):
        look(client, "b", "k")
