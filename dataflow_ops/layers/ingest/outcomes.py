"""What became of one listed file in ``fetch``, and the rows that tell it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import pyarrow as pa

from dataflow_ops import schema
from dataflow_ops.layers.ingest.slow import waited_for
from dataflow_ops.protocols import Side
from dataflow_ops.values import Counts, StepResult

_BLOCK = 1 << 20

Row = Mapping[str, Any]
"""A row of ``discover.files``."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one listed file: exactly one of ``file``, ``dead`` and ``skipped`` is set."""

    size: int = 0
    file: dict[str, Any] | None = None
    dead: dict[str, Any] | None = None
    skipped: str = ""


def is_whole(row: Row) -> bool:
    """Whether it is a file, not a part of one."""
    return (row["start"], row["end"]) == (0, -1)


def fetched(row: Row, own: Mapping[str, Any]) -> Outcome:
    """It is there; ``own``: what only fetch knows of it."""
    facts = {"charset": "", "url": "", "location": "", **row, **own}
    return Outcome(size=facts["size"], file={name: facts[name] for name in schema.FETCHED.names})


def dead(row: Row, error: str, message: str) -> Outcome:
    """A dead letter: the class of the error, and what it says."""
    letter = {
        "level": "file",
        "source_id": row["source_id"],
        "path": row["path"],
        "position": -1 if is_whole(row) else row["start"],
        "error": error,
        "message": message,
        "parser": "",
        "media_type": row["media_type"],
        "host": (urlsplit(row["path"]).hostname or "") if "://" in row["path"] else "",
    }
    return Outcome(dead=letter)


def result(done: Sequence[Outcome], cursor: int) -> StepResult:
    """Some outcomes as a result of the step."""
    files = [o.file for o in done if o.file is not None]
    letters = [o.dead for o in done if o.dead is not None]
    skipped: dict[str, int] = {}
    for outcome in done:
        if outcome.skipped:
            skipped[outcome.skipped] = skipped.get(outcome.skipped, 0) + 1
    counts = Counts(len(done), len(files), 0, len(letters), skipped, len(files), sum(o.size for o in done))
    outputs = {
        "files": pa.Table.from_pylist(files, schema=schema.FETCHED),
        "dead": pa.Table.from_pylist(letters, schema=schema.DEAD),
    }
    return StepResult(outputs, counts, cursor=cursor)


@dataclass(frozen=True, slots=True)
class Kept:
    """Bytes that an earlier fetch brought and stored, read again and found to be whole."""

    location: str
    sha256: str
    size: int
    head: bytes


def mark_of(row: Row, version: int) -> str:
    """What a listed file's bytes are of, for sources whose lists tell whether a file changed.

    Args:
        row: of ``discover.files``.
        version: of how they are stored.
    """
    told = [version, *(row[name] for name in ("source_id", "path", "size", "etag"))]
    return json.dumps(told, ensure_ascii=False)


def kept_before(side: Side, row: Row, mark: str, head: int = 0) -> Kept | None:
    """What was brought of a file as it is listed now; None where it must be brought.

    A neighbour that changed makes the whole chunk's files be fetched again: those that did not are there.
    """
    location = side.known_raw(mark)
    if not location:
        return None
    digest, size = hashlib.sha256(), 0
    try:
        with side.open_source(row["source_id"], row["path"], location) as file:
            first = file.read(head)
            digest.update(first)
            size += len(first)
            while block := file.read(_BLOCK):
                digest.update(block)
                size += len(block)
    except OSError:
        return None
    # Bytes that rotted are brought anew, which replaces them.
    if location.rpartition("/")[2] != digest.hexdigest():
        return None
    return Kept(location, digest.hexdigest(), size, first)


def awaited(blocks: Iterator[bytes], side: Side) -> Iterator[bytes]:
    """The same blocks, with a question now and then while one is waited for."""
    while (block := waited_for(lambda: next(blocks, None), side.checkpoint)) is not None:
        yield block
