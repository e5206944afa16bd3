"""What fetch brought, found again by what it is of."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dataflow_ops.engine.raw import RawStore
from dataflow_ops.job_file import parse_job
from dataflow_ops.storage.blob import BlobStore
from dataflow_ops.storage.local import LocalStore
from dataflow_ops.storage.opening import open_store, root_of
from tests.storage.s3_server import moto, moto_url  # noqa: F401


@pytest.fixture(params=["local", "moto"])
def blobs(request: pytest.FixtureRequest, tmp_path: Path) -> BlobStore:
    if request.param == "local":
        return LocalStore(tmp_path)
    return open_store(root_of(request.getfixturevalue("moto_url")))


@pytest.fixture
def raw(blobs: BlobStore) -> RawStore:
    return RawStore(parse_job({"dataset": {"id": "t"}, "sources": [{"path": "x", "source_id": "s"}]}), blobs)


def test_bytes_are_found_by_their_mark(raw: RawStore) -> None:
    assert raw.known("one") == ""
    location, _, size = raw.store([b"some ", b"bytes"], "one")
    assert size == 10
    assert raw.known("one") == location
    assert raw.known("other") == ""
    with raw.open("s", "x", location) as opened:
        assert opened.read() == b"some bytes"


def test_the_last_bytes_of_a_mark_count(raw: RawStore) -> None:
    raw.store([b"first"], "中 %s \udcff")
    second, _, _ = raw.store([b"second"], "中 %s \udcff")
    assert raw.known("中 %s \udcff") == second


def test_bytes_without_a_mark_are_only_stored(raw: RawStore) -> None:
    raw.store([b"page"])
    assert raw.known("") == ""


def test_bytes_that_are_gone_are_not_known(raw: RawStore, blobs: BlobStore) -> None:
    location, _, _ = raw.store([b"bytes"], "one")
    blobs.delete(location)
    assert raw.known("one") == ""


def test_a_mark_that_goes_meanwhile_is_none(
    raw: RawStore, blobs: BlobStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    raw.store([b"bytes"], "one")
    read = blobs.read

    def late(uri: str, *more: Any) -> bytes:
        blobs.delete(uri)
        return read(uri, *more)

    monkeypatch.setattr(blobs, "read", late)
    assert raw.known("one") == ""


def test_what_broke_off_leaves_no_mark(raw: RawStore) -> None:
    def broken() -> object:
        yield b"half"
        raise ConnectionError

    with pytest.raises(ConnectionError):
        raw.store(broken(), "one")  # type: ignore[arg-type]
    assert raw.known("one") == ""
