"""Slices of files that are not on this machine: brought here whole, or read in ranges."""

from __future__ import annotations

import hashlib
import io
import mmap
import shutil
import tempfile
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Final

import pyarrow as pa

from dataflow_ops.errors import CorruptOutput
from dataflow_ops.storage.blob import BlobStore
from dataflow_ops.storage.disk import full_disk_named
from dataflow_ops.storage.scratch import own_folder
from dataflow_ops.values import Output, Slice

IN_ONE: Final = 1 << 20
"""Up to so many bytes a slice is asked for whole, though only some of its columns are wanted."""
IN_MEMORY: Final = 16 << 20
"""Larger slices are brought to local disk and mapped, so that they take no memory."""
_BLOCK: Final = 4 << 20


def brought(blobs: BlobStore, output: Output, part: Slice, verify: bool) -> pa.Buffer:
    """The bytes of a slice, hashed on their way.

    Raises:
        CorruptOutput: the file is gone or too short, or (``verify``) the bytes do not hash as recorded.
        StorageFull: no room for it in the folder of temporary files.
    """
    digest = hashlib.sha256()
    if part.length <= IN_MEMORY:
        data = blobs.read(output.uri, part.offset, part.length)
        digest.update(data)
        buffer = pa.py_buffer(data)
    else:
        # Without a name from the beginning: nothing is left of it, however this process ends.
        with tempfile.TemporaryFile() as file, full_disk_named(f"{output.uri} to {tempfile.gettempdir()}"):
            for block in _blocks(blobs, output, part):
                digest.update(block)
                file.write(block)
            file.flush()
            buffer = pa.py_buffer(mmap.mmap(file.fileno(), part.length, access=mmap.ACCESS_READ))
    if verify and digest.hexdigest() != part.sha256:
        raise CorruptOutput(f"{output.uri}, slice {part.name!r}: the bytes do not hash to what was recorded")
    return buffer


def _blocks(blobs: BlobStore, output: Output, part: Slice) -> Iterator[bytes]:
    with blobs.open(output.uri) as file:
        file.seek(part.offset)
        left = part.length
        while left:
            block = file.read(min(left, _BLOCK))
            if not block:
                raise CorruptOutput(
                    f"{output.uri} ends at byte {part.offset + part.length - left};"
                    f" {part.offset + part.length} were recorded"
                )
            left -= len(block)
            yield block


class PartFile(io.RawIOBase):
    """A stretch of a file as a file of its own, which it closes.

    Args:
        file: seekable.
        start: first byte.
        length: how many.
    """

    def __init__(self, file: BinaryIO, start: int, length: int) -> None:
        self._file = file
        self._start = start
        self._length = length
        self._at = 0

    def readable(self) -> bool:
        """Always."""
        return True

    def seekable(self) -> bool:
        """Always."""
        return True

    def tell(self) -> int:
        """Where the next read begins."""
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move."""
        self._at = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._length}[whence] + offset
        return self._at

    def readinto(self, into: Any) -> int:
        """Fill ``into``, except at the end."""
        target = memoryview(into).cast("B")
        count = max(0, min(len(target), self._length - self._at))
        self._file.seek(self._start + self._at)
        data = self._file.read(count)
        target[: len(data)] = data
        self._at += len(data)
        return len(data)

    def close(self) -> None:
        """Close the file, too."""
        self._file.close()
        super().close()


@contextmanager
def local_copy(blobs: BlobStore, uri: str, folder: Path) -> Iterator[Path]:
    """A file's path on this machine: its own, or that of a copy which is gone afterwards.

    Args:
        blobs: where the file is.
        uri: its name.
        folder: where a copy is put.

    Raises:
        CorruptOutput: there is no such file.
        StorageFull: no room for the copy.
    """
    path = blobs.local_path(uri)
    if path is not None:
        yield path
        return
    copy = folder / f"copy_{uuid.uuid4().hex}{Path(uri).suffix}"
    try:
        _copy(blobs, uri, copy)
        yield copy
    finally:
        copy.unlink(missing_ok=True)


@contextmanager
def local_folder(blobs: BlobStore, root: object, folders: Sequence[str]) -> Iterator[Path]:
    """A root on this machine with these folders: the root itself, or a copy of them that is gone afterwards.

    Args:
        blobs: the store.
        root: where it is; a path, if that is on this machine.
        folders: whole folders below it.

    Raises:
        StorageFull: no room for the copy.
    """
    if isinstance(root, Path):
        yield root
        return
    copy = own_folder("brought")
    try:
        for folder in folders:
            for blob in blobs.list(f"{folder}/"):
                path = copy / blob.uri
                path.parent.mkdir(parents=True, exist_ok=True)
                _copy(blobs, blob.uri, path)
        yield copy
    finally:
        shutil.rmtree(copy, ignore_errors=True)


def _copy(blobs: BlobStore, uri: str, to: Path) -> None:
    with full_disk_named(f"{uri} to {to.parent}"), blobs.open(uri) as source, open(to, "wb") as file:
        shutil.copyfileobj(source, file, _BLOCK)
