"""The few file operations that durability rests on, behind one seam.

Tests pass a :class:`Disk` that stops between any two of them, or that forgets what was never fsynced.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from dataflow_ops.errors import StorageFull

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})


class Disk:
    """The operating system's own operations. Each method is one step that a power cut may come before."""

    def create(self, path: Path) -> BinaryIO:
        """Open a new file for writing; fails if the name exists."""
        return open(path, "xb", buffering=0)

    def write(self, file: BinaryIO, data: bytes | memoryview) -> None:
        """Write all of ``data``."""
        view = memoryview(data)
        while view:
            view = view[file.write(view) :]

    def fsync(self, file: BinaryIO) -> None:
        """Make the file's bytes durable (not yet its name)."""
        os.fsync(file.fileno())

    def link(self, source: Path, target: Path) -> None:
        """Give the file a second name; fails if that name exists."""
        os.link(source, target)

    def replace(self, source: Path, target: Path) -> None:
        """Rename, over an existing file if there is one."""
        os.replace(source, target)

    def unlink(self, path: Path) -> None:
        """Remove a name."""
        os.unlink(path)

    def mkdir(self, path: Path) -> None:
        """Make one folder; fails if it exists."""
        os.mkdir(path)

    def fsync_dir(self, path: Path) -> None:
        """Make the names in a folder durable."""
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


@contextmanager
def full_disk_named(what: str) -> Iterator[None]:
    """Turn "no space" and "over quota" into :class:`StorageFull` that says what was being written."""
    try:
        yield
    except OSError as e:
        if e.errno in _FULL:
            raise StorageFull(f"no space left while writing {what}: free some and run again") from e
        raise
