"""How much room goes with a file."""

from __future__ import annotations

import os

from dataflow_ops.storage.blob import BlobStore
from dataflow_ops.storage.cold import COLD


def freed_by(blobs: BlobStore, uri: str) -> int:
    """Bytes that deleting a file gives back: none while it has another name, as shards of versions do.

    A file that is being moved lies in both tiers.
    """
    path = blobs.local_path(uri)
    if path is not None:
        return sum(_alone(str(one)) for one in {path, blobs.local_path(f"{COLD}/{uri}")})
    found = blobs.stat(uri)
    return found[0] if found else 0


def _alone(path: str) -> int:
    try:
        status = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return 0
    return status.st_size if status.st_nlink == 1 else 0
