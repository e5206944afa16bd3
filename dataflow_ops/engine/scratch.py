"""Tasks' private folders on local disk, and what is left of those of killed processes."""

from __future__ import annotations

import os
import re
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dataflow_ops.engine.context import owner_is_gone, owner_name
from dataflow_ops.storage.scratch import own_folder

_NAME = re.compile(r"^dataflow-(\d+)-(\d+)-[a-z_]+-")


@contextmanager
def scratch_folder(step: str) -> Iterator[Path]:
    """A folder of this process, gone afterwards.

    Raises:
        StorageFull: the disk of temporary files is full.
    """
    path = own_folder(step)
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def sweep_scratch() -> int:
    """Remove the folders of this user's processes that were killed on this machine; returns how many."""
    host = owner_name().rsplit(":", 2)[0]
    removed = 0
    for entry in os.scandir(tempfile.gettempdir()):
        match = _NAME.match(entry.name)
        if match is None or not owner_is_gone(f"{host}:{match[1]}:{match[2]}"):
            continue
        try:
            status = entry.stat(follow_symlinks=False)
        except FileNotFoundError:  # another run of this machine sweeps too
            continue
        if stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid():
            shutil.rmtree(entry.path, ignore_errors=True)
            removed += 1
    return removed
