"""One document per file: HTML, PDF, Markdown, text, code."""

from __future__ import annotations

from collections.abc import Iterator

from dataflow_ops.errors import DocumentTooCostly
from dataflow_ops.layers.parse.records import BadRecord, Item, RawRecord, SourceFile
from dataflow_ops.layers.parse.streams import HashedReader, blocks


def whole_bytes(file: SourceFile, raw: HashedReader) -> bytes | BadRecord:
    """All decompressed bytes, or the bad record that stands for a file above ``max_document``.

    Unpacking stops at the limit, so a decompression bomb costs no more than a large document.

    Raises:
        FileError: as :func:`blocks`.
    """
    parts: list[bytes] = []
    size = 0
    for block in blocks(raw, file.path):
        size += len(block)
        if size > file.max_document:
            return BadRecord(0, _too_large(file.max_document), file.media_type, file.max_document, file.url)
        parts.append(block)
    return b"".join(parts)


def read_whole(file: SourceFile, raw: HashedReader) -> Iterator[Item]:
    """Yield the file as one record, an empty one too: it is rejected as ``empty_text``, not forgotten."""
    data = whole_bytes(file, raw)
    if isinstance(data, BadRecord):
        yield data
    else:
        yield RawRecord(0, data, file.media_type, len(data), file.url, file.charset)


def _too_large(limit: int) -> DocumentTooCostly:
    return DocumentTooCostly(f"larger than parse.max_document_mb ({limit / (1 << 20):g} MB unpacked)")
