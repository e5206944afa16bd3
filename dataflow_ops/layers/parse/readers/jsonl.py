"""JSON Lines: one object per line, UTF-8. Lines end at LF alone; U+2028 and its like are text."""

from __future__ import annotations

from collections.abc import Iterator

from dataflow_ops.errors import DocumentTooCostly, UnreadableFile
from dataflow_ops.layers.parse.readers.jsonvalue import record_or_error
from dataflow_ops.layers.parse.records import BadRecord, Item, RawRecord, SourceFile
from dataflow_ops.layers.parse.streams import HashedReader, blocks

_BOM = b"\xef\xbb\xbf"


def read_jsonl(file: SourceFile, raw: HashedReader) -> Iterator[Item]:
    """Yield the records of the file's range; a line belongs to the range in which it begins.

    Blank lines are no records. A line above ``max_document`` is isolated without being kept in memory.

    Raises:
        FileError: as :func:`blocks`, or the file is UTF-16.
    """
    for position, line, size in lines(blocks(raw, file.path), file.max_document, file.start, file.end):
        if line is None:
            limit = file.max_document / (1 << 20)
            error = DocumentTooCostly(f"the line has {size} bytes; parse.max_document_mb allows {limit:g} MB")
            yield BadRecord(position, error, file.media_type, size)
            continue
        if position == 0:
            if line.startswith((b"\xff\xfe", b"\xfe\xff")):
                raise UnreadableFile("the file is UTF-16; JSON Lines must be UTF-8", 0)
            line = line.removeprefix(_BOM)
        if not line or line.isspace():
            continue
        found = record_or_error(line)
        if isinstance(found, tuple):
            yield RawRecord(position, found[0], file.media_type, size, repairs=found[1])
        else:
            yield BadRecord(position, found, file.media_type, size)


def lines(
    stream: Iterator[bytes], limit: int, start: int = 0, end: int = -1
) -> Iterator[tuple[int, bytes | None, int]]:
    """Split a byte stream at LF.

    Args:
        stream: blocks from the beginning of the file.
        limit: bytes above which a line's content is not kept.
        start: lines that begin before this offset are left out.
        end: lines that begin at or after this offset too; -1: none are.

    Yields:
        ``(offset of the line's first byte, its bytes without LF or None if too long, its length)``.
    """
    at = 0  # offset of the current line's first byte
    kept: list[bytes] = []
    size = 0
    for block in stream:
        begin = 0
        while True:
            stop = block.find(b"\n", begin)
            piece = len(block) - begin if stop < 0 else stop - begin
            if size + piece <= limit and at >= start:
                kept.append(block[begin : begin + piece])
            else:
                kept = []
            size += piece
            if stop < 0:
                break
            if at >= start:
                yield at, b"".join(kept) if size <= limit else None, size
            at += size + 1
            if 0 <= end <= at:
                return
            kept, size, begin = [], 0, stop + 1
    if size and at >= start:
        yield at, b"".join(kept) if size <= limit else None, size
