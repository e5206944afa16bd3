"""What every blob store must do. Subclass :class:`BlobStoreContract` and supply ``blobs``."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from dataflow_ops.errors import CorruptOutput, OutputConflict, StorageError
from dataflow_ops.storage.blob import BlobStore, sha256_of


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


class BlobStoreContract:
    """Subclasses define a fixture ``blobs`` that gives an empty store, and ``damage``."""

    @pytest.fixture
    def blobs(self, tmp_path: Path) -> BlobStore:
        raise NotImplementedError

    def damage(self, blobs: BlobStore, uri: str, data: bytes) -> None:
        """Change stored bytes behind the store's back."""
        raise NotImplementedError

    def fill(self, blobs: BlobStore, uris: Sequence[str]) -> None:
        """Something small under each name, put there without the store."""
        for uri in uris:
            path = blobs.local_path(uri)
            assert path is not None
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(b"x")

    def alike(self, known: object) -> object:
        """What racers that stored equal bytes must agree on."""
        return known

    def publish(self, blobs: BlobStore, uri: str, data: bytes, recorded: str = "") -> tuple[int, int]:
        staged = blobs.stage(uri)
        staged.write(data)
        return blobs.publish(staged.path, uri, staged.finish(), recorded)

    def test_published_bytes_come_back(self, blobs: BlobStore) -> None:
        known = self.publish(blobs, "data/a/x.bin", b"0123456789")
        assert known == blobs.stat("data/a/x.bin")
        assert known[0] == 10
        assert blobs.read("data/a/x.bin") == b"0123456789"
        assert blobs.read("data/a/x.bin", 3, 4) == b"3456"
        assert blobs.read("data/a/x.bin", 7) == b"789"
        with blobs.open("data/a/x.bin") as file:
            file.seek(5)
            assert file.read(2) == b"56"

    def test_staged_is_invisible_and_discardable(self, blobs: BlobStore) -> None:
        staged = blobs.stage("data/x")
        staged.write(b"abc")
        assert blobs.stat("data/x") is None
        assert list(blobs.list()) == []
        staged.discard()
        staged.discard()
        assert not staged.path.exists()

    def test_file_from_elsewhere(self, blobs: BlobStore, tmp_path: Path) -> None:
        shard = tmp_path / "elsewhere.bin"
        shard.write_bytes(b"shard")
        blobs.publish(shard, "versions/v/part-0", sha(b"shard"))
        assert blobs.read("versions/v/part-0") == b"shard"
        assert not shard.exists()

    def test_same_bytes_are_adopted(self, blobs: BlobStore) -> None:
        first = self.publish(blobs, "a", b"same")
        assert self.publish(blobs, "a", b"same") == first

    def test_other_bytes_are_a_conflict(self, blobs: BlobStore) -> None:
        self.publish(blobs, "a", b"one")
        with pytest.raises(OutputConflict, match="a exists"):
            self.publish(blobs, "a", b"two")
        with pytest.raises(OutputConflict):
            self.publish(blobs, "a", b"two", recorded=sha(b"one"))
        assert blobs.read("a") == b"one"

    def test_copy_that_fails_its_record_is_quarantined_and_replaced(self, blobs: BlobStore) -> None:
        self.publish(blobs, "d/a", b"good")
        self.damage(blobs, "d/a", b"rotten")
        self.publish(blobs, "d/a", b"good", recorded=sha(b"good"))
        assert blobs.read("d/a") == b"good"
        kept = [b for b in blobs.list("quarantine/")]
        assert [blobs.read(b.uri) for b in kept] == [b"rotten"]

    def test_wrong_hash_publishes_nothing(self, blobs: BlobStore) -> None:
        staged = blobs.stage("a")
        staged.write(b"x")
        staged.finish()
        with pytest.raises(CorruptOutput):
            blobs.publish(staged.path, "a", sha(b"y"))
        assert blobs.stat("a") is None
        assert not staged.path.exists()

    def test_race_has_one_winner_and_no_loser(self, blobs: BlobStore) -> None:
        results: list[object] = []

        def attempt(i: int) -> None:
            try:
                results.append(self.publish(blobs, "race/x", b"equal" * 1000))
            except StorageError as e:
                results.append(e)

        threads = [threading.Thread(target=attempt, args=(i,)) for i in range(16)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        assert [self.alike(known) for known in results] == [self.alike(blobs.stat("race/x"))] * 16
        assert [b.uri for b in blobs.list()] == ["race/x"]

    def test_list_by_prefix(self, blobs: BlobStore) -> None:
        for uri in ("data/a/1", "data/a/2", "data/ab/3", "data/b/4", "datb", "staging/5"):
            blobs.put(uri, uri.encode())
        assert {b.uri for b in blobs.list("data/a/")} == {"data/a/1", "data/a/2"}
        assert {b.uri for b in blobs.list("data/a")} == {"data/a/1", "data/a/2", "data/ab/3"}
        assert {b.uri for b in blobs.list()} == {
            "data/a/1",
            "data/a/2",
            "data/ab/3",
            "data/b/4",
            "datb",
            "staging/5",
        }
        for blob in blobs.list():
            assert blobs.stat(blob.uri) == (blob.size, blob.mtime_ns)
        assert list(blobs.list("nothing/here")) == []

    def test_all_of_many_are_listed(self, blobs: BlobStore) -> None:
        uris = [f"versions/many/{i % 7:02x}/part_{i:05}" for i in range(2_500)]
        self.fill(blobs, [*uris, "versions/manyfold"])
        found = [blob.uri for blob in blobs.list("versions/many/")]
        assert sorted(found) == sorted(uris)
        assert len(list(blobs.list("versions/many/03/"))) == len([u for u in uris if "/03/" in u])

    def test_race_of_different_bytes_has_one_winner(self, blobs: BlobStore) -> None:
        won: list[int] = []
        lost: list[type] = []

        def attempt(i: int) -> None:
            try:
                self.publish(blobs, "race/y", b"%d" % i * 1000)
                won.append(i)
            except StorageError as e:
                lost.append(type(e))

        threads = [threading.Thread(target=attempt, args=(i,)) for i in range(16)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        assert lost == [OutputConflict] * 15
        assert blobs.read("race/y") == b"%d" % won[0] * 1000

    def test_large_file(self, blobs: BlobStore) -> None:
        block = bytes(range(256)) * 4096
        staged = blobs.stage("data/large")
        for number in range(37):
            staged.write(number.to_bytes(8, "little") + block)
        sha256, size = staged.finish(), staged.size
        assert blobs.publish(staged.path, "data/large", sha256) == blobs.stat("data/large")
        with blobs.open("data/large") as file:
            assert sha256_of(file) == (sha256, size)
        assert blobs.read("data/large", 20 * (len(block) + 8), 8) == (20).to_bytes(8, "little")
        known = blobs.link("data/large", "versions/v/large")
        assert known[0] == size
        with blobs.open("versions/v/large") as file:
            assert sha256_of(file) == (sha256, size)

    def test_bytes_changed_behind_its_back_show(self, blobs: BlobStore) -> None:
        """Also where their number is the same, within a second of the writing."""
        known = self.publish(blobs, "versions/a", b"good")
        self.damage(blobs, "versions/a", b"evil")
        assert blobs.stat("versions/a") != known
        assert [(b.size, b.mtime_ns) for b in blobs.list("versions/")] == [blobs.stat("versions/a")]
        with pytest.raises(OutputConflict):
            self.publish(blobs, "versions/a", b"good")

    def test_replaced_while_it_is_replaced(self, blobs: BlobStore) -> None:
        errors: list[StorageError] = []

        def attempt(i: int) -> None:
            try:
                blobs.put("versions/current", b"v%d" % i, replace=True)
            except StorageError as e:
                errors.append(e)

        threads = [threading.Thread(target=attempt, args=(i,)) for i in range(8)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        assert errors == []
        assert blobs.read("versions/current") in [b"v%d" % i for i in range(8)]

    def test_names_of_all_scripts(self, blobs: BlobStore) -> None:
        uris = [
            "versions/v/domain=百科/part 0+1&2%.parquet",
            "versions/v/domain=énorme/x",
            "versions/v/a#b?c",
        ]
        for uri in uris:
            self.publish(blobs, uri, uri.encode())
            blobs.link(uri, f"copy/{uri}")
        assert sorted(b.uri for b in blobs.list("versions/")) == sorted(uris)
        for uri in uris:
            assert blobs.read(f"copy/{uri}") == uri.encode()

    def test_missing(self, blobs: BlobStore) -> None:
        assert blobs.stat("no/such") is None
        assert blobs.delete("no/such") is False
        assert blobs.quarantine("no/such") == ""
        with pytest.raises(CorruptOutput, match="no/such"):
            blobs.read("no/such")
        with pytest.raises(CorruptOutput):
            blobs.link("no/such", "other")
        with pytest.raises(CorruptOutput):
            blobs.open("no/such")
        assert list(blobs.list()) == []

    def test_short_read_is_an_error(self, blobs: BlobStore) -> None:
        blobs.put("a", b"123")
        with pytest.raises(CorruptOutput, match="ends at byte 3"):
            blobs.read("a", 1, 5)

    def test_put_and_replace(self, blobs: BlobStore) -> None:
        blobs.put("versions/current", b"v1")
        with pytest.raises(OutputConflict):
            blobs.put("versions/current", b"v2")
        assert blobs.put("versions/current", b"v2", replace=True) == blobs.stat("versions/current")
        assert blobs.read("versions/current") == b"v2"

    def test_delete(self, blobs: BlobStore) -> None:
        blobs.put("a/b", b"")
        assert blobs.delete("a/b") is True
        assert list(blobs.list()) == []

    def test_link(self, blobs: BlobStore) -> None:
        blobs.put("data/s", b"shard")
        known = blobs.link("data/s", "versions/v1/s")
        assert known == blobs.stat("versions/v1/s")
        assert blobs.link("data/s", "versions/v1/s") == known
        blobs.delete("data/s")
        assert blobs.read("versions/v1/s") == b"shard"
        blobs.put("other", b"other")
        with pytest.raises(OutputConflict):
            blobs.link("other", "versions/v1/s")

    @pytest.mark.parametrize("uri", ["", "/etc/passwd", "../x", "a/../../x", "a//b", "./a", "a/x.tmp_1_2"])
    def test_uris_stay_below_the_root(self, blobs: BlobStore, uri: str) -> None:
        with pytest.raises(StorageError):
            blobs.put(uri, b"x")
