"""Half-done work of a task, kept for its next attempt: Arrow stretches under ``staging/<key>/<epoch>/``."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from dataflow_ops.errors import CorruptOutput
from dataflow_ops.storage.blob import Blob, BlobStore

_NAME = re.compile(r"^staging/[^/]+/(\d+)/rows_(\d+)_(\d+)_([0-9a-f]{16})\.arrow$")
_LENGTH_BYTES = 8


@dataclass(frozen=True, slots=True)
class Stretch:
    """Finished rows ``first_row … last_row`` (exclusive) of a task.

    Attributes:
        first_row: row, or cursor value, where the stretch begins.
        last_row: first row, or cursor value, after it.
        tables: kind -> rows.
        facts: what the attempt noted beside them (counts, rule hits, metrics).
    """

    first_row: int
    last_row: int
    tables: Mapping[str, pa.Table]
    facts: Mapping[str, Any] = field(default_factory=dict)


class Staging:
    """Saves and finds the stretches of one task.

    Args:
        blobs: where they lie.
        key: the task's key.
    """

    def __init__(self, blobs: BlobStore, key: str) -> None:
        self._blobs = blobs
        self._prefix = f"staging/{key}/"
        self.damaged: list[str] = []
        """Stretches that :meth:`resume` found broken and passed over; their rows are made again."""

    def save(
        self,
        epoch: int,
        first_row: int,
        last_row: int,
        tables: Mapping[str, pa.Table],
        facts: Mapping[str, Any] | None = None,
    ) -> str:
        """Keep a stretch durably; returns its URI.

        Raises:
            StorageFull: no space left.
        """
        data = _pack(tables, facts or {})
        digest = hashlib.sha256(data).hexdigest()
        uri = f"{self._prefix}{epoch}/rows_{first_row}_{last_row}_{digest[:16]}.arrow"
        self._blobs.put(uri, data)
        return uri

    def resume(self, upto_row: int | None = None) -> Iterator[Stretch]:
        """Yield verified stretches that join without a gap from row 0.

        Args:
            upto_row: the cursor that state has; stretches that go beyond it are not used. None: no limit.
        """
        by_start: dict[int, list[tuple[int, int, Blob]]] = {}
        for blob in self._blobs.list(self._prefix):
            match = _NAME.match(blob.uri)
            if match and (upto_row is None or int(match[3]) <= upto_row):
                by_start.setdefault(int(match[2]), []).append((int(match[3]), int(match[1]), blob))
        at = 0
        while at in by_start:
            for last, _, blob in sorted(by_start.pop(at), reverse=True):
                stretch = self._load(blob, at, last)
                if stretch is not None:
                    yield stretch
                    at = last
                    break

    def clear(self) -> int:
        """Remove all stretches of the task, of every epoch; returns how many."""
        return sum(self._blobs.delete(blob.uri) for blob in list(self._blobs.list(self._prefix)))

    def _load(self, blob: Blob, first: int, last: int) -> Stretch | None:
        try:
            data = self._blobs.read(blob.uri)
        except CorruptOutput:
            self.damaged.append(blob.uri)
            return None
        if hashlib.sha256(data).hexdigest()[:16] not in blob.uri:
            self.damaged.append(blob.uri)
            return None
        tables, facts = _unpack(data)
        return Stretch(first, last, tables, facts)


def _pack(tables: Mapping[str, pa.Table], facts: Mapping[str, Any]) -> bytes:
    """Length of the header (8 bytes, little endian), JSON header, one Arrow stream for each kind."""
    streams = []
    for kind in sorted(tables):
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, tables[kind].schema) as writer:
            writer.write_table(tables[kind])
        streams.append((kind, sink.getvalue()))
    header = json.dumps(
        {"kinds": [[kind, stream.size] for kind, stream in streams], "facts": dict(facts)}, sort_keys=True
    ).encode()
    # Arrow wants its buffers on 8-byte bounds.
    header += b" " * (-len(header) % 8)
    return b"".join([len(header).to_bytes(_LENGTH_BYTES, "little"), header, *(s for _, s in streams)])


def _unpack(data: bytes) -> tuple[dict[str, pa.Table], dict[str, Any]]:
    length = int.from_bytes(data[:_LENGTH_BYTES], "little")
    header = json.loads(data[_LENGTH_BYTES : _LENGTH_BYTES + length])
    at = _LENGTH_BYTES + length
    buffer = pa.py_buffer(data)
    tables = {}
    for kind, size in header["kinds"]:
        tables[kind] = pa.ipc.open_stream(buffer.slice(at, size)).read_all()
        at += size
    return tables, header["facts"]
