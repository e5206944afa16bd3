"""Parts of large files: where they may be cut, and what identifies a part.

A part of a plain JSONL file is a byte range that begins at the start of a line and ends after one, so its
bytes are its records. A part of a Parquet file is a range of row groups. Shared by ingest, which cuts and
hashes, and parse, which checks that hash before reading.
"""

from __future__ import annotations

import hashlib
import io
from typing import Any, BinaryIO, cast

import pyarrow as pa
import pyarrow.parquet as pq

from dataflow_ops.errors import SourceChanged, UnreadableFile
from dataflow_ops.media import JSONL, PARQUET, PARQUET_EXPANSION, media_of

_BLOCK = 1 << 20


def is_splittable(path: str, media_type: str) -> bool:
    """Whether the format lets a reader begin in the middle: Parquet, and JSONL that is not compressed."""
    return media_type == PARQUET or (media_type == JSONL and not media_of(path).codec)


_NO_LINES = (b"\xff\xfe", b"\xfe\xff", b"\x1f\x8b", b"BZh", b"\x28\xb5\x2f\xfd", b"\xfd7zXZ\x00")
"""Starts of files that are not lines of UTF-8 whatever their name says: UTF-16, and compressed ones. They are
read, or refused, as a whole: a part of one can't be told from text."""


def cuts(file: BinaryIO, path: str, media_type: str, size: int, limit: int) -> list[int]:
    """Starts of the parts of a large file, the first being 0; ``[0]`` when it stays whole.

    Args:
        file: the file, seekable.
        path: its name, for the format.
        media_type: its type.
        size: its bytes.
        limit: most unpacked bytes of a part.

    Raises:
        UnreadableFile: a Parquet file without a readable footer.
    """
    if not is_splittable(path, media_type):
        return [0]
    if media_type == PARQUET:
        return (
            _row_group_cuts(file, max(1, limit // PARQUET_EXPANSION))
            if size * PARQUET_EXPANSION > limit
            else [0]
        )
    file.seek(0)
    if file.read(6).startswith(_NO_LINES):
        return [0]
    return _line_cuts(file, size, limit)


def range_sha256(file: BinaryIO, media_type: str, start: int = 0, end: int = -1) -> tuple[str, int]:
    """Hash what a part consists of, in bounded memory.

    Args:
        file: the whole file, seekable.
        media_type: decides what ``start`` and ``end`` count: row groups for Parquet, else bytes.
        start: first byte or row group.
        end: exclusive; -1: to the end of the file.

    Returns:
        ``(hex SHA-256, bytes hashed)``: of the whole file for (0, -1); of the bytes of the range for
        JSONL; of the bytes of the row groups followed by the file's footer for Parquet.

    Raises:
        UnreadableFile: a Parquet file without a readable footer, or with fewer row groups.
    """
    digest = hashlib.sha256()
    if (start, end) == (0, -1):
        return digest_of(file, digest, 0, -1)
    if media_type != PARQUET:
        return digest_of(file, digest, start, end)
    low, high, footer = _row_group_span(file, start, end)
    _, spanned = digest_of(file, digest, low, high)
    name, footed = digest_of(file, digest, footer, -1)
    return name, spanned + footed


class Part(io.RawIOBase):
    """The bytes ``start … end`` of a file, read once from front to back as a file of their own.

    Args:
        file: the whole file, seekable.
        start: first byte.
        end: exclusive; -1: to the end.
    """

    def __init__(self, file: BinaryIO, start: int, end: int) -> None:
        self._file = file
        self._left = end - start if end >= 0 else -1
        file.seek(start)

    def readable(self) -> bool:
        """Always."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill as much of a buffer as there is."""
        view = memoryview(buffer)
        wanted = len(view) if self._left < 0 else min(len(view), self._left)
        data = self._file.read(wanted)
        view[: len(data)] = data
        if self._left >= 0:
            self._left -= len(data)
        return len(data)


def part_of(
    file: BinaryIO, path: str, media_type: str, start: int, end: int, sha256: str
) -> tuple[BinaryIO, str]:
    """What to read for one part, and what the bytes read must hash to.

    Args:
        file: the whole file, seekable.
        path: its name, for messages.
        media_type: decides what ``start`` and ``end`` count.
        start: first byte or row group.
        end: exclusive; -1: to the end.
        sha256: as recorded by fetch (see :func:`range_sha256`).

    Returns:
        The whole file with the same hash for (0, -1); for JSONL a :class:`Part` with the same hash, whose
        first byte is byte ``start`` of the file; else the file, its part checked already, with ``""``.

    Raises:
        SourceChanged: the part, checked here, does not hash to ``sha256``.
        UnreadableFile: as :func:`range_sha256`.
    """
    if (start, end) == (0, -1):
        return file, sha256
    if media_type == JSONL:
        return cast("BinaryIO", Part(file, start, end)), sha256
    found, _ = range_sha256(file, media_type, start, end)
    if sha256 and found != sha256:
        raise SourceChanged(f"{path}: the part from {start} to {end} changed after it was fetched")
    file.seek(0)
    return file, ""


def digest_of(file: BinaryIO, digest: hashlib._Hash, start: int, end: int) -> tuple[str, int]:
    """Feed bytes ``start … end`` (-1: to the end) into a hash; ``(hex digest so far, bytes fed)``."""
    file.seek(start)
    done = 0
    while end < 0 or done < end - start:
        block = file.read(_BLOCK if end < 0 else min(_BLOCK, end - start - done))
        if not block:
            break
        digest.update(block)
        done += len(block)
    return digest.hexdigest(), done


def _line_cuts(file: BinaryIO, size: int, limit: int) -> list[int]:
    starts = [0]
    nominal = limit
    while nominal < size:
        at = _line_start(file, nominal)
        if at >= size:
            break
        if at > starts[-1]:
            starts.append(at)
        nominal = max(nominal, at) // limit * limit + limit
    return starts


def _line_start(file: BinaryIO, at: int) -> int:
    """The first byte at or after ``at`` that begins a line (or the end of the file)."""
    file.seek(at - 1)
    position = at - 1
    while block := file.read(_BLOCK):
        found = block.find(b"\n")
        if found >= 0:
            return position + found + 1
        position += len(block)
    return position


def _row_group_cuts(file: BinaryIO, limit: int) -> list[int]:
    metadata = _metadata(file)
    starts, held = [0], 0
    for i in range(metadata.num_row_groups):
        group = metadata.row_group(i)
        stored = sum(group.column(c).total_compressed_size for c in range(group.num_columns))
        if held and held + stored > limit:
            starts.append(i)
            held = 0
        held += stored
    return starts


def _row_group_span(file: BinaryIO, start: int, end: int) -> tuple[int, int, int]:
    metadata = _metadata(file)
    end = metadata.num_row_groups if end < 0 else end
    if not 0 <= start < end <= metadata.num_row_groups:
        raise UnreadableFile(f"it has {metadata.num_row_groups} row groups, {start} to {end} were listed")
    low, high = 1 << 62, 0
    for i in range(start, end):
        for c in range(metadata.num_columns):
            column = metadata.row_group(i).column(c)
            pages = [
                column.data_page_offset,
                *([column.dictionary_page_offset] if column.has_dictionary_page else []),
            ]
            low = min(low, *pages)
            high = max(high, min(pages) + column.total_compressed_size)
    size = file.seek(0, 2)
    # The file ends with the footer, its length in 4 bytes, and "PAR1".
    return low, high, size - metadata.serialized_size - 8


def _metadata(file: BinaryIO) -> pq.FileMetaData:
    file.seek(0)
    try:
        return pq.read_metadata(file)
    except (pa.ArrowInvalid, OSError) as e:
        raise UnreadableFile(f"no Parquet footer can be read: {e}") from e
