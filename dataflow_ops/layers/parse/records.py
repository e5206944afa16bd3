"""What readers hand on: raw records, records that are bad, and records that are none of parse's business."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import pyarrow as pa

from dataflow_ops.errors import DocumentError


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """The settings of one source that shape what is read from it (see ``SourceSettings``)."""

    text_field: str = "text"
    id_field: str = "id"
    url_field: str = "url"
    html_extractor: Literal["resiliparse", "trafilatura"] = "resiliparse"
    main_content: bool = True


@dataclass(frozen=True, slots=True)
class SourceFile:
    """One row of ``fetch.files``, ready to be read.

    Attributes:
        source_id: the source it belongs to.
        path: path inside the source, the identity.
        start: first byte of the part to read (Parquet: first row group).
        end: exclusive; -1 reads to the end. What is handed to a reader is that part only (Parquet: the
            whole file).
        media_type: as found by ``media.py``, never ``""``.
        charset: from the transport, else ``""``.
        url: where the source is a list of URLs, else ``""``.
        options: of its source.
        max_document: bytes above which one record is isolated instead of read.
    """

    source_id: str
    path: str
    media_type: str
    start: int = 0
    end: int = -1
    charset: str = ""
    url: str = ""
    options: SourceOptions = field(default_factory=SourceOptions)
    max_document: int = 256 << 20


@dataclass(frozen=True, slots=True)
class RawRecord:
    """A record before parsing.

    Attributes:
        position: byte offset in the decompressed file; Parquet and JSON arrays: row number.
        payload: the document's bytes, or the fields of a structured record.
        media_type: of the payload (of the container for structured records).
        size: bytes that it took up, for rates.
        url: or ``""``.
        charset: declared outside the payload (HTTP header), or ``""``.
        record_id: the user's id, or ``""``.
    """

    position: int
    payload: bytes | Mapping[str, object]
    media_type: str
    size: int
    url: str = ""
    charset: str = ""
    record_id: str = ""


@dataclass(frozen=True, slots=True)
class BadRecord:
    """A record that can't be read; becomes a dead letter, and its neighbours come through.

    ``head`` is its beginning, for people, where a reader has it.
    """

    position: int
    error: DocumentError
    media_type: str
    size: int = 0
    url: str = ""
    head: bytes = b""


@dataclass(frozen=True, slots=True)
class Skipped:
    """A record that is not parse's business (a WARC request record), counted under ``reason``."""

    position: int
    reason: str
    size: int = 0


@dataclass(frozen=True, slots=True)
class RowBatch:
    """Structured records side by side, fit to be read by columns: simple ones, all strings UTF-8.

    Attributes:
        position: of the first; the others follow one by one.
        rows: pyarrow RecordBatch.
        media_type: of the container.
        size: bytes that each took up, for rates.
    """

    position: int
    rows: Any
    media_type: str
    size: int

    def after(self, count: int) -> RowBatch:
        """Without the first so many."""
        return RowBatch(self.position + count, self.rows.slice(count), self.media_type, self.size)

    def records(self, which: Sequence[int] | None = None) -> Iterator[RawRecord]:
        """Some of the records, ascending, or all of them, one by one."""
        rows = self.rows if which is None else self.rows.take(pa.array(which, pa.int64()))
        at = range(self.rows.num_rows) if which is None else which
        for i, fields in zip(at, rows.to_pylist(), strict=True):
            yield RawRecord(self.position + i, fields, self.media_type, self.size)


Item = RawRecord | BadRecord | Skipped | RowBatch
