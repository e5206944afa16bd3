"""Folders on local disk that belong to one process; ``engine/scratch.py`` sweeps those of killed ones."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import psutil

from dataflow_ops.storage.disk import full_disk_named


def own_folder(what: str) -> Path:
    """A new folder below the system's temporary one (``TMPDIR``), named after this process.

    Args:
        what: lower-case letters and underscores.

    Raises:
        StorageFull: the disk of temporary files is full.
    """
    started = int(psutil.Process().create_time() * 100)
    with full_disk_named("temporary files"):
        return Path(tempfile.mkdtemp(prefix=f"dataflow-{os.getpid()}-{started}-{what}-"))
