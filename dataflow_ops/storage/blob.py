"""What the platform asks of a place that keeps bytes: a folder, or a bucket."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple, Protocol

from dataflow_ops.errors import StorageError

TEMPORARY = ".tmp_"
"""Marks names that no reader ever sees: ``<final>.tmp_<pid>_<timestamp>``."""

QUARANTINE = "quarantine/"
"""Where copies go that do not match their recorded hash."""

HASH_BLOCK = 1 << 20


class Blob(NamedTuple):
    """One stored file: its URI (relative to the root, forward slashes), bytes, modification time."""

    uri: str
    size: int
    mtime_ns: int


class BlobStore(Protocol):
    """Published or absent: under a final name there is a whole file, or nothing.

    URIs are relative paths with forward slashes. Methods that publish give back ``(size, mtime_ns)`` as
    a later :meth:`stat` will.
    """

    def read(self, uri: str, offset: int = 0, length: int | None = None) -> bytes:
        """Bytes ``offset … offset + length`` (to the end when None).

        Raises:
            CorruptOutput: there is no such file, or it ends before the range does.
        """

    def open(self, uri: str) -> BinaryIO:
        """A seekable file for reading.

        Raises:
            CorruptOutput: there is no such file.
        """

    def local_path(self, uri: str) -> Path | None:
        """Where the bytes can be memory-mapped, or None for a store that is not on this machine."""

    def stage(self, uri: str) -> Staged:
        """A file to write into, to be given to :meth:`publish` under this URI, or discarded.

        Raises:
            StorageFull: no space left.
        """

    def publish(self, staged: Path, uri: str, sha256: str, recorded: str = "") -> tuple[int, int]:
        """Make a finished local file durable under its final name, if that name is absent.

        The staged file is gone afterwards, whatever happens. A final file with the same bytes is adopted.

        Args:
            staged: the file (from :meth:`stage`, or any local file).
            uri: final name.
            sha256: hex digest that the staged bytes must have.
            recorded: what state says an existing final file hashes to. If it does not, it is moved to
                quarantine and replaced.

        Raises:
            CorruptOutput: the staged bytes do not hash to ``sha256``.
            OutputConflict: a final file with other bytes, not contradicted by ``recorded``.
            StorageFull: no space left; nothing was published.
        """

    def put(self, uri: str, data: bytes, replace: bool = False) -> tuple[int, int]:
        """Publish a few bytes under the same guarantees; ``replace`` swaps an existing file atomically."""

    def list(self, prefix: str = "") -> Iterator[Blob]:
        """Every published file whose URI starts with ``prefix``, in one pass, in no promised order.

        What lies in the cold tier of a store that has one is read by its usual name, and listed with
        ``cold/`` before it.
        """

    def stat(self, uri: str) -> tuple[int, int] | None:
        """``(size, mtime_ns)``, or None when there is no such file."""

    def delete(self, uri: str) -> bool:
        """Remove a file; False when there was none."""

    def link(self, uri_from: str, uri_to: str) -> tuple[int, int]:
        """Give a published file a second name without copying where possible, if that name is absent.

        Raises:
            CorruptOutput: the source is gone.
            OutputConflict: the second name exists with other bytes.
        """

    def quarantine(self, uri: str) -> str:
        """Move a broken file out of the way; returns where to, ``""`` when there was none."""

    def sweep(self, older_than_s: float) -> int:
        """Remove temporaries that nobody has written to for so long; returns how many."""


class Staged(Protocol):
    """A file being written: hashes what passes through."""

    @property
    def path(self) -> Path:
        """Where it lies."""

    @property
    def size(self) -> int:
        """Bytes written so far."""

    def write(self, data: bytes | memoryview) -> int:
        """Append.

        Raises:
            StorageFull: no space left.
        """

    def sha256(self) -> str:
        """Hex SHA-256 of all that was written so far."""

    def finish(self) -> str:
        """Close and return the hex SHA-256 of all that was written."""

    def discard(self) -> None:
        """Close and remove; harmless when repeated or after publishing."""


def sha256_of(file: BinaryIO) -> tuple[str, int]:
    """Hex SHA-256 and byte count from the file's position to its end, in bounded memory."""
    digest = hashlib.sha256()
    buffer = bytearray(HASH_BLOCK)
    view = memoryview(buffer)
    size = 0
    while n := file.readinto(view):  # type: ignore[attr-defined]
        digest.update(view[:n])
        size += n
    return digest.hexdigest(), size


def checked_uri(uri: str) -> str:
    """The URI itself.

    Raises:
        StorageError: it is empty, absolute, leaves the root, or ends like a temporary.
    """
    parts = uri.split("/")
    if not uri or "\x00" in uri or any(part in ("", ".", "..") for part in parts):
        raise StorageError(f"{uri!r} is not a path below the storage root")
    if TEMPORARY in parts[-1]:
        raise StorageError(f"{uri!r}: names with {TEMPORARY!r} are for unfinished files")
    return uri
