"""``fetch``: brings what is not local, and gives every file its SHA-256."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pyarrow as pa

from dataflow_ops import schema
from dataflow_ops.errors import FetchFailed, FileError, SourceChanged, UnreadableFile
from dataflow_ops.layers.ingest.slow import waited_for
from dataflow_ops.protocols import Input, OutputSpec, Partitioning, Side
from dataflow_ops.ranges import range_sha256
from dataflow_ops.settings import JobSettings
from dataflow_ops.values import Counts, StepResult

if TYPE_CHECKING:
    import httpx

    from dataflow_ops.layers.ingest.download import Downloader

VERSION = 1
_BLOCK = 1 << 20
_FILES_AT_ONCE = 256
_BYTES_AT_ONCE = 64 << 20
"""Local files are handed on in stretches: a result of one row each would cost more than the hashing."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one listed file: exactly one of ``file``, ``dead`` and ``skipped`` is set."""

    size: int = 0
    file: dict[str, Any] | None = None
    dead: dict[str, Any] | None = None
    skipped: str = ""


def default_client(timeout_s: float) -> httpx.Client:
    """A client with the system's certificates and proxies."""
    # Imported here: processes that only plan have no use for it.
    import httpx

    return httpx.Client(timeout=timeout_s)


class FetchStep:
    """One row for each file of the chunk: hashed where it lies, or downloaded and stored.

    A file that vanished, changed since it was listed, can't be read or can't be downloaded becomes a
    file-level dead letter; the others go on.

    Args:
        settings: the job.
        client: makes an HTTP client from a timeout in seconds; called once per task, if at all.
    """

    name = "fetch"
    layer = "ingest"
    partitioned_by: Partitioning = "chunk"
    inputs = (Input("discover", "files", "slice"),)
    outputs = (OutputSpec("files", schema.FETCHED), OutputSpec("dead", schema.DEAD))

    def __init__(
        self, settings: JobSettings, client: Callable[[float], httpx.Client] = default_client
    ) -> None:
        self._ingest = settings.ingest
        self._remote = {s.source_id for s in settings.sources if s.kind == "http"}
        self._client = client

    def fingerprint(self) -> Mapping[str, object]:
        """See :class:`~dataflow_ops.protocols.Step`. Only downloads depend on settings."""
        return self._fingerprint(bool(self._remote))

    def fingerprint_of(self, source_id: str) -> Mapping[str, object]:
        """Of a chunk of one source: local files do not depend on how others are downloaded."""
        return self._fingerprint(source_id in self._remote)

    def _fingerprint(self, remote: bool) -> Mapping[str, object]:
        if not remote:
            return {"version": VERSION}
        return {
            "version": VERSION,
            "max_mb": self._ingest.fetch_max_mb,
            "user_agent": self._ingest.user_agent,
        }

    def run(self, side: Side, start: int) -> Iterator[StepResult]:
        """Yield a result for each download and for stretches of local files; the cursor counts files."""
        rows = side.table("discover", "files").slice(start).to_pylist()
        client = None
        downloader: Downloader | None = None
        done: list[Outcome] = []
        try:
            for number, row in enumerate(rows, start + 1):
                remote = row["source_id"] in self._remote
                if remote:
                    if downloader is None:
                        client = self._client(self._ingest.fetch_timeout_s)
                        downloader = self._downloader(client)
                    done.append(_download(side, row, downloader))
                else:
                    done.append(_local(side, row))
                if remote or len(done) == _FILES_AT_ONCE or sum(o.size for o in done) >= _BYTES_AT_ONCE:
                    yield _result(done, number)
                    done = []
            if done:
                yield _result(done, start + len(rows))
        finally:
            if client is not None:
                client.close()

    def _downloader(self, client: httpx.Client) -> Downloader:
        from dataflow_ops.layers.ingest.download import Downloader

        max_bytes = int(self._ingest.fetch_max_mb * (1 << 20))
        return Downloader(client, self._ingest.user_agent, self._ingest.fetch_delay_s, max_bytes)


def _local(side: Side, row: dict[str, Any]) -> Outcome:
    try:
        with side.open_source(row["source_id"], row["path"]) as file:
            size = file.seek(0, 2)
            if size != row["size"]:
                message = f"it has {size} bytes now and had {row['size']} when listed: run again"
                return _dead(row, SourceChanged.__name__, message)
            sha256, hashed = range_sha256(file, row["media_type"], row["start"], row["end"])
    except OSError as e:
        return _dead(row, UnreadableFile.__name__, f"can't be opened: {e.strerror or e}")
    except FileError as e:
        return _dead(row, type(e).__name__, str(e))
    return _fetched(row, {"sha256": sha256, "size": size if _is_whole(row) else hashed})


def _download(side: Side, row: dict[str, Any], downloader: Downloader) -> Outcome:
    from dataflow_ops.layers.ingest.download import RefusedByRobots

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
        return _dead(row, type(e).__name__, str(e))
    finally:
        for left in side.scratch.glob(f"{into.name}*"):
            left.unlink()
    own = {"sha256": sha256, "size": size, "location": location, "url": url, "charset": page.charset}
    return _fetched(row, {**own, "media_type": page.media_type or row["media_type"]})


def _blocks(path: Path) -> Iterator[bytes]:
    with open(path, "rb") as file:
        while block := file.read(_BLOCK):
            yield block


def _is_whole(row: Mapping[str, Any]) -> bool:
    return (row["start"], row["end"]) == (0, -1)


def _fetched(row: Mapping[str, Any], own: Mapping[str, Any]) -> Outcome:
    facts = {"charset": "", "url": "", "location": "", **row, **own}
    return Outcome(size=facts["size"], file={name: facts[name] for name in schema.FETCHED.names})


def _dead(row: Mapping[str, Any], error: str, message: str) -> Outcome:
    letter = {
        "level": "file",
        "source_id": row["source_id"],
        "path": row["path"],
        "position": -1 if _is_whole(row) else row["start"],
        "error": error,
        "message": message,
        "parser": "",
        "media_type": row["media_type"],
        "host": (urlsplit(row["path"]).hostname or "") if "://" in row["path"] else "",
    }
    return Outcome(dead=letter)


def _result(done: Sequence[Outcome], cursor: int) -> StepResult:
    files = [o.file for o in done if o.file is not None]
    dead = [o.dead for o in done if o.dead is not None]
    skipped: dict[str, int] = {}
    for outcome in done:
        if outcome.skipped:
            skipped[outcome.skipped] = skipped.get(outcome.skipped, 0) + 1
    counts = Counts(len(done), len(files), 0, len(dead), skipped, len(files), sum(o.size for o in done))
    outputs = {
        "files": pa.Table.from_pylist(files, schema=schema.FETCHED),
        "dead": pa.Table.from_pylist(dead, schema=schema.DEAD),
    }
    return StepResult(outputs, counts, cursor=cursor)
