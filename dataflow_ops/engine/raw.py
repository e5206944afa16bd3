"""Raw bytes: source files where they lie, and what fetch brought."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
import uuid
from collections.abc import Iterable
from typing import BinaryIO

from dataflow_ops.errors import ConfigError, CorruptOutput
from dataflow_ops.layers.ingest.sources import open_path
from dataflow_ops.layers.ingest.sources.roots import locate
from dataflow_ops.settings import JobSettings
from dataflow_ops.storage.blob import BlobStore


class RawStore:
    """Opens source files and keeps fetched blobs under ``raw/<sha256>``."""

    def __init__(self, settings: JobSettings, blobs: BlobStore) -> None:
        self._sources = {s.source_id: s for s in settings.sources}
        self._blobs = blobs

    def open(self, source_id: str, path: str, location: str) -> BinaryIO:
        """Open for reading, seekable.

        Raises:
            OSError: the file vanished or may not be read.
        """
        if location:
            return self._blobs.open(location)
        if source_id not in self._sources:
            raise ConfigError(f"source '{source_id}' is not in the job any more")
        source = self._sources[source_id]
        where = locate(source, path)
        if not stat.S_ISREG(os.stat(where).st_mode):
            # Opening a named pipe that took a file's place would wait for ever.
            raise OSError(errno.EINVAL, "not a regular file any more", str(where))
        return open_path(source, path)

    def store(self, data: Iterable[bytes], mark: str = "") -> tuple[str, str, int]:
        """Store bytes durably under their own hash; storing them twice is one blob.

        Args:
            data: the bytes.
            mark: what they are of; remembered for :meth:`known`, unless it is ``""``.
        """
        digest, size = hashlib.sha256(), 0
        staged = self._blobs.stage(f"raw/incoming/{uuid.uuid4().hex}")
        try:
            for piece in data:
                digest.update(piece)
                size += len(piece)
                staged.write(piece)
            staged.finish()
            sha = digest.hexdigest()
            uri = f"raw/{sha[:2]}/{sha}"
            # A blob that does not hash to its own name has rotted: put aside, replaced.
            self._blobs.publish(staged.path, uri, sha, recorded=sha)
        finally:
            staged.discard()
        if mark:
            self._blobs.put(_note(mark), uri.encode(), replace=True)
        return uri, sha, size

    def known(self, mark: str) -> str:
        """Where bytes of that mark were stored; ``""`` where none were, or they are gone."""
        try:
            uri = self._blobs.read(_note(mark)).decode()
        except CorruptOutput:
            return ""
        return uri if self._blobs.stat(uri) is not None else ""


def _note(mark: str) -> str:
    name = hashlib.sha256(mark.encode("utf-8", "surrogateescape")).hexdigest()
    return f"raw/marks/{name[:2]}/{name}"
