"""How much room goes with a file."""

from __future__ import annotations

import os

from dataflow_ops.storage.blob import BlobStore


def freed_by(blobs: BlobStore, uri: str) -> int:
    """Bytes that deleting a file gives back: none while it has another name, as shards of versions do."""
    path = blobs.local_path(uri)
    try:
        if path is not None:
            status = os.stat(path)
            return status.st_size if status.st_nlink == 1 else 0
    except FileNotFoundError:
        return 0
    found = blobs.stat(uri)
    return found[0] if found else 0
