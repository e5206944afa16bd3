"""Bringing pages over HTTP, for ``fetch``."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

from dataflow_ops.errors import FetchFailed, FileError
from dataflow_ops.layers.ingest.download import Downloader, RefusedByRobots
from dataflow_ops.layers.ingest.outcomes import Outcome, Row, dead, fetched
from dataflow_ops.layers.ingest.slow import waited_for
from dataflow_ops.protocols import Side

_BLOCK = 1 << 20


def bring_page(side: Side, row: Row, downloader: Downloader) -> Outcome:
    """Download one URL and keep it."""
    url = row["path"]
    prefix, _, expected = row["etag"].partition("=")
    into = side.scratch / f"{hashlib.sha256(url.encode()).hexdigest()[:16]}.part"
    try:
        wanted = expected if prefix == "sha256" else ""
        page = waited_for(lambda: downloader.fetch(url, into, wanted), side.checkpoint)
        location, sha256, size = side.store_raw(_blocks(page.path))
    except RefusedByRobots:
        return Outcome(skipped="robots")
    except (FileError, FetchFailed) as e:
        return dead(row, type(e).__name__, str(e))
    finally:
        for left in side.scratch.glob(f"{into.name}*"):
            left.unlink()
    own = {"sha256": sha256, "size": size, "location": location, "url": url, "charset": page.charset}
    return fetched(row, {**own, "media_type": page.media_type or row["media_type"]})


def _blocks(path: Path) -> Iterator[bytes]:
    with open(path, "rb") as file:
        while block := file.read(_BLOCK):
            yield block
