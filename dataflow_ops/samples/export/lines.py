"""JSON lines into a staged file: equal records give equal bytes, compressed or not."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Mapping
from typing import Any, BinaryIO, Final, Protocol, cast

import zstandard

from dataflow_ops.storage.blob import Staged


class _Writer(Protocol):
    def write(self, data: bytes) -> Any: ...

    def close(self) -> None: ...


class _Plain:
    def __init__(self, staged: Staged) -> None:
        self._staged = staged

    def write(self, data: bytes) -> None:
        self._staged.write(data)

    def close(self) -> None:
        pass


def _gz(staged: Staged) -> _Writer:
    # No name and no time in the header: they would differ from run to run.
    return gzip.GzipFile(filename="", mode="wb", compresslevel=6, fileobj=cast("BinaryIO", staged), mtime=0)


def _zst(staged: Staged) -> _Writer:
    compressor = zstandard.ZstdCompressor(level=3, write_checksum=True, write_content_size=False)
    return cast("_Writer", compressor.stream_writer(cast("BinaryIO", staged), closefd=False))


WRITERS: Final[Mapping[str, tuple[str, Callable[[Staged], _Writer]]]] = {
    "none": ("jsonl", _Plain),
    "gz": ("jsonl.gz", _gz),
    "zst": ("jsonl.zst", _zst),
}
"""Compression → suffix of a shard, and what writes it."""

_ENCODER: Final = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(", ", ": "))


class Lines:
    """Objects into one staged file, a line each.

    Args:
        staged: the file.
        compression: a name in :data:`WRITERS`.
    """

    def __init__(self, staged: Staged, compression: str) -> None:
        self._staged = staged
        self._writer = WRITERS[compression][1](staged)
        self._held: list[bytes] = []
        self.records = 0

    def add(self, record: Mapping[str, Any]) -> None:
        """Write one object; its keys stay in their order.

        Raises:
            StorageFull: no space left.
        """
        line = _ENCODER.encode(record)
        try:
            self._held.append(line.encode())
        except UnicodeEncodeError:  # metadata may hold a lone surrogate, which only an escape can write
            self._held.append(json.dumps(record, allow_nan=False).encode())
        self.records += 1
        if len(self._held) >= 1000:
            self._flush()

    def finish(self) -> str:
        """Close; the file's hex SHA-256."""
        self._flush()
        self._writer.close()
        return self._staged.finish()

    def _flush(self) -> None:
        if self._held:
            self._writer.write(b"\n".join(self._held) + b"\n")
            self._held.clear()
