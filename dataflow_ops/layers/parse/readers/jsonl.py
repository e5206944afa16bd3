"""JSON Lines: one object per line, UTF-8. Lines end at LF alone; U+2028 and its like are text."""

from __future__ import annotations

from collections.abc import Iterator

from dataflow_ops.errors import DocumentTooCostly, UnreadableFile
from dataflow_ops.layers.parse.readers.jsonvalue import record_or_error
from dataflow_ops.layers.parse.records import BadRecord, Item, RawRecord, SourceFile
from dataflow_ops.layers.parse.streams import HashedReader, blocks

_BOM = b"\xef\xbb\xbf"
HEAD = 2_000
"""Bytes of a bad record that are kept for people."""


def read_jsonl(file: SourceFile, raw: HashedReader) -> Iterator[Item]:
    """Yield the records of the file, or of a part that begins and ends where lines do (see ``ranges``).

    Blank lines are no records. A line above ``max_document`` is isolated without being kept in memory.

    Raises:
        FileError: as :func:`blocks`, or the file is UTF-16.
    """
    # The first bytes of a part may look like anything; only whole files can be compressed.
    whole = (file.start, file.end) == (0, -1)
    stream = blocks(raw, file.path) if whole else raw.plain()
    for position, line, size in lines(stream, file.max_document, file.start):
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
        if isinstance(found, dict):
            yield RawRecord(position, found, file.media_type, size)
        else:
            yield BadRecord(position, found, file.media_type, size, head=line[:HEAD])


def lines(
    stream: Iterator[bytes], limit: int, at: int = 0, head: int = 0
) -> Iterator[tuple[int, bytes | None, int]]:
    """Split a byte stream at LF.

    Args:
        stream: blocks that begin at the start of a line.
        limit: bytes above which a line's content is not kept.
        at: offset in the file of the stream's first byte.
        head: bytes kept of a line above the limit.

    Yields:
        ``(offset of the line's first byte, its bytes without LF, its length)``. Of a line above ``limit``
        only its head; None where none was asked for.
    """
    kept: list[bytes] = []
    size = 0
    for block in stream:
        begin = 0
        while True:
            stop = block.find(b"\n", begin)
            piece = len(block) - begin if stop < 0 else stop - begin
            if size + piece <= limit:
                kept.append(block[begin : begin + piece])
            else:
                kept = [(b"".join(kept) + block[begin : begin + min(piece, head)])[:head]]
            size += piece
            if stop < 0:
                break
            yield at, b"".join(kept) if size <= limit or head else None, size
            at += size + 1
            kept, size, begin = [], 0, stop + 1
    if size:
        yield at, b"".join(kept) if size <= limit or head else None, size
