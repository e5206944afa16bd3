"""A file of dialogues, record by record, whatever container and compression it has."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Generator
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from typing import BinaryIO, Final

from dataflow_ops import media
from dataflow_ops.errors import ConfigError, DocumentError, DocumentTooCostly, FileError
from dataflow_ops.layers.parse.readers.json_array import read_json
from dataflow_ops.layers.parse.readers.jsonl import read_jsonl
from dataflow_ops.layers.parse.readers.jsonvalue import record_or_error
from dataflow_ops.layers.parse.readers.parquet import read_parquet
from dataflow_ops.layers.parse.records import BadRecord, RawRecord, RowBatch, SourceFile
from dataflow_ops.layers.parse.streams import HashedReader, blocks
from dataflow_ops.samples.array_reader import read_array
from dataflow_ops.samples.formats import FORMATS, format_of

Opener = Callable[[str], BinaryIO]
"""Opens a path for reading bytes."""

MAX_RECORD: Final = 32 << 20
"""Bytes above which one record is refused instead of read: its parts must fit the worker several times."""
_TRIED: Final = 100
_BLOCK: Final = 1 << 20
_ARRAY: Final = "array"
_READERS: Final = {
    media.JSONL: read_jsonl,
    media.JSON: read_json,
    _ARRAY: read_array,
    media.PARQUET: read_parquet,
}


@dataclass(frozen=True, slots=True)
class Record:
    """One record of a file, or why there is none.

    Attributes:
        number: its ordinal in the file, from 0; blank lines are no records.
        fields: its keys and values; None where it can't be read.
        error: why not, or where the file breaks off.
        head: the beginning of what can't be read.
    """

    number: int
    fields: dict[str, object] | None
    error: DocumentError | FileError | None = None
    head: str = ""


def digest(path: str, opener: Opener) -> tuple[str, int]:
    """SHA-256 and size of a file."""
    found = hashlib.sha256()
    size = 0
    with closing(opener(path)) as raw:
        while block := raw.read(_BLOCK):
            found.update(block)
            size += len(block)
    return found.hexdigest(), size


def records(path: str, opener: Opener, sha256: str = "", skip: int = 0) -> Generator[Record, None, None]:
    """The records of a file from number ``skip`` on. Where it breaks off, the last one says so.

    Args:
        path: of JSON Lines, a JSON array or Parquet, plain or compressed (gz, zst, bz2, xz).
        opener: opens it.
        sha256: that its bytes had when it was registered; ``""``: not to be checked.
        skip: records that were done before.

    Raises:
        SourceChanged: the bytes are others now.
    """
    with closing(opener(path)) as raw:
        kind = _container(path, raw)
        raw.seek(0)
        reader = HashedReader(raw, path, sha256)
        file = SourceFile("", path, kind, max_document=MAX_RECORD)
        number = 0
        try:
            for item in _READERS[kind](file, reader):
                for one in item.records() if isinstance(item, RowBatch) else (item,):
                    if number >= skip:
                        if isinstance(one, RawRecord):
                            yield Record(number, one.payload)  # type: ignore[arg-type]
                        elif isinstance(one, BadRecord):
                            yield Record(number, None, _told(one.error), one.head.decode("utf-8", "replace"))
                    number += 1
        except FileError as e:
            if number >= skip:
                yield Record(number, None, e)
        reader.verify()


def _told(error: DocumentError) -> DocumentError:
    """A record that is too large is told with the limit of this place."""
    if not isinstance(error, DocumentTooCostly):
        return error
    return DocumentTooCostly(f"the record is above {MAX_RECORD >> 20} MB: split it, or leave it out")


def told_format(path: str, opener: Opener) -> str:
    """The format of a file, by the first of its records that looks like one.

    Raises:
        ConfigError: none of the first hundred does.
    """
    with closing(records(path, opener)) as found:
        for record in islice(found, _TRIED):
            name = format_of(record.fields) if record.fields is not None else None
            if name is not None:
                return name
    raise ConfigError(
        f"{path}: no record at its beginning looks like a dialogue ({', '.join(FORMATS)});"
        " correct the file, or say what it is with --format"
    )


def _container(path: str, raw: BinaryIO) -> str:
    """What the file is, by its first bytes; its name may lie."""
    head = raw.read(4)
    raw.seek(0)
    if head == b"PAR1":
        return media.PARQUET
    try:
        start = next(blocks(HashedReader(raw, path, ""), path), b"")
    except FileError:
        return media.JSONL  # which meets the same fault, and tells it
    body = start.removeprefix(b"\xef\xbb\xbf").lstrip()
    if body.startswith(b"["):
        return _ARRAY
    first = body.split(b"\n", 1)[0]
    # One object over many lines, where the name says so; else JSON Lines with a first line that is broken.
    pretty = media.media_of(path).media_type == media.JSON and isinstance(record_or_error(first), Exception)
    return media.JSON if pretty and body.startswith(b"{") else media.JSONL
