from __future__ import annotations

import hashlib
import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from dataflow_ops.errors import ConfigError, IllegalMove, StorageFull
from dataflow_ops.samples import uploading
from dataflow_ops.state.samples.store import SampleStore

DATA = bytes(random.Random(1).randbytes(10_000))


@pytest.fixture
def store(sqlite_url: str) -> Iterator[SampleStore]:
    with SampleStore(sqlite_url) as store:
        yield store


def _begin(store: SampleStore, sha256: str | None = None, name: str = "a.jsonl") -> str:
    return uploading.begin(store, "chat", name, len(DATA), sha256, "ann").upload_id


def test_parts_of_any_size(store: SampleStore, tmp_path: Path) -> None:
    at = _begin(store, hashlib.sha256(DATA).hexdigest())
    random_, offset = random.Random(2), 0
    while offset < len(DATA):
        size = random_.randint(1, 3000)
        offset = uploading.add_part(store, tmp_path / "up", at, offset, DATA[offset : offset + size]).received
    path = uploading.finish(store, tmp_path / "up", at)
    assert path.read_bytes() == DATA
    assert path.name == "a.jsonl"
    assert uploading.finish(store, tmp_path / "up", at) == path
    assert not list((tmp_path / "up").glob("*.part"))


def test_a_part_that_was_written_and_not_counted_is_written_again(
    store: SampleStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = _begin(store)
    uploading.add_part(store, tmp_path, at, 0, DATA[:4000])

    def die(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(store, "advance_upload", die)
    with pytest.raises(KeyboardInterrupt):
        uploading.add_part(store, tmp_path, at, 4000, b"?" * 5000)
    monkeypatch.undo()
    assert store.upload(at).received == 4000
    uploading.add_part(store, tmp_path, at, 4000, DATA[4000:])
    assert uploading.finish(store, tmp_path, at).read_bytes() == DATA


def test_killed_between_the_rename_and_the_state(
    store: SampleStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = _begin(store, hashlib.sha256(DATA).hexdigest())
    uploading.add_part(store, tmp_path, at, 0, DATA)

    def die(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(store, "end_upload", die)
    with pytest.raises(KeyboardInterrupt):
        uploading.finish(store, tmp_path, at)
    monkeypatch.undo()
    assert uploading.finish(store, tmp_path, at).read_bytes() == DATA
    assert store.upload(at).state == "DONE"


def test_other_bytes_than_announced(store: SampleStore, tmp_path: Path) -> None:
    at = _begin(store, hashlib.sha256(b"other").hexdigest())
    uploading.add_part(store, tmp_path, at, 0, DATA)
    with pytest.raises(IllegalMove, match="not the bytes"):
        uploading.finish(store, tmp_path, at)
    assert store.upload(at).state == "ABORTED"
    assert not list(tmp_path.glob("*.part"))
    assert not list(tmp_path.rglob("a.jsonl"))
    with pytest.raises(IllegalMove, match="ABORTED"):
        uploading.add_part(store, tmp_path, at, len(DATA), b"")


def test_what_is_refused(store: SampleStore, tmp_path: Path) -> None:
    at = _begin(store)
    with pytest.raises(IllegalMove, match="goes on at byte 0, not at 5"):
        uploading.add_part(store, tmp_path, at, 5, b"x")
    with pytest.raises(ConfigError, match="more came"):
        uploading.add_part(store, tmp_path, at, 0, DATA + b"x")
    with pytest.raises(ConfigError, match="at most 32 MB"):
        uploading.add_part(store, tmp_path, at, 0, b"x" * (uploading.MAX_PART + 1))
    with pytest.raises(IllegalMove, match="0 of 10000 bytes"):
        uploading.finish(store, tmp_path, at)
    for unknown in ("../x", "0" * 32):
        with pytest.raises(ConfigError, match="no upload"):
            uploading.add_part(store, tmp_path, unknown, 0, b"x")
    uploading.abort(store, tmp_path, at)
    with pytest.raises(IllegalMove):
        uploading.abort(store, tmp_path, at)
    for name in ("", "..", "/", "a/.."):
        with pytest.raises(ConfigError, match="no name"):
            _begin(store, name=name)
    with pytest.raises(ConfigError, match="64 hexadecimal"):
        _begin(store, "xyz")
    assert store.upload(_begin(store, name="../../etc/pass\nwd")).name == "passwd"


def test_a_full_disk_is_told_and_gone_on_from(
    store: SampleStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = _begin(store)
    uploading.add_part(store, tmp_path, at, 0, DATA[:100])

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StorageFull):
        uploading.add_part(store, tmp_path, at, 100, DATA[100:])
    monkeypatch.undo()
    uploading.add_part(store, tmp_path, at, 100, DATA[100:])
    assert uploading.finish(store, tmp_path, at).read_bytes() == DATA
