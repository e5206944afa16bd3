"""The step ``parse``: a chunk's files to text, record by record, in a fixed order."""

from __future__ import annotations

import time
import unicodedata
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any, Final

import numpy as np

from dataflow_ops import media, schema
from dataflow_ops.errors import DocumentError, FileError, ParserFailed
from dataflow_ops.layers.parse import finish as finishing
from dataflow_ops.layers.parse import normalise, too_long, wire
from dataflow_ops.layers.parse.finish import Limits, Origin, Reject
from dataflow_ops.layers.parse.guard import Ask, Guard
from dataflow_ops.layers.parse.parsers import BY_NAME, HTML_EXTRACTORS, parser_of
from dataflow_ops.layers.parse.parsers import record as records_parser
from dataflow_ops.layers.parse.parsers.base import Hints, ParsedDocument, Parser
from dataflow_ops.layers.parse.readers import ROWS_VERSION, VERSIONS, reader_of
from dataflow_ops.layers.parse.records import (
    BadRecord,
    Item,
    RawRecord,
    RowBatch,
    Skipped,
    SourceFile,
    SourceOptions,
)
from dataflow_ops.layers.parse.rows import RowBuilder
from dataflow_ops.layers.parse.streams import HashedReader
from dataflow_ops.protocols import Input, OutputSpec, Partitioning, Side
from dataflow_ops.ranges import part_of
from dataflow_ops.settings import JobSettings
from dataflow_ops.source_settings import SourceSettings
from dataflow_ops.values import StepResult

VERSION: Final = 1
FILE_SHIFT: Final = 40
"""A cursor is ``number of the file << 40 | records of it that are done``: finished files are not opened
again after a resume."""

_YIELD_ROWS: Final = 1000
_YIELD_BYTES: Final = 64 << 20
_YIELD_SECONDS: Final = 2.0
_GROUP_RECORDS: Final = 64
_GROUP_BYTES: Final = 1 << 20
"""Records handed to the guard at once: enough that a round trip costs little per document, fewer where
they are slow (PDF)."""


@dataclass(frozen=True, slots=True)
class _Read:
    """One item of a file, with the cursor that stands after it."""

    file: SourceFile
    item: Item | FileError
    cursor: int


class ParseStep:
    """Turns fetched files into documents.

    Args:
        settings: of the job.
        guard: runs the parsers that need a child process.
    """

    name = "parse"
    layer = "parse"
    partitioned_by: Partitioning = "chunk"
    inputs = (Input("fetch", "files", "same"),)
    outputs = (
        OutputSpec("text", schema.DOCUMENTS),
        OutputSpec("rejects", schema.PARSE_REJECTS),
        OutputSpec("dead", schema.DEAD),
    )

    def __init__(self, settings: JobSettings, guard: Guard) -> None:
        self._guard = guard
        clean = settings.clean
        self._rules = normalise.TextRules(
            nfc=clean.stored_text.unicode == "NFC",
            lower_case=clean.stored_text.lower_case,
            remove_control=clean.normalization.remove_control_chars,
        )
        self._limits = Limits(clean.boilerplate_filter.max_text_len, clean.on_too_long)
        self._parse = settings.parse
        self._max_document = int(settings.parse.max_document_mb * (1 << 20))
        self._options = {
            source.source_id: SourceOptions(
                source.text_field,
                _id_field(source),
                source.url_field,
                source.html_extractor,
                source.main_content,
            )
            for source in settings.sources
        }
        self._of_tables = {source.source_id for source in settings.sources if source.kind == "sql"}

    def fingerprint(self) -> Mapping[str, object]:
        """Settings, versions of readers, parsers and their libraries, and the Unicode tables."""
        return self._fingerprint(self._options)

    def fingerprint_of(self, source_id: str) -> Mapping[str, object]:
        """Of a chunk of one source: the options of other sources shape nothing in it."""
        return self._fingerprint({source_id: self._options.get(source_id, SourceOptions())})

    def _fingerprint(self, options: Mapping[str, SourceOptions]) -> Mapping[str, object]:
        plain = SourceOptions()
        # An HTML extractor that no source uses shapes nothing.
        extractors = {o.html_extractor for o in (*options.values(), plain)}
        unused = {p.name for name, p in HTML_EXTRACTORS.items() if name not in extractors}
        parsers = {name: parser for name, parser in sorted(BY_NAME.items()) if name not in unused}
        libraries = sorted({name for parser in parsers.values() for name in parser.libraries})
        return {
            "version": VERSION,
            "normalise": normalise.VERSION,
            "too_long": too_long.VERSION,
            "record": records_parser.VERSION,
            "readers": VERSIONS | ({"rows": ROWS_VERSION} if self._of_tables & options.keys() else {}),
            "parsers": {name: parser.version for name, parser in parsers.items()},
            "libraries": {name: version(name) for name in libraries},
            "unicode": unicodedata.unidata_version,
            "stored_text": [self._rules.nfc, self._rules.lower_case, self._rules.remove_control],
            "on_too_long": self._limits.on_too_long,
            "max_text_len": self._limits.max_text_len,
            "limits": [self._parse.cpu_seconds, self._parse.memory_mb, self._max_document],
            # Sources with default options are left out: adding one must not parse the others again.
            "sources": {
                source_id: [o.text_field, o.id_field, o.url_field, o.html_extractor, o.main_content]
                for source_id, o in sorted(options.items())
                if o != plain
            },
        }

    def run(self, side: Side, start: int) -> Iterator[StepResult]:
        """Yield documents, rejects and dead letters of the chunk's files, in the order of ``fetch.files``.

        Raises:
            SourceChanged: a file is no longer the one that was fetched.
        """
        builder = RowBuilder()
        group: list[_Read] = []
        group_bytes = 0
        done, given = start, start
        since = time.monotonic()
        most = _GROUP_RECORDS
        for read in self._items(side, start):
            group.append(read)
            group_bytes += 0 if isinstance(read.item, FileError) else read.item.size
            if len(group) < most and group_bytes < _GROUP_BYTES and not isinstance(read.item, RowBatch):
                continue
            began = time.monotonic()
            self._add(group, builder, side.checkpoint)
            most = _next_group(len(group), time.monotonic() - began)
            done, group, group_bytes = group[-1].cursor, [], 0
            if (
                builder.rows >= _YIELD_ROWS
                or builder.text_bytes >= _YIELD_BYTES
                or time.monotonic() - since >= _YIELD_SECONDS
            ):
                yield builder.result(done)
                given, since = done, time.monotonic()
        if group:
            self._add(group, builder, side.checkpoint)
            done = group[-1].cursor
        if done > given:
            yield builder.result(done)

    def _items(self, side: Side, start: int) -> Iterator[_Read]:
        first, records_done = start >> FILE_SHIFT, start & ((1 << FILE_SHIFT) - 1)
        for number, row in enumerate(side.table("fetch", "files").to_pylist()):
            if number < first:
                continue
            skip = records_done if number == first else 0
            file = self._file(row)
            base = number << FILE_SHIFT
            count = 0
            with closing(side.open_source(row["source_id"], row["path"], row["location"] or "")) as opened:
                broken: FileError | None = None
                raw: HashedReader | None = None
                try:
                    part, sha256 = part_of(
                        opened, file.path, file.media_type, file.start, file.end, row["sha256"] or ""
                    )
                    raw = HashedReader(part, file.path, sha256)
                    for item in reader_of(file.media_type)(file, raw):
                        records = item.rows.num_rows if isinstance(item, RowBatch) else 1
                        done, count = max(0, skip - count), count + records
                        if done < records:
                            rest = item.after(done) if isinstance(item, RowBatch) else item
                            yield _Read(file, rest, base | count)
                except FileError as e:
                    broken = e
                # Before the file's end is reported: what was read may be of a file that has changed.
                if raw is not None:
                    raw.verify()
            if broken is not None and count + 1 > skip:
                yield _Read(file, broken, base | (count + 1))

    def _file(self, row: Mapping[str, Any]) -> SourceFile:
        named = media.media_of(row["path"])
        return SourceFile(
            source_id=row["source_id"],
            path=row["path"],
            media_type=row["media_type"] or named.media_type,
            start=row["start"] or 0,
            end=-1 if row["end"] is None else row["end"],
            charset=row["charset"] or "",
            url=row["url"] or "",
            options=self._options.get(row["source_id"], SourceOptions()),
            max_document=self._max_document,
        )

    def _add(self, group: list[_Read], builder: RowBuilder, ask: Ask) -> None:
        """Parse a group and add its rows in order."""
        plans = [self._plan(read) for read in group]
        requests = [
            wire.request(parser.name, hints, read.item.payload)
            for read, (parser, hints, _) in zip(group, plans, strict=True)
            if parser is not None and parser.guarded
            if isinstance(read.item, RawRecord) and isinstance(read.item.payload, bytes)
        ]
        answers = iter(self._guard.run(requests, ask) if requests else ())
        for read, (parser, hints, origin) in zip(group, plans, strict=True):
            ask()
            item = read.item
            if isinstance(item, FileError):
                builder.add_broken_file(read.file, item)
            elif isinstance(item, RowBatch):
                self._add_batch(read.file, item, builder)
            elif isinstance(item, Skipped):
                builder.add_skipped(item.reason, item.size)
            elif isinstance(item, BadRecord):
                builder.add_dead(origin, item.error, item.size)
            elif parser is None and isinstance(item.payload, bytes):
                if read.file.media_type == media.WARC:
                    builder.add_skipped("media_type", item.size)
                else:
                    error = ParserFailed(f"no parser for media type {item.media_type!r}")
                    builder.add_dead(origin, error, item.size)
            else:
                guarded = wire.answered(next(answers)) if parser is not None and parser.guarded else None
                self._finish(read.file, item, parser, hints, origin, guarded, builder)

    def _add_batch(self, file: SourceFile, batch: RowBatch, builder: RowBuilder) -> None:
        """Add records side by side: those that are whole as they lie at once, the others one by one."""
        from dataflow_ops.layers.parse import columns  # loads numba: not where there are no tables to read

        made = columns.documents(batch, file, self._rules, self._limits)
        others = None if made is None else np.flatnonzero(~made.whole).tolist()
        builder.begin_batch()
        ends = []
        for item in batch.records(others):
            parser, hints, origin = self._plan(_Read(file, item, 0))
            self._finish(file, item, parser, hints, origin, None, builder)
            ends.append(builder.open_documents)
        if made is not None:
            chars = int(made.chars[made.whole].sum())
            builder.end_batch(made.documents, made.whole, ends, batch.size, chars)

    def _plan(self, read: _Read) -> tuple[Parser | None, Hints, Origin]:
        """Which parser reads an item, what it is told, and where the item comes from."""
        file, item = read.file, read.item
        hints = Hints(file.path, "", file.options.main_content)
        if isinstance(item, FileError | Skipped | RowBatch):
            return None, hints, _origin(file, -1, file.media_type, file.url, "", "", "")
        if isinstance(item, BadRecord):
            url = item.url or file.url
            return None, hints, _origin(file, item.position, item.media_type, url, "", "", "")
        url = item.url or file.url
        if not isinstance(item.payload, bytes):
            fields, options = item.payload, file.options
            dialogue = records_parser.is_dialogue(fields, options)
            name = records_parser.DIALOGUE_NAME if dialogue else records_parser.NAME
            url = url or records_parser.as_text(fields.get(options.url_field))
            record_id = item.record_id or records_parser.as_text(fields.get(options.id_field))
            label, kind = f"{name}@{records_parser.VERSION}", "dialogue" if dialogue else ""
            return None, hints, _origin(file, item.position, item.media_type, url, record_id, label, kind)
        in_warc = file.media_type == media.WARC
        media_type = _media_type(item.media_type, item.payload, in_warc)
        parser = parser_of(media_type, file.options.html_extractor)
        path = url if in_warc else file.path
        hints = Hints(path, item.charset, file.options.main_content)
        label, kind = (parser.label, parser.kind_hint) if parser else ("", "")
        return parser, hints, _origin(file, item.position, media_type, url, item.record_id, label, kind)

    def _finish(
        self,
        file: SourceFile,
        item: RawRecord,
        parser: Parser | None,
        hints: Hints,
        origin: Origin,
        guarded: ParsedDocument | DocumentError | None,
        builder: RowBuilder,
    ) -> None:
        try:
            if guarded is not None:
                parsed = guarded
            elif parser is not None and isinstance(item.payload, bytes):
                parsed = parser.parse(item.payload, hints)
            else:
                assert not isinstance(item.payload, bytes)
                parsed = records_parser.parse_record(item.payload, file.options)
            if isinstance(parsed, DocumentError):
                builder.add_dead(origin, parsed, item.size)
                return
            made = finishing.finish(parsed, origin, self._rules, self._limits)
        except DocumentError as e:
            builder.add_dead(origin, e, item.size)
            return
        if isinstance(made, Reject):
            builder.add_reject(origin, made, item.size)
        else:
            builder.add_documents(made, item.size)


def _id_field(source: SourceSettings) -> str:
    """The key that holds the user's id; rows of a table bring theirs, and it stands in no column twice."""
    if source.kind != "sql":
        return source.id_field
    return source.key[0] if len(source.key) == 1 else ""


def _next_group(records: int, seconds: float) -> int:
    """How many records to hand over next: what takes about as long as a result may take to be made.

    A pause in the midst of a group has the whole of it parsed anew. It shapes no output.
    """
    return max(1, min(_GROUP_RECORDS, int(records * _YIELD_SECONDS / max(seconds, 1e-6))))


def _media_type(declared: str, payload: bytes, in_warc: bool) -> str:
    """What a document is, where its type is not declared or plainly wrong.

    Untyped responses in a WARC are mostly scripts and data: only pages and PDFs are told by their bytes.
    """
    if payload.startswith(b"%PDF-"):
        return media.PDF
    if declared not in ("", "application/octet-stream"):
        return declared
    sniffed = media.sniff(payload[:512]).media_type
    return declared if in_warc and sniffed not in (media.HTML, media.PDF) else sniffed


def _origin(
    file: SourceFile, position: int, media_type: str, url: str, record_id: str, parser: str, kind: str
) -> Origin:
    return Origin(file.source_id, file.path, position, media_type, url, record_id, parser, kind)
