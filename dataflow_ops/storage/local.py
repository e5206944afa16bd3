"""A folder as a blob store: link-if-absent, fsync, and nothing half-written under a final name."""

from __future__ import annotations

import errno
import hashlib
import itertools
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from dataflow_ops.errors import CorruptOutput, OutputConflict, StorageError
from dataflow_ops.storage.blob import (
    HASH_BLOCK,
    QUARANTINE,
    TEMPORARY,
    Blob,
    checked_uri,
    sha256_of,
)
from dataflow_ops.storage.cold import COLD, ColdTier
from dataflow_ops.storage.disk import Disk, full_disk_named

_CANNOT_LINK = frozenset({errno.EXDEV, errno.EPERM, errno.EMLINK, errno.ENOTSUP})


class LocalStore:
    """A :class:`~dataflow_ops.storage.blob.BlobStore` in a folder of this machine (or a mounted one).

    What is read, and not in the folder, is looked for in its cold tier, where it has one; everything is
    written here.

    Args:
        root: the folder; made on first use.
        disk: the durable operations; tests pass one that fails on purpose.
    """

    def __init__(self, root: Path, disk: Disk | None = None) -> None:
        self.root = Path(root)
        self.cold = ColdTier(self.root)
        self._disk = disk or Disk()
        self._durable_folders: set[Path] = set()
        # Distinct for threads that share a store, too.
        self._stamps = itertools.count(time.time_ns())

    def read(self, uri: str, offset: int = 0, length: int | None = None) -> bytes:
        """See :meth:`BlobStore.read`."""
        with self.open(uri) as file:
            file.seek(offset)
            data = file.read() if length is None else file.read(length)
        if length is not None and len(data) != length:
            raise CorruptOutput(f"{uri} ends at byte {offset + len(data)}, {offset + length} were expected")
        return data

    def open(self, uri: str) -> BinaryIO:
        """See :meth:`BlobStore.open`."""
        try:
            try:
                return open(self._path(uri), "rb")
            except FileNotFoundError:
                return open(self._found(uri), "rb")
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError) as e:
            raise CorruptOutput(f"{uri} is recorded but not there") from e

    def local_path(self, uri: str) -> Path | None:
        """See :meth:`BlobStore.local_path`."""
        return self._found(uri)

    def stage(self, uri: str) -> LocalStaged:
        """See :meth:`BlobStore.stage`: a temporary in the final file's own folder."""
        with full_disk_named(uri):
            path = self._temporary(uri)
            return LocalStaged(path, uri, self._disk)

    def publish(self, staged: Path, uri: str, sha256: str, recorded: str = "") -> tuple[int, int]:
        """See :meth:`BlobStore.publish`. Verify, fsync file, link, fsync folder, drop the temporary."""
        final = self._path(uri)
        temporary = staged
        try:
            with full_disk_named(uri):
                self._make_folder(final.parent)
                if staged.parent != final.parent or TEMPORARY not in staged.name:
                    temporary = self._bring(staged, uri)
                self._verify_and_sync(temporary, uri, sha256)
                self._link_if_absent(temporary, final, uri, sha256, recorded)
                self._disk.fsync_dir(final.parent)
        finally:
            for path in {temporary, staged}:
                self._unlink(path)
        return self._known(uri)

    def put(self, uri: str, data: bytes, replace: bool = False) -> tuple[int, int]:
        """See :meth:`BlobStore.put`."""
        staged = self.stage(uri)
        try:
            staged.write(data)
            sha256 = staged.finish()
            if not replace:
                return self.publish(staged.path, uri, sha256)
            final = self._path(uri)
            with full_disk_named(uri):
                self._verify_and_sync(staged.path, uri, sha256)
                self._disk.replace(staged.path, final)
                self._disk.fsync_dir(final.parent)
            return self._known(uri)
        finally:
            staged.discard()

    def list(self, prefix: str = "") -> Iterator[Blob]:
        """See :meth:`BlobStore.list`. Folders and names that vanish meanwhile are passed over.

        What lies in the cold tier is listed under ``cold/`` only.

        Raises:
            ColdAway: that is asked for, and can't be told.
        """
        folder, _, stem = prefix.rpartition("/")
        if folder.split("/")[0] == COLD and not self.cold.exists():
            return
        if ".." in folder.split("/"):
            raise StorageError(f"{prefix!r} is not a path below the storage root")
        pending = [(str(self.root / folder), f"{folder}/" if folder else "", stem)]
        while pending:
            path, base, stem = pending.pop()
            try:
                entries = os.scandir(path)
            except (FileNotFoundError, NotADirectoryError):
                continue
            with entries:
                for entry in entries:
                    name = entry.name
                    if not name.startswith(stem) or (not base and name == COLD):
                        continue
                    if entry.is_dir(follow_symlinks=False):
                        pending.append((entry.path, f"{base}{name}/", ""))
                    elif TEMPORARY not in name:
                        try:
                            status = entry.stat()
                        except FileNotFoundError:
                            continue
                        yield Blob(base + name, status.st_size, status.st_mtime_ns)

    def stat(self, uri: str) -> tuple[int, int] | None:
        """See :meth:`BlobStore.stat`."""
        try:
            status = os.stat(self._found(uri))
        except (FileNotFoundError, NotADirectoryError):
            return None
        return status.st_size, status.st_mtime_ns

    def delete(self, uri: str) -> bool:
        """See :meth:`BlobStore.delete`; in both tiers."""
        moved = self.cold.path(uri)
        gone = moved is not None and self._unlink(moved)
        return self._unlink(self._path(uri)) or gone

    def link(self, uri_from: str, uri_to: str) -> tuple[int, int]:
        """See :meth:`BlobStore.link`: a hard link, a verified copy where the file system has none."""
        source, final = self._found(uri_from), self._path(uri_to)
        if not source.exists():
            raise CorruptOutput(f"{uri_from} is recorded but not there")
        with full_disk_named(uri_to):
            self._make_folder(final.parent)
            try:
                self._disk.link(source, final)
            except FileExistsError:
                if not final.samefile(source) and _hash(final) != _hash(source):
                    raise OutputConflict(f"{uri_to} exists with other bytes than {uri_from}") from None
            except OSError as e:
                if e.errno not in _CANNOT_LINK:
                    raise
                temporary = self._copy(source, uri_to)
                return self.publish(temporary, uri_to, _hash(source))
            self._disk.fsync_dir(final.parent)
        return self._known(uri_to)

    def quarantine(self, uri: str) -> str:
        """See :meth:`BlobStore.quarantine`. Quarantined names carry the hash of what they hold."""
        path = self._path(uri)
        try:
            target_uri = f"{QUARANTINE}{uri}.{_hash(path)[:16]}"
        except FileNotFoundError:
            return ""
        target = self._path(target_uri)
        with full_disk_named(target_uri):
            self._make_folder(target.parent)
            self._disk.replace(path, target)
            self._disk.fsync_dir(target.parent)
            self._disk.fsync_dir(path.parent)
        return target_uri

    def sweep(self, older_than_s: float) -> int:
        """See :meth:`BlobStore.sweep`."""
        oldest = time.time() - older_than_s
        removed = 0
        for folder, _, names in os.walk(self.root):
            for name in names:
                path = Path(folder, name)
                if TEMPORARY in name and os.path.lexists(path) and path.lstat().st_mtime <= oldest:
                    removed += self._unlink(path)
        return removed

    def _path(self, uri: str) -> Path:
        return self.root / checked_uri(uri)

    def _found(self, uri: str) -> Path:
        """Where a file lies: here, or in the cold tier; here, too, where it does not exist."""
        path = self._path(uri)
        return path if path.exists() else self.cold.path(uri) or path

    def _known(self, uri: str) -> tuple[int, int]:
        status = self.stat(uri)
        if status is None:
            raise CorruptOutput(f"{uri} vanished right after it was published")
        return status

    def _temporary(self, uri: str) -> Path:
        final = self._path(uri)
        self._make_folder(final.parent)
        return final.with_name(f"{final.name}{TEMPORARY}{os.getpid()}_{next(self._stamps)}")

    def _make_folder(self, folder: Path) -> None:
        """Make a folder durable up to the root, once per process.

        Folders that exist are synced too: another process may have made them and died before its fsync.
        """
        if folder in self._durable_folders and folder.is_dir():
            return
        if folder != self.root:
            self._make_folder(folder.parent)
        elif not folder.parent.is_dir():
            folder.parent.mkdir(parents=True, exist_ok=True)
        try:
            self._disk.mkdir(folder)
        except FileExistsError:
            if not folder.is_dir():
                raise
        self._disk.fsync_dir(folder.parent)
        self._durable_folders.add(folder)

    def _bring(self, staged: Path, uri: str) -> Path:
        """A temporary beside the final name for a file that was written elsewhere."""
        temporary = self._temporary(uri)
        try:
            self._disk.link(staged, temporary)
        except OSError as e:
            if e.errno not in _CANNOT_LINK:
                raise
            return self._copy(staged, uri)
        return temporary

    def _copy(self, source: Path, uri: str) -> Path:
        copy = self.stage(uri)
        try:
            with open(source, "rb") as file:
                while block := file.read(HASH_BLOCK):
                    copy.write(block)
            copy.finish()
        except BaseException:
            copy.discard()
            raise
        return copy.path

    def _verify_and_sync(self, temporary: Path, uri: str, sha256: str) -> None:
        with open(temporary, "rb") as file:
            actual, _ = sha256_of(file)
            if actual != sha256:
                raise CorruptOutput(f"{uri}: {actual[:16]}… was written, {sha256[:16]}… was meant")
            self._disk.fsync(file)

    def _link_if_absent(self, temporary: Path, final: Path, uri: str, sha256: str, recorded: str) -> None:
        try:
            self._disk.link(temporary, final)
        except FileExistsError:
            existing = _hash(final)
            if existing == sha256:
                return
            if not recorded or existing == recorded:
                raise OutputConflict(
                    f"{uri} exists with SHA-256 {existing[:16]}…, this attempt made {sha256[:16]}…:"
                    " one key gave two results. Compare the two before anything else."
                ) from None
            self.quarantine(uri)
            # Another attempt may have mended it meanwhile: then its copy is judged as any existing one.
            self._link_if_absent(temporary, final, uri, sha256, "")

    def _unlink(self, path: Path) -> bool:
        try:
            self._disk.unlink(path)
        except (FileNotFoundError, NotADirectoryError):
            return False
        return True


class LocalStaged:
    """A temporary beside the final name; see :class:`~dataflow_ops.storage.blob.Staged`."""

    def __init__(self, path: Path, uri: str, disk: Disk) -> None:
        self.path = path
        self.size = 0
        self._uri = uri
        self._disk = disk
        self._digest = hashlib.sha256()
        self._file: BinaryIO | None = disk.create(path)

    def write(self, data: bytes | memoryview) -> int:
        """See :meth:`Staged.write`."""
        if self._file is None:
            raise StorageError(f"{self._uri} is finished already")
        with full_disk_named(self._uri):
            self._disk.write(self._file, data)
        self._digest.update(data)
        length = memoryview(data).nbytes
        self.size += length
        return length

    def sha256(self) -> str:
        """See :meth:`Staged.sha256`."""
        return self._digest.hexdigest()

    def finish(self) -> str:
        """See :meth:`Staged.finish`."""
        self._close()
        return self.sha256()

    def discard(self) -> None:
        """See :meth:`Staged.discard`."""
        self._close()
        try:
            self._disk.unlink(self.path)
        except FileNotFoundError:
            return

    def _close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


def _hash(path: Path) -> str:
    with open(path, "rb") as file:
        return sha256_of(file)[0]
