"""Bringing objects of a bucket, for ``fetch``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain

from dataflow_ops.errors import FileError, ObjectChanged, ObjectMissing, SourceChanged, UnreadableFile
from dataflow_ops.layers.ingest.outcomes import (
    Outcome,
    Row,
    awaited,
    dead,
    fetched,
    kept_before,
    mark_of,
)
from dataflow_ops.layers.ingest.outside import Bucket
from dataflow_ops.layers.ingest.sources.jsonfiles import LOOK, judged
from dataflow_ops.layers.ingest.sources.names import unescape
from dataflow_ops.layers.ingest.sources.s3 import Root, root_in
from dataflow_ops.media import Media, media_of, sniff
from dataflow_ops.protocols import Side
from dataflow_ops.source_settings import SourceSettings

VERSION = 1
_HEAD = 512


def object_bringer(source: SourceSettings, bucket: Bucket) -> Callable[[Side, Row], Outcome]:
    """A function that brings listed objects of a source; where they lie is found out once."""
    root = root_in(source, bucket)
    return lambda side, row: _bring(side, row, source, bucket, root)


def _bring(side: Side, row: Row, source: SourceSettings, bucket: Bucket, root: Root) -> Outcome:
    """Fetch one object and keep it, unless it was fetched before as it is listed now.

    One whose first bytes say that nothing can read it is not kept.

    Raises:
        ObjectStoreAway: the store does not answer: no fault of the object.
        ObjectStoreRefused: it lets nobody in.
    """
    mark = mark_of(row, VERSION)
    kept = kept_before(side, row, mark, LOOK + 1)
    try:
        key = root.prefix + unescape(row["path"])
        blocks = _whole(awaited(bucket.blocks(key, row["size"], row["etag"]), side), row["size"])
        head = _head(blocks) if kept is None else kept.head
        media_type = _media(source, row["path"], head, bool(root.single)).media_type
        if not media_type:
            return Outcome(skipped="unknown_type")
        if kept is None:
            location, sha256, size = side.store_raw(chain([head], blocks), mark)
        else:
            location, sha256, size = kept.location, kept.sha256, kept.size
    except ObjectMissing:
        return dead(row, UnreadableFile.__name__, "it vanished after it was listed")
    except (ObjectChanged, SourceChanged):
        return dead(row, SourceChanged.__name__, "it was replaced after it was listed: run again")
    except FileError as e:
        return dead(row, type(e).__name__, str(e))
    return fetched(row, {"sha256": sha256, "size": size, "location": location, "media_type": media_type})


def _whole(blocks: Iterator[bytes], size: int) -> Iterator[bytes]:
    """The same blocks.

    Raises:
        SourceChanged: behind the last of them, if they are not as many bytes as were listed.
    """
    came = 0
    for block in blocks:
        came += len(block)
        yield block
    if came != size:
        raise SourceChanged(f"{came} bytes came, {size} were listed")


def _head(blocks: Iterator[bytes]) -> bytes:
    head = bytearray()
    while len(head) <= LOOK and (block := next(blocks, None)) is not None:
        head += block
    return bytes(head)


def _media(source: SourceSettings, path: str, head: bytes, is_single: bool) -> Media:
    """What an object is: by its name, and by its first bytes where that says nothing."""
    found = media_of(path)
    if not found.media_type and not found.codec:
        found = sniff(head[:_HEAD])
    # A JSON file that the job itself names is meant as records.
    return found if is_single else judged(head, found, source)
