"""All outputs of one task while they are written: streamed, hashed, then published together."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa

from dataflow_ops.errors import StorageError, StorageFull
from dataflow_ops.protocols import OutputSpec
from dataflow_ops.storage.blob import BlobStore, Staged
from dataflow_ops.storage.disk import full_disk_named
from dataflow_ops.storage.parquet_sink import ParquetPart
from dataflow_ops.storage.slice_buffer import SPILL_BYTES, SliceBuffer
from dataflow_ops.values import Output, Slice


class TaskWriter:
    """Made by :meth:`ChunkStore.writer`. Nothing is visible to readers before :meth:`finish`.

    Args:
        blobs: where the files go.
        uris: kind -> final URI.
        specs: kind -> what it is.
        recorded: kind -> SHA-256 that state has for an output made earlier under this key.
        scratch: local folder for rows of sliced kinds beyond ``spill_bytes``.
        spill_bytes: see :class:`SliceBuffer`.
    """

    def __init__(
        self,
        blobs: BlobStore,
        uris: Mapping[str, str],
        specs: Mapping[str, OutputSpec],
        recorded: Mapping[str, str] | None = None,
        scratch: Path | None = None,
        spill_bytes: int = SPILL_BYTES,
    ) -> None:
        self._blobs = blobs
        self._uris = uris
        self._specs = specs
        self._recorded = recorded or {}
        self._scratch = scratch
        self._spill_bytes = spill_bytes
        self._staged: dict[str, Staged] = {}
        self._parts: dict[str, ParquetPart] = {}
        self._buffers: dict[str, SliceBuffer] = {}
        try:
            for kind in sorted(specs):
                self._open(kind)
        except BaseException:
            self.abort()
            raise

    def append(self, kind: str, table: pa.Table) -> None:
        """Add rows to one output.

        Raises:
            StorageError: the step declares no such kind, or the rows do not fit its schema.
            StorageFull: no space left; nothing of the attempt is left on disk.
        """
        try:
            if kind in self._parts:
                self._parts[kind].append(table)
                return
            if kind in self._buffers:
                with full_disk_named(self._uris[kind]):
                    self._buffers[kind].append(table)
                return
        except StorageFull:
            self.abort()
            raise
        raise StorageError(f"no output {kind!r} is declared; there are {', '.join(sorted(self._specs))}")

    def finish(self) -> list[Output]:
        """Publish all outputs, in ascending order of kind.

        Raises:
            OutputConflict: another attempt published other bytes under this key.
            StorageFull: no space left; what is not published is removed.
        """
        try:
            return [self._publish(kind) for kind in sorted(self._specs)]
        finally:
            self.abort()

    def abort(self) -> None:
        """Remove what was not published; harmless when repeated."""
        for kind, part in list(self._parts.items()):
            del self._parts[kind]
            part.abandon()
        for buffer in self._buffers.values():
            buffer.close()
        for kind, staged in list(self._staged.items()):
            del self._staged[kind]
            staged.discard()

    def _open(self, kind: str) -> None:
        spec = self._specs[kind]
        staged = self._blobs.stage(self._uris[kind])
        self._staged[kind] = staged
        if spec.slice_by:
            self._buffers[kind] = SliceBuffer(spec.schema, self._scratch, self._spill_bytes)
        else:
            self._parts[kind] = ParquetPart(staged, spec.schema)

    def _publish(self, kind: str) -> Output:
        staged = self._staged[kind]
        slices = tuple(self._sliced(kind) if kind in self._buffers else [self._parts.pop(kind).finish()])
        sha256 = staged.finish()
        uri = self._uris[kind]
        size, mtime_ns = self._blobs.publish(staged.path, uri, sha256, self._recorded.get(kind, ""))
        return Output(kind, uri, size, mtime_ns, sha256, sum(s.rows for s in slices), slices)

    def _sliced(self, kind: str) -> list[Slice]:
        done = []
        for name, tables in self._buffers[kind].slices():
            part = ParquetPart(self._staged[kind], self._specs[kind].schema)
            for table in tables:
                part.append(table)
            done.append(part.finish(name))
        return done
