"""The object store: the contract on moto and on SeaweedFS, and what only a server far away can do to one."""

from __future__ import annotations

import hashlib
import io
import pickle
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pytest
from botocore.awsrequest import AWSResponse

from dataflow_ops.clients.s3 import access_from_environment, split_url
from dataflow_ops.engine.scratch import sweep_scratch
from dataflow_ops.errors import ConfigError, CorruptOutput, ObjectStoreRefused, StorageError
from dataflow_ops.protocols import OutputSpec
from dataflow_ops.storage import remote, s3_upload
from dataflow_ops.storage.blob import BlobStore
from dataflow_ops.storage.chunk_store import ChunkStore
from dataflow_ops.storage.s3 import S3Root, S3Store
from dataflow_ops.storage.s3_upload import MOST_PARTS, PART_BYTES, part_bytes
from tests.storage.contract import BlobStoreContract, sha
from tests.storage.s3_server import S3Server, Weed, moto, moto_url, pointed, weed, weed_url  # noqa: F401


def store_at(url: str) -> S3Store:
    return S3Store(S3Root(*split_url(url), access_from_environment()))


class S3Contract(BlobStoreContract):
    def raw(self, blobs: BlobStore) -> tuple[Any, str, str]:
        assert isinstance(blobs, S3Store)
        return blobs._place.client, blobs.root.bucket, f"{blobs.root.prefix}/"

    def damage(self, blobs: BlobStore, uri: str, data: bytes) -> None:
        client, bucket, prefix = self.raw(blobs)
        client.put_object(Bucket=bucket, Key=prefix + uri, Body=data)

    def fill(self, blobs: BlobStore, uris: Sequence[str]) -> None:
        client, bucket, prefix = self.raw(blobs)
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda uri: client.put_object(Bucket=bucket, Key=prefix + uri, Body=b"x"), uris))

    def uploads(self, blobs: BlobStore) -> list[dict[str, Any]]:
        client, bucket, _ = self.raw(blobs)
        return list(client.list_multipart_uploads(Bucket=bucket).get("Uploads", []))

    def test_what_lies_beside_the_root_is_not_its_own(self, blobs: BlobStore) -> None:
        client, bucket, prefix = self.raw(blobs)
        client.put_object(Bucket=bucket, Key="elsewhere/x", Body=b"x")
        client.put_object(Bucket=bucket, Key=f"{prefix.rstrip('/')}-old/x", Body=b"x")
        blobs.put("mine", b"x")
        assert [b.uri for b in blobs.list()] == ["mine"]

    def test_large_files_go_in_parts_and_leave_none(self, blobs: BlobStore) -> None:
        data = bytes(PART_BYTES) + b"end"
        self.publish(blobs, "data/large", data)
        client, bucket, prefix = self.raw(blobs)
        head = client.head_object(Bucket=bucket, Key=f"{prefix}data/large")
        assert head["Metadata"] == {"sha256": sha(data)}
        assert "-2" in head["ETag"]
        assert self.uploads(blobs) == []

    def test_a_link_reads_one_file_without_an_account(self, blobs: BlobStore) -> None:
        assert isinstance(blobs, S3Store)
        blobs.put("exports/d/水 a+b", b"shard")
        link = blobs.link_for("exports/d/水 a+b", 60)
        assert httpx.get(link).content == b"shard"
        with pytest.raises(CorruptOutput):
            blobs.link_for("exports/d/none", 60)
        with pytest.raises(ConfigError, match="7 days"):
            blobs.link_for("exports/d/水 a+b", 8 * 86_400)

    def test_race_of_large_files(self, blobs: BlobStore) -> None:
        data = bytes(range(256)) * (PART_BYTES // 256) + b"end"
        with ThreadPoolExecutor(4) as pool:
            results = list(pool.map(lambda _: self.publish(blobs, "data/race", data), range(4)))
        assert {self.alike(known) for known in results} == {self.alike(blobs.stat("data/race"))}
        assert self.uploads(blobs) == []

    def test_failed_part_leaves_nothing(self, blobs: BlobStore, monkeypatch: pytest.MonkeyPatch) -> None:
        asked: list[int] = []
        whole = s3_upload._piece

        def breaks(file: Any, start: int, length: int) -> bytes:
            asked.append(start)
            if start >= PART_BYTES:
                raise OSError(5, "the local disk broke")
            return whole(file, start, length)

        monkeypatch.setattr(s3_upload, "_piece", breaks)
        with pytest.raises(OSError, match="disk broke"):
            self.publish(blobs, "data/large", bytes(3 * PART_BYTES))
        assert asked
        assert blobs.stat("data/large") is None
        assert self.uploads(blobs) == []

    def test_copies_in_parts(self, blobs: BlobStore, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(s3_upload, "COPY_BYTES", 5 << 20)
        data = bytes(range(251)) * (12 << 20 >> 8)
        self.publish(blobs, "data/large", data)
        blobs.link("data/large", "versions/v/large")
        assert blobs.read("versions/v/large") == data
        client, bucket, prefix = self.raw(blobs)
        head = client.head_object(Bucket=bucket, Key=f"{prefix}versions/v/large")
        assert head["Metadata"] == {"sha256": sha(data)}
        assert "-3" in head["ETag"]

    def test_quarantined_copy_that_was_mended_meanwhile_stays(
        self, blobs: BlobStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.damage(blobs, "d/a", b"rotten")
        copied = S3Store._put_aside

        def mended(store: S3Store, *arguments: Any) -> str:
            target = copied(store, *arguments)
            self.damage(blobs, "d/a", b"good")
            return target

        monkeypatch.setattr(S3Store, "_put_aside", mended)
        target = blobs.quarantine("d/a")
        assert (blobs.read(target), blobs.read("d/a")) == (b"rotten", b"good")

    @pytest.mark.parametrize("brought_whole", [False, True])
    def test_rows_are_read_in_ranges_and_whole(
        self, blobs: BlobStore, monkeypatch: pytest.MonkeyPatch, brought_whole: bool
    ) -> None:
        if not brought_whole:
            monkeypatch.setattr(remote, "IN_MEMORY", 1000)
            monkeypatch.setattr("dataflow_ops.storage.rows.IN_ONE", 1000)
        schema = pa.schema([("row", pa.uint32()), ("text", pa.large_string())])
        texts = [hashlib.sha256(b"%d" % i).hexdigest() for i in range(30_000)]
        table = pa.table(
            [pa.array(range(30_000), pa.uint32()), pa.array(texts, pa.large_string())], schema=schema
        )
        chunks = ChunkStore(blobs)
        specs = {"rows": OutputSpec("rows", schema), "cut": OutputSpec("cut", schema, "key_prefix")}
        writer = chunks.writer("parse", "c", "ab" + "0" * 62, 1, specs)
        writer.append("rows", table)
        writer.append("cut", table.append_column("slice", pa.array([str(i % 3) for i in range(30_000)])))
        outputs = {one.kind: one for one in writer.finish()}
        assert chunks.read(outputs["rows"]).equals(table)
        assert chunks.read(outputs["rows"], verify=True).equals(table)
        assert chunks.rows(outputs["rows"], ("text",), 25_003).take(2).to_pylist() == [
            {"text": texts[25_003]},
            {"text": texts[25_004]},
        ]
        for verify in (False, True):
            part = chunks.read(outputs["cut"], "1", verify=verify)
            assert part.equals(table.take(list(range(1, 30_000, 3))))
        assert chunks.check_present(list(outputs.values()), chunks.listing())
        data = bytearray(blobs.read(outputs["rows"].uri))
        data[len(data) // 2] ^= 1
        self.damage(blobs, outputs["rows"].uri, bytes(data))
        assert chunks.absent(list(outputs.values()), chunks.listing()) == [outputs["rows"]]
        with pytest.raises(CorruptOutput):
            chunks.read(outputs["rows"], verify=True)
        self.damage(blobs, outputs["cut"].uri, blobs.read(outputs["cut"].uri)[:-100])
        with pytest.raises(CorruptOutput):
            chunks.read(outputs["cut"], "2", verify=True)


class TestOnMoto(S3Contract):
    @pytest.fixture
    def blobs(self, moto_url: str) -> BlobStore:  # noqa: F811
        return store_at(moto_url)

    def alike(self, known: object) -> object:
        """Its conditions are not atomic, so equal bytes may be stored twice, a second apart."""
        return (known[0], known[1] % 1_000_000_000) if isinstance(known, tuple) else known

    # For the same reason: on SeaweedFS it is run.
    test_race_of_different_bytes_has_one_winner = None

    def test_a_server_that_checks_no_bodies_is_read_back(
        self, blobs: BlobStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        assert isinstance(blobs, S3Store)
        assert not blobs.features().checks_bodies
        client, _, _ = self.raw(blobs)

        def garble(request: Any, **_: Any) -> None:
            request.body = b"garbled"

        client.meta.events.register("before-send.s3.PutObject", garble)
        try:
            with pytest.raises(CorruptOutput, match="not what was sent"):
                self.publish(blobs, "data/a", b"correct")
        finally:
            client.meta.events.unregister("before-send.s3.PutObject", garble)
        assert blobs.stat("data/a") is None
        self.publish(blobs, "data/a", b"correct")

    def test_a_fault_during_the_trial_is_no_refusal(self, blobs: BlobStore) -> None:
        assert isinstance(blobs, S3Store)
        client, _, _ = self.raw(blobs)
        faults: list[str] = []

        def fault(request: Any, **_: Any) -> Any:
            if "_garbled" not in request.url or faults:
                return None
            faults.append(request.url)
            raw = io.BytesIO(b"")
            raw.stream = lambda *_, **__: iter([b""])  # type: ignore[attr-defined]
            return AWSResponse(request.url, 503, {}, raw)

        client.meta.events.register("before-send.s3.PutObject", fault)
        try:
            found = blobs.features(afresh=True)
        finally:
            client.meta.events.unregister("before-send.s3.PutObject", fault)
        assert faults
        assert not found.checks_bodies


@pytest.mark.s3
@pytest.mark.xdist_group("s3")
class TestOnSeaweed(S3Contract):
    @pytest.fixture
    def blobs(self, weed_url: str) -> BlobStore:  # noqa: F811
        return store_at(weed_url)

    def test_it_can_do_all_that_is_asked(self, blobs: BlobStore) -> None:
        assert isinstance(blobs, S3Store)
        found = blobs.features()
        assert (found.conditional_put, found.conditional_parts, found.checks_bodies) == (True, True, True)
        assert store_at(str(blobs.root)).features() == found
        assert blobs.features(afresh=True) == found
        assert list(blobs.list()) == []

    def test_a_garbled_body_is_refused_and_sent_again(self, blobs: BlobStore) -> None:
        client, _, _ = self.raw(blobs)
        blobs.put("first", b"x")
        garbled: list[int] = []

        def garble(request: Any, **_: Any) -> None:
            if len(garbled) < 2:
                garbled.append(1)
                request.body = b"garbled"

        client.meta.events.register("before-send.s3.PutObject", garble)
        try:
            self.publish(blobs, "data/a", b"correct")
        finally:
            client.meta.events.unregister("before-send.s3.PutObject", garble)
        assert len(garbled) == 2
        assert blobs.read("data/a") == b"correct"

    def test_uploads_that_broke_off_are_swept_by_age(self, blobs: BlobStore) -> None:
        client, bucket, prefix = self.raw(blobs)
        for key in (f"{prefix}data/left", "elsewhere/left"):
            upload = client.create_multipart_upload(Bucket=bucket, Key=key)["UploadId"]
            client.upload_part(Bucket=bucket, Key=key, UploadId=upload, PartNumber=1, Body=b"x" * 1000)
        assert blobs.sweep(3600) == 0
        time.sleep(1.1)
        assert blobs.sweep(1) == 1
        assert [one["Key"] for one in self.uploads(blobs)] == ["elsewhere/left"]
        assert blobs.sweep(0) == 0

    def test_killed_in_the_midst_leaves_nothing_under_the_name(
        self, blobs: BlobStore, tmp_path: Path
    ) -> None:
        """kill -9 while parts are on their way; the next attempt does it."""
        assert isinstance(blobs, S3Store)
        child = subprocess.Popen(
            [sys.executable, "-c", _SLOW_UPLOAD, str(blobs.root), str(tmp_path / "large")]
        )
        deadline = time.monotonic() + 60
        client, bucket, _ = self.raw(blobs)
        while not any(
            client.list_parts(Bucket=bucket, Key=one["Key"], UploadId=one["UploadId"]).get("Parts")
            for one in self.uploads(blobs)
            if one["Key"].endswith("data/large")  # not the trial of what the server can do
        ):
            assert child.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.05)
        child.send_signal(signal.SIGKILL)
        child.wait()
        assert blobs.stat("data/large") is None
        assert list(blobs.list()) == []
        assert blobs.sweep(-1) == 1
        assert self.uploads(blobs) == []
        self.publish(blobs, "data/large", b"now whole")

    def test_wrong_credentials_are_told(self, blobs: BlobStore, monkeypatch: pytest.MonkeyPatch) -> None:
        assert isinstance(blobs, S3Store)
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong")
        access = blobs.root.access
        bad = S3Store(
            S3Root(blobs.root.bucket, "", type(access)(access.endpoint, "r", True, "test-access", "no"))
        )
        with pytest.raises(ObjectStoreRefused, match="AWS_ACCESS_KEY_ID"):
            list(bad.list())
        with pytest.raises(ObjectStoreRefused):
            bad.put("a", b"x")


_SLOW_UPLOAD = f"""
import sys, time
from pathlib import Path
from dataflow_ops.clients.s3 import access_from_environment, split_url
from dataflow_ops.storage import s3_upload
from dataflow_ops.storage.s3 import S3Root, S3Store
piece = s3_upload._piece
def slow(file, start, length):
    if start:
        time.sleep(60)
    return piece(file, start, length)
s3_upload._piece = slow
store = S3Store(S3Root(*split_url(sys.argv[1]), access_from_environment()))
staged = store.stage("data/large")
for _ in range(3):
    staged.write(bytes({PART_BYTES}))
store.publish(staged.path, "data/large", staged.finish())
"""


@pytest.mark.s3
@pytest.mark.xdist_group("s3")
def test_data_outlive_the_server(weed: Weed, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    store = store_at(pointed(weed, monkeypatch))
    known = store.put("data/a", b"kept")
    large = store.stage("data/b")
    large.write(bytes(PART_BYTES + 1))
    store.publish(large.path, "data/b", large.finish())
    before = store.stat("data/b")
    weed.stop()
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(store.read, "data/a")
        time.sleep(1.5)
        # Nobody was there when it was asked: it waits. (Here, for the server ends with its thread.)
        assert not asked.done()
        weed.start()
        assert asked.result() == b"kept"
    assert (store.stat("data/a"), store.stat("data/b")) == (known, before)


class Cut:
    """A way to a server that passes so many bytes of each request on, then drops the connection."""

    def __init__(self, server: S3Server, most: int) -> None:
        host, _, port = server.endpoint.removeprefix("http://").partition(":")
        self._target = (host, int(port))
        self._most = most
        self.cuts = 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.endpoint = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self) -> None:
        self._listener.close()

    def _serve(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._carry, args=(near,), daemon=True).start()

    def _carry(self, near: socket.socket) -> None:
        with near, socket.create_connection(self._target) as far:
            threading.Thread(target=_pass_on, args=(far, near), daemon=True).start()
            passed = 0
            while got := near.recv(65536):
                passed += len(got)
                if passed > self._most:
                    self.cuts += 1
                    near.shutdown(socket.SHUT_RDWR)
                    far.shutdown(socket.SHUT_RDWR)
                    return
                far.sendall(got)


def _pass_on(source: socket.socket, to: socket.socket) -> None:
    try:
        while got := source.recv(65536):
            to.sendall(got)
    except OSError:
        return


@contextmanager
def cut_way(server: S3Server, most: int) -> Iterator[Cut]:
    way = Cut(server, most)
    try:
        yield way
    finally:
        way.close()


@pytest.mark.s3
@pytest.mark.xdist_group("s3")
@pytest.mark.parametrize("size", [3_000_000, PART_BYTES + 3_000_000])
def test_an_upload_cut_in_the_midst_leaves_nothing(
    weed: Weed,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
    size: int,
) -> None:
    """In one request and in parts, every try cut; an old object under the name stays as it was."""
    monkeypatch.setattr("dataflow_ops.clients.s3.TRIES", 2)
    url = pointed(weed, monkeypatch)
    whole = store_at(url)
    whole.put("data/old", b"old")
    with cut_way(weed, 1_000_000) as way:
        monkeypatch.setenv("DATAFLOW_S3_ENDPOINT", way.endpoint)
        broken = store_at(url)
        broken.features()
        for uri, recorded in (("data/new", ""), ("data/old", "")):
            staged = broken.stage(uri)
            staged.write(bytes(size))
            sha256 = staged.finish()
            with pytest.raises(StorageError):
                broken.publish(staged.path, uri, sha256, recorded)
            assert not staged.path.exists()
        staged = broken.stage("data/old")
        staged.write(bytes(size))
        with pytest.raises(StorageError):
            broken.put("data/old", bytes(size), replace=True)
    assert way.cuts >= 3
    assert whole.stat("data/new") is None
    assert whole.read("data/old") == b"old"
    assert [b.uri for b in whole.list()] == ["data/old"]
    left = whole._place.client.list_multipart_uploads(Bucket=whole.root.bucket).get("Uploads", [])
    assert left == []


def test_parts_of_huge_files_stay_few() -> None:
    for size in (1, PART_BYTES, MOST_PARTS * PART_BYTES, MOST_PARTS * PART_BYTES + 1, 5 << 40):
        part = part_bytes(size)
        assert part % (1 << 20) == 0
        assert -(-size // part) <= MOST_PARTS
    assert part_bytes(MOST_PARTS * PART_BYTES) == PART_BYTES


def test_a_root_travels_and_tells_no_secret() -> None:
    root = S3Root("b", "p/q", access_from_environment({"DATAFLOW_S3_ENDPOINT": "http://h:1"}))
    assert str(root) == "s3://b/p/q"
    assert str(S3Root("b", "", root.access)) == "s3://b"
    assert pickle.loads(pickle.dumps(root)) == root
    assert "access" not in repr(root)


def test_staged_files_are_gone_with_their_process(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Of a killed one they are swept with the other folders of killed processes."""
    line = """
import os, signal, sys
from dataflow_ops.clients.s3 import S3Access
from dataflow_ops.storage.s3 import S3Root, S3Store
store = S3Store(S3Root("b", "", S3Access("http://127.0.0.1:1")))
staged = store.stage("data/x.parquet")
staged.write(b"abc")
assert staged.path.is_relative_to(os.environ["TMPDIR"]), staged.path
if os.fork() == 0:
    sys.exit()  # must not take its parent's files along
os.wait()
assert staged.path.exists()
if sys.argv[1] == "killed":
    os.kill(os.getpid(), signal.SIGKILL)
"""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    subprocess.run([sys.executable, "-c", line, "ended"], check=True)
    assert list(tmp_path.iterdir()) == []
    assert subprocess.run([sys.executable, "-c", line, "killed"], check=False).returncode == -signal.SIGKILL
    assert len(list(tmp_path.iterdir())) == 1
    assert sweep_scratch() == 1
    assert list(tmp_path.iterdir()) == []
