"""A bucket, or a prefix in one, as a blob store: whole under its final name or absent, without renaming."""

from __future__ import annotations

import hashlib
import itertools
import os
import shutil
import weakref
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import BinaryIO, Final

from dataflow_ops.clients.s3 import SCHEME, S3Access, client_for, told
from dataflow_ops.clients.s3_read import Found, listed, open_object, read_range
from dataflow_ops.errors import (
    ConfigError,
    CorruptOutput,
    ObjectChanged,
    ObjectMissing,
    OutputConflict,
    StorageError,
)
from dataflow_ops.storage.blob import QUARANTINE, TEMPORARY, Blob, checked_uri, sha256_of
from dataflow_ops.storage.disk import Disk, full_disk_named
from dataflow_ops.storage.local import LocalStaged
from dataflow_ops.storage.s3_features import FOLDER, Features, features_of, probe
from dataflow_ops.storage.s3_upload import (
    PART_BYTES,
    SHA256,
    Place,
    abort_old,
    copy,
    put_bytes,
    put_file,
)
from dataflow_ops.storage.scratch import own_folder

LONGEST_LINK_S: Final = 7 * 86_400
"""Signatures of S3 hold no longer."""
_SECOND_NS: Final = 1_000_000_000


@dataclass(frozen=True, slots=True)
class S3Root:
    """Where a storage root is in object storage, and how it is reached. Can be pickled.

    Attributes:
        bucket: name.
        prefix: without a slash at its ends; ``""``: the whole bucket.
        access: see :class:`~dataflow_ops.clients.s3.S3Access`.
    """

    bucket: str
    prefix: str
    access: S3Access = field(repr=False)

    def __str__(self) -> str:
        return f"{SCHEME}{self.bucket}/{self.prefix}".rstrip("/")


class S3Store:
    """A :class:`~dataflow_ops.storage.blob.BlobStore` in an S3 bucket.

    The SHA-256 of each object is stored as its metadata: an ETag is no hash of an object that came in parts.
    As ``mtime_ns`` an object has the second in which it was stored, with nine digits made of its ETag in
    place of the fraction: S3 tells whole seconds only, and bytes that were replaced within one still show.
    As a time it is right to the second.

    What is being written lies in a local folder of this process; finished files go straight onto their key.

    Args:
        root: bucket, prefix, access.
        disk: the local operations; tests pass one that fails on purpose.
    """

    def __init__(self, root: S3Root, disk: Disk | None = None) -> None:
        self.root = root
        self._prefix = f"{root.prefix}/" if root.prefix else ""
        self._disk = disk or Disk()
        self._numbers = itertools.count()

    def read(self, uri: str, offset: int = 0, length: int | None = None) -> bytes:
        """See :meth:`BlobStore.read`."""
        key = self._key(uri)
        if length == 0:
            self._look(uri)
        try:
            data = read_range(*self._place, key, offset, length)
        except ObjectMissing as e:
            raise _gone(uri) from e
        if length is not None and len(data) != length:
            raise CorruptOutput(f"{uri} ends at byte {offset + len(data)}, {offset + length} were expected")
        return data

    def open(self, uri: str) -> BinaryIO:
        """See :meth:`BlobStore.open`: reads ranges, ahead of where reading goes straight on."""
        try:
            return open_object(*self._place, self._key(uri))
        except ObjectMissing as e:
            raise _gone(uri) from e

    def local_path(self, uri: str) -> Path | None:
        """See :meth:`BlobStore.local_path`: never."""
        checked_uri(uri)
        return None

    def stage(self, uri: str) -> LocalStaged:
        """See :meth:`BlobStore.stage`: on local disk."""
        name = os.path.basename(checked_uri(uri))
        path = self._folder / f"{next(self._numbers)}_{name[-100:]}{TEMPORARY}{os.getpid()}"
        with full_disk_named(f"{uri} in {self._folder}"):
            return LocalStaged(path, uri, self._disk)

    def publish(self, staged: Path, uri: str, sha256: str, recorded: str = "") -> tuple[int, int]:
        """See :meth:`BlobStore.publish`. Small files in one request, larger ones in parts."""
        try:
            key = self._key(uri)
            if staged.stat().st_size <= PART_BYTES:
                return self._publish(key, uri, staged.read_bytes(), sha256, recorded)
            with open(staged, "rb") as file:
                _check(sha256_of(file)[0], sha256, uri)
            return self._publish(key, uri, staged, sha256, recorded)
        finally:
            staged.unlink(missing_ok=True)

    def put(self, uri: str, data: bytes, replace: bool = False) -> tuple[int, int]:
        """See :meth:`BlobStore.put`."""
        key, sha256 = self._key(uri), hashlib.sha256(data).hexdigest()
        if not replace:
            return self._publish(key, uri, data, sha256, "")
        put_bytes(self._place, key, data, sha256, absent=False)
        return self._settled(key, uri, sha256, replaceable=True)

    def list(self, prefix: str = "") -> Iterator[Blob]:
        """See :meth:`BlobStore.list`: page by page, ascending by name."""
        if ".." in prefix.split("/")[:-1]:
            raise StorageError(f"{prefix!r} is not a path below the storage root")
        for found in listed(*self._place, self._prefix + prefix):
            uri = found.key.removeprefix(self._prefix)
            if not uri.startswith(FOLDER):
                yield Blob(uri, *_known(found))

    def stat(self, uri: str) -> tuple[int, int] | None:
        """See :meth:`BlobStore.stat`."""
        found = self._place.look(self._key(uri))
        return None if found is None else _known(found)

    def delete(self, uri: str) -> bool:
        """See :meth:`BlobStore.delete`."""
        key = self._key(uri)
        if self._place.look(key) is None:
            return False
        self._delete(key)
        return True

    def link(self, uri_from: str, uri_to: str) -> tuple[int, int]:
        """See :meth:`BlobStore.link`: a copy, made by the server."""
        source, key = self._look(uri_from), self._key(uri_to)
        there = self._place.look(key)
        if there is None:
            try:
                copy(self._place, source, key)
            except ObjectMissing as e:
                raise _gone(uri_from) from e
            there = self._look(uri_to)
        if there.size != source.size or self._digest(there) != self._digest(source):
            raise OutputConflict(f"{uri_to} exists with other bytes than {uri_from}")
        return _known(there)

    def quarantine(self, uri: str) -> str:
        """See :meth:`BlobStore.quarantine`. Quarantined names carry the hash of what they hold."""
        found = self._place.look(self._key(uri))
        if found is None:
            return ""
        target = self._put_aside(found, uri, self._hash(found))
        now = self._place.look(found.key)
        # One that somebody has mended meanwhile stays.
        if now is not None and now.etag == found.etag:
            self._delete(found.key)
        return target

    def sweep(self, older_than_s: float) -> int:
        """See :meth:`BlobStore.sweep`: uploads that broke off; folders of killed processes go elsewhere."""
        return abort_old(self._place, self._prefix, older_than_s)

    def link_for(self, uri: str, seconds: int) -> str:
        """An address from which anybody may read a file for a while, without an account.

        Args:
            uri: of the file; it must be there.
            seconds: how long, at most a week (S3's own limit).

        Raises:
            CorruptOutput: there is no such file.
            ConfigError: longer than a week, or less than a second.
        """
        if not 1 <= seconds <= LONGEST_LINK_S:
            raise ConfigError(
                f"a link holds for 1 second to {LONGEST_LINK_S // 86_400} days, not {seconds} s"
            )
        self._look(uri)
        place = self._place
        given = {"Bucket": place.bucket, "Key": self._key(uri)}
        return str(place.client.generate_presigned_url("get_object", Params=given, ExpiresIn=seconds))

    def features(self, afresh: bool = False) -> Features:
        """What the server can do; ``afresh`` tries it again.

        Raises:
            ObjectStoreAway: no answer.
            ObjectStoreRefused: credentials, rights, or no such bucket.
        """
        if afresh:
            self.__dict__["_features"] = probe(self._place, self._prefix, self.root.access.endpoint)
        return self._features

    @cached_property
    def _features(self) -> Features:
        return features_of(self._place, self._prefix, self.root.access.endpoint)

    @property
    def _place(self) -> Place:
        # Asked for each time: a forked process must not use its parent's client.
        return Place(client_for(self.root.access), self.root.bucket)

    @cached_property
    def _folder(self) -> Path:
        folder = own_folder("staged")
        weakref.finalize(self, _remove, folder, os.getpid())
        return folder

    def _key(self, uri: str) -> str:
        return self._prefix + checked_uri(uri)

    def _look(self, uri: str) -> Found:
        found = self._place.look(self._key(uri))
        if found is None:
            raise _gone(uri)
        return found

    def _publish(
        self, key: str, uri: str, source: bytes | Path, sha256: str, recorded: str
    ) -> tuple[int, int]:
        whole = isinstance(source, bytes)
        if isinstance(source, bytes):
            _check(hashlib.sha256(source).hexdigest(), sha256, uri)
        conditional = self._features.conditional_put if whole else self._features.conditional_parts
        there = None if whole and conditional else self._place.look(key)
        if there is None:
            if self._upload(key, source, sha256, conditional):
                return self._settled(key, uri, sha256)
            there = self._look(uri)
        existing = self._hash(there)
        if existing == sha256:
            return _known(there)
        if not recorded or existing == recorded:
            raise OutputConflict(
                f"{uri} exists with SHA-256 {existing[:16]}…, this attempt made {sha256[:16]}…:"
                " one key gave two results. Compare the two before anything else."
            )
        self._put_aside(there, uri, existing)
        now = self._place.look(key)
        if now is None or now.etag != there.etag:
            # Another attempt has mended it meanwhile: its copy is judged as any existing one.
            return self._publish(key, uri, source, sha256, "")
        self._upload(key, source, sha256, absent=False)
        return self._settled(key, uri, sha256)

    def _upload(self, key: str, source: bytes | Path, sha256: str, absent: bool) -> bool:
        if isinstance(source, bytes):
            return put_bytes(self._place, key, source, sha256, absent)
        return put_file(self._place, key, source, sha256, absent)

    def _settled(self, key: str, uri: str, sha256: str, replaceable: bool = False) -> tuple[int, int]:
        """What a later look will show of an object that was just stored, checked."""
        found = self._place.look(key)
        if found is None:
            raise CorruptOutput(f"{uri} vanished right after it was published")
        stored = found.metadata.get(SHA256, "")
        if stored and stored != sha256:
            if replaceable:
                return _known(found)
            raise OutputConflict(
                f"{uri} was replaced by SHA-256 {stored[:16]}… while {sha256[:16]}… was stored"
            )
        if stored and self._features.checks_bodies:
            return _known(found)
        try:
            whole = self._hash(found) == sha256
        except (ObjectChanged, ObjectMissing):
            if not replaceable:
                raise
            return self._settled(key, uri, sha256, replaceable)
        if not whole:
            self._delete(key)
            raise CorruptOutput(f"{uri}: what was stored is not what was sent; it was removed, run again")
        return _known(found)

    def _put_aside(self, found: Found, uri: str, sha256: str) -> str:
        target = f"{QUARANTINE}{uri}.{sha256[:16]}"
        copy(self._place, found, self._key(target))
        return target

    def _delete(self, key: str) -> None:
        with told(self._place.url(key)):
            self._place.client.delete_object(Bucket=self.root.bucket, Key=key)

    def _digest(self, found: Found) -> str:
        """SHA-256 as noted when it was stored; read, where nothing was noted."""
        return found.metadata.get(SHA256) or self._hash(found)

    def _hash(self, found: Found) -> str:
        with open_object(*self._place, found.key, found) as file:
            return sha256_of(file)[0]


def _remove(folder: Path, pid: int) -> None:
    """Of this process only: a forked child ends with its parent's finalizers."""
    if os.getpid() == pid:
        shutil.rmtree(folder, ignore_errors=True)


def _known(found: Found) -> tuple[int, int]:
    digits = int(hashlib.sha256(found.etag.encode()).hexdigest()[:15], 16) % _SECOND_NS
    return found.size, found.modified_s * _SECOND_NS + digits


def _gone(uri: str) -> CorruptOutput:
    return CorruptOutput(f"{uri} is recorded but not there")


def _check(actual: str, sha256: str, uri: str) -> None:
    if actual != sha256:
        raise CorruptOutput(f"{uri}: {actual[:16]}… was written, {sha256[:16]}… was meant")
