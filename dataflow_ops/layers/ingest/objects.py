"""Bringing objects of a bucket, for ``fetch``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain

from dataflow_ops.errors import FileError, ObjectChanged, ObjectMissing, SourceChanged, UnreadableFile
from dataflow_ops.layers.ingest.outcomes import Outcome, Row, awaited, dead, fetched
from dataflow_ops.layers.ingest.outside import Bucket
from dataflow_ops.layers.ingest.sources.jsonfiles import LOOK, judged
from dataflow_ops.layers.ingest.sources.names import unescape
from dataflow_ops.layers.ingest.sources.s3 import Root, root_in
from dataflow_ops.media import Media, media_of, sniff
from dataflow_ops.protocols import Side
from dataflow_ops.source_settings import SourceSettings

_HEAD = 512


def object_bringer(source: SourceSettings, bucket: Bucket) -> Callable[[Side, Row], Outcome]:
    """A function that brings listed objects of a source; where they lie is found out once."""
    root = root_in(source, bucket)
    return lambda side, row: _bring(side, row, source, bucket, root)


def _bring(side: Side, row: Row, source: SourceSettings, bucket: Bucket, root: Root) -> Outcome:
    """Fetch one object and keep it, unless its first bytes say that nothing can read it.

    Raises:
        ObjectStoreAway: the store does not answer: no fault of the object.
        ObjectStoreRefused: it lets nobody in.
    """
    key = root.prefix + unescape(row["path"])
    blocks = awaited(bucket.blocks(key, row["size"], row["etag"]), side)
    try:
        head = _head(blocks)
        media_type = _media(source, row["path"], head, bool(root.single)).media_type
        if not media_type:
            return Outcome(skipped="unknown_type")
        location, sha256, size = side.store_raw(chain([head], blocks))
    except ObjectMissing:
        return dead(row, UnreadableFile.__name__, "it vanished after it was listed")
    except ObjectChanged:
        return dead(row, SourceChanged.__name__, "it was replaced after it was listed: run again")
    except FileError as e:
        return dead(row, type(e).__name__, str(e))
    if size != row["size"]:
        message = f"{size} bytes came, {row['size']} were listed: run again"
        return dead(row, SourceChanged.__name__, message)
    return fetched(row, {"sha256": sha256, "size": size, "location": location, "media_type": media_type})


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
