"""The cold tier of a storage root: what was moved there is read by its old name, and never taken for lost."""

from __future__ import annotations

import hashlib
import os
import shutil
import time
from pathlib import Path

import pyarrow as pa
import pytest

from dataflow_ops.errors import ColdAway, ConfigError, CorruptOutput
from dataflow_ops.protocols import OutputSpec
from dataflow_ops.storage.blob import BlobStore
from dataflow_ops.storage.chunk_store import ChunkStore
from dataflow_ops.storage.cold import COLD, OWNER, TIERED, attach, claim
from dataflow_ops.storage.local import LocalStore
from dataflow_ops.storage.moving import Mover
from tests.storage.contract import BlobStoreContract, sha
from tests.storage.power_cut import PowerCut, PowerCutDisk

URI = "data/step/ab/one.bin"
PAYLOAD = bytes(range(256)) * 40
SHA = hashlib.sha256(PAYLOAD).hexdigest()
THEN_NS = 1_700_000_000_123_456_789


def tiered(tmp_path: Path) -> LocalStore:
    (tmp_path / "archive").mkdir(parents=True, exist_ok=True)
    (tmp_path / "store").mkdir(parents=True, exist_ok=True)
    attach(tmp_path / "store", tmp_path / "archive")
    return LocalStore(tmp_path / "store")


def moved(tmp_path: Path) -> LocalStore:
    """A store with one file, in its cold tier alone."""
    store = tiered(tmp_path)
    store.put(URI, PAYLOAD)
    assert Mover(store.root, 0.0).move(URI, SHA, THEN_NS) == "moved"
    assert not (store.root / URI).exists()
    return store


def away(store: LocalStore) -> Path:
    """What an unmounted place looks like; returns where its folder is now."""
    folder = store.cold.folder.resolve()
    return folder.rename(folder.with_name("unmounted"))


class TestWithAnEmptyTier(BlobStoreContract):
    @pytest.fixture
    def blobs(self, tmp_path: Path) -> BlobStore:
        return tiered(tmp_path)

    def damage(self, blobs: BlobStore, uri: str, data: bytes) -> None:
        path = blobs.local_path(uri)
        assert path is not None
        path.write_bytes(data)


class MovedAtOnce(LocalStore):
    """Whatever may be moved is, as soon as it was published."""

    def publish(self, staged: Path, uri: str, sha256: str, recorded: str = "") -> tuple[int, int]:
        known = super().publish(staged, uri, sha256, recorded)
        if uri.startswith(TIERED):
            assert Mover(self.root, 0.0).move(uri, sha256, known[1]) == "moved"
        return known


class TestMovedAtOnce(TestWithAnEmptyTier):
    @pytest.fixture
    def blobs(self, tmp_path: Path) -> BlobStore:
        return MovedAtOnce(tiered(tmp_path).root)

    def test_list_by_prefix(self, blobs: BlobStore) -> None:
        """Listed by itself, read by its old name."""
        names = {"data/a/1", "data/a/2", "data/ab/3", "raw/4"}
        for uri in (*names, "datb", "staging/5"):
            blobs.put(uri, uri.encode())
        assert {b.uri for b in blobs.list()} == {"datb", "staging/5"}
        assert {b.uri for b in blobs.list("cold/data/a/")} == {"cold/data/a/1", "cold/data/a/2"}
        assert {b.uri for b in blobs.list("cold/")} == {f"cold/{name}" for name in names}
        for blob in blobs.list("cold/"):
            assert blobs.stat(blob.uri.removeprefix("cold/")) == (blob.size, blob.mtime_ns)


def test_what_was_moved_is_read_by_its_old_name(tmp_path: Path) -> None:
    store = moved(tmp_path)
    assert store.stat(URI) == (len(PAYLOAD), THEN_NS)
    assert store.read(URI) == PAYLOAD
    assert store.read(URI, 5, 7) == PAYLOAD[5:12]
    with store.open(URI) as file:
        assert file.read() == PAYLOAD
    path = store.local_path(URI)
    assert path is not None
    assert path.resolve().is_relative_to(tmp_path / "archive")
    assert list(store.list()) == []
    assert [b.uri for b in store.list("cold/data/step/")] == [f"cold/{URI}"]
    assert store.link(URI, "versions/v/one.bin")[0] == len(PAYLOAD)
    assert store.read("versions/v/one.bin") == PAYLOAD
    with pytest.raises(CorruptOutput, match="not there"):
        store.read("data/step/ab/two.bin")
    assert store.delete(URI)
    assert (store.stat(URI), store.delete(URI)) == (None, False)
    assert [p for p in (tmp_path / "archive").rglob("*") if p.is_file()] == []


def test_what_is_written_again_is_written_to_the_root_and_goes_from_both(tmp_path: Path) -> None:
    store = moved(tmp_path)
    store.put(URI, PAYLOAD)
    assert store.stat(URI) != (len(PAYLOAD), THEN_NS), "the one in the root is the one that is told of"
    assert [b.uri for b in store.list("data/")] == [URI]
    assert store.delete(URI)
    assert store.stat(URI) is None


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("keep_names", [False, True])
def test_power_cut_at_every_step_of_a_move(tmp_path: Path, after: bool, keep_names: bool) -> None:
    trial = tiered(tmp_path / "trial")
    trial.put(URI, PAYLOAD)
    disk = PowerCutDisk(trial.root)
    assert Mover(trial.root, 0.0, disk).move(URI, SHA, THEN_NS) == "moved"
    assert len(disk.steps) > 8
    for step in range(1, len(disk.steps)):  # the first finds the link there, and makes nothing
        store = tiered(tmp_path / f"{step}")
        store.put(URI, PAYLOAD)
        disk = PowerCutDisk(store.root, stop_at=step, after=after)
        with pytest.raises(PowerCut):
            Mover(store.root, 0.0, disk).move(URI, SHA, THEN_NS)
        disk.power_cut(keep_names)
        assert LocalStore(store.root).read(URI) == PAYLOAD
        if (store.root / URI).exists():
            again = Mover(store.root, 0.0)
            again.sweep(0.0)
            assert again.move(URI, SHA, THEN_NS) == "moved"
        assert LocalStore(store.root).read(URI) == PAYLOAD
        assert [b.uri for b in LocalStore(store.root).list("cold/data/")] == [f"cold/{URI}"]


def test_the_first_copy_stays_until_the_grace_period_is_over(tmp_path: Path) -> None:
    store = tiered(tmp_path)
    store.put(URI, PAYLOAD)
    assert Mover(store.root, 3600.0).move(URI, SHA, THEN_NS) == "copied"
    assert Mover(store.root, 3600.0).move(URI, SHA, THEN_NS) == "waits"
    assert [store.stat(name) is not None for name in (URI, f"cold/{URI}")] == [True, True]
    with store.open(URI) as reader:
        time.sleep(0.02)
        assert Mover(store.root, 0.01).move(URI, SHA, THEN_NS) == "moved"
        assert reader.read() == PAYLOAD, "who had opened it goes on"


def test_damaged_bytes_are_not_moved_and_a_damaged_copy_is_made_again(tmp_path: Path) -> None:
    store = tiered(tmp_path)
    store.put(URI, PAYLOAD)
    assert Mover(store.root, 0.0).move(URI, sha(b"other"), THEN_NS) == "damaged"
    assert store.stat(f"cold/{URI}") is None
    assert Mover(store.root, 3600.0).move(URI, SHA, THEN_NS) == "copied"
    copy = store.cold.folder / URI
    copy.write_bytes(PAYLOAD[:-1] + b"!")
    assert Mover(store.root, 0.0).move(URI, SHA, THEN_NS) == "copied", "the good one stays"
    assert copy.read_bytes() == PAYLOAD
    assert len(list(store.list("cold/quarantine/"))) == 1
    assert Mover(store.root, 0.0).move(URI, SHA, THEN_NS) == "moved"
    assert store.read(URI) == PAYLOAD


def test_a_place_that_is_away_is_no_place_without_files(tmp_path: Path) -> None:
    store = moved(tmp_path)
    store.put("data/step/cd/near.bin", b"near")
    was, now = store.cold.folder.resolve(), away(store)
    for look in (
        lambda: store.stat(URI),
        lambda: store.open(URI),
        lambda: store.local_path(URI),
        lambda: store.delete(URI),
        lambda: list(store.list("cold/data/")),
        lambda: attach(store.root, tmp_path / "archive"),
        lambda: claim(store.root),
    ):
        with pytest.raises(ColdAway, match="mount it"):
            look()
    assert store.read("data/step/cd/near.bin") == b"near", "what lies here is read as ever"
    assert [b.uri for b in store.list("data/")] == ["data/step/cd/near.bin"]
    assert store.stat("staging/k/1/rows") is None
    with pytest.raises(OSError, match="exists"):
        Mover(store.root, 0.0).move("data/step/cd/near.bin", sha(b"near"), THEN_NS)
    assert not was.exists(), "no folder is made in its place"
    now.rename(was)
    assert store.read(URI) == PAYLOAD


def test_a_tier_that_lies_elsewhere_now(tmp_path: Path) -> None:
    store = moved(tmp_path)
    attach(store.root, tmp_path / "archive")
    other = tmp_path / "other"
    with pytest.raises(ConfigError, match="no such folder"):
        attach(store.root, other)
    other.mkdir()
    with pytest.raises(ConfigError, match="move the folder dataflow-cold-"):
        attach(store.root, other)
    folder = store.cold.folder.resolve()
    shutil.move(folder, other / folder.name)
    attach(store.root, other)
    assert store.read(URI) == PAYLOAD
    # Two homes share a place, each in a folder of its own.
    (tmp_path / "second").mkdir()
    attach(tmp_path / "second", other)
    assert LocalStore(tmp_path / "second").stat(URI) is None
    assert len(list(other.iterdir())) == 2


@pytest.mark.parametrize("there", ["folder", "link"])
def test_what_somebody_else_put_in_its_place_is_left_alone(tmp_path: Path, there: str) -> None:
    (tmp_path / "archive").mkdir()
    (tmp_path / "store").mkdir()
    if there == "folder":
        (tmp_path / "store" / COLD).mkdir()
    else:
        (tmp_path / "store" / COLD).symlink_to(tmp_path / "archive")
    with pytest.raises(ConfigError, match="link"):
        attach(tmp_path / "store", tmp_path / "archive")


def test_of_a_home_and_its_copy_one_clears_up(tmp_path: Path) -> None:
    store = moved(tmp_path)
    claim(store.root)
    claim(store.root)
    twin = tmp_path / "twin"
    shutil.copytree(store.root, twin, symlinks=True)
    with pytest.raises(ConfigError, match="is a copy of"):
        claim(twin)
    claim(store.root)
    shutil.rmtree(store.root)
    claim(twin)
    assert (twin / COLD / OWNER).read_text(encoding="utf-8") == str(twin), "a home that was moved"
    assert LocalStore(twin).read(URI) == PAYLOAD


class Late(LocalStore):
    """Between asking where a file lies and opening it, the file is moved."""

    move: str = ""

    def local_path(self, uri: str) -> Path | None:
        found = super().local_path(uri)
        if self.move:
            sha256, self.move = self.move, ""
            assert Mover(self.root, 0.0).move(uri, sha256, THEN_NS) == "moved"
        return found


def test_a_reader_that_was_overtaken_reads_the_copy(tmp_path: Path) -> None:
    late = Late(tiered(tmp_path).root)
    chunks = ChunkStore(late, tmp_path)
    schema = pa.schema([pa.field("n", pa.int64())])
    writer = chunks.writer("parse", "x", "ab" * 32, 1, {"text": OutputSpec("text", schema)})
    writer.append("text", pa.table({"n": [1, 2, 3]}, schema))
    [output] = writer.finish()
    late.move = output.sha256
    assert chunks.read(output)["n"].to_pylist() == [1, 2, 3]
    assert late.move == ""
    assert chunks.listing() == {}
    assert chunks.cold_listing() == {output.uri: (output.size, THEN_NS)}
    assert chunks.check_present([output], chunks.cold_listing()), "its hash decides where the time differs"
    os.unlink(late.cold.folder / output.uri)
    assert chunks.absent([output]) == [output]
