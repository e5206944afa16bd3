"""``fetch``: brings what is not local, and gives every file its SHA-256."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from typing import TYPE_CHECKING

from dataflow_ops import schema
from dataflow_ops.errors import ConfigError, FileError, SourceChanged, UnreadableFile
from dataflow_ops.layers.ingest import objects, rowform
from dataflow_ops.layers.ingest.outcomes import Outcome, Row, dead, fetched, is_whole, result
from dataflow_ops.layers.ingest.outside import NOTHING, Outside
from dataflow_ops.protocols import Input, OutputSpec, Partitioning, Side
from dataflow_ops.ranges import range_sha256
from dataflow_ops.settings import IngestSettings, JobSettings
from dataflow_ops.source_settings import SourceSettings
from dataflow_ops.values import StepResult

if TYPE_CHECKING:
    import httpx

VERSION = 1
_FILES_AT_ONCE = 256
_BYTES_AT_ONCE = 64 << 20
"""Local files are handed on in stretches: a result of one row each would cost more than the hashing."""

Bring = Callable[[Side, Row], Outcome]
"""Makes one listed file of a source a local one."""


def default_client(timeout_s: float) -> httpx.Client:
    """A client with the system's certificates and proxies."""
    # Imported here: processes that only plan have no use for it.
    import httpx

    return httpx.Client(timeout=timeout_s)


class FetchStep:
    """One row for each file of the chunk: hashed where it lies, or brought from outside and stored.

    A file that vanished, changed since it was listed, can't be read or can't be downloaded becomes a
    file-level dead letter; the others go on. A database or an object store that does not answer is no fault
    of its files: the run stops.

    Args:
        settings: the job.
        client: makes an HTTP client from a timeout in seconds; called once per task, if at all.
        outside: ways to databases and object stores.
    """

    name = "fetch"
    layer = "ingest"
    partitioned_by: Partitioning = "chunk"
    inputs = (Input("discover", "files", "slice"),)
    outputs = (OutputSpec("files", schema.FETCHED), OutputSpec("dead", schema.DEAD))

    def __init__(
        self,
        settings: JobSettings,
        client: Callable[[float], httpx.Client] = default_client,
        outside: Outside = NOTHING,
    ) -> None:
        self._ingest = settings.ingest
        self._sources = {s.source_id: s for s in settings.sources}
        self._client = client
        self._outside = outside
        self._ways: dict[str, Callable[[SourceSettings, ExitStack], Bring]] = {
            "http": self._pages,
            "s3": self._objects,
            "sql": self._rows,
        }

    def fingerprint(self) -> Mapping[str, object]:
        """See :class:`~dataflow_ops.protocols.Step`. Only what is brought depends on settings."""
        return _fingerprint(self._ingest, list(self._sources.values()))

    def fingerprint_of(self, source_id: str) -> Mapping[str, object]:
        """Of a chunk of one source: local files do not depend on how others are brought."""
        return _fingerprint(self._ingest, [s for s in self._sources.values() if s.source_id == source_id])

    def run(self, side: Side, start: int) -> Iterator[StepResult]:
        """Yield a result for each file brought and for stretches of local ones; the cursor counts files."""
        rows = side.table("discover", "files").slice(start).to_pylist()
        ways: dict[str, Bring] = {}
        done: list[Outcome] = []
        with ExitStack() as opened:
            for number, row in enumerate(rows, start + 1):
                name = row["source_id"]
                if name not in ways:
                    ways[name] = self._way(name, opened)
                done.append(ways[name](side, row))
                is_local = ways[name] is _local
                if not is_local or len(done) == _FILES_AT_ONCE or sum(o.size for o in done) >= _BYTES_AT_ONCE:
                    yield result(done, number)
                    done = []
            if done:
                yield result(done, start + len(rows))

    def _way(self, source_id: str, opened: ExitStack) -> Bring:
        if source_id not in self._sources:
            raise ConfigError(f"source '{source_id}' is not in the job any more")
        source = self._sources[source_id]
        return self._ways[source.kind](source, opened) if source.kind in self._ways else _local

    def _pages(self, source: SourceSettings, opened: ExitStack) -> Bring:
        from dataflow_ops.layers.ingest.download import Downloader
        from dataflow_ops.layers.ingest.pages import bring_page

        del source
        client = opened.enter_context(closing(self._client(self._ingest.fetch_timeout_s)))
        max_bytes = int(self._ingest.fetch_max_mb * (1 << 20))
        downloader = Downloader(client, self._ingest.user_agent, self._ingest.fetch_delay_s, max_bytes)
        return lambda side, row: bring_page(side, row, downloader)

    def _objects(self, source: SourceSettings, opened: ExitStack) -> Bring:
        from dataflow_ops.layers.ingest.sources.s3 import bucket_of

        del opened  # clients of object stores are the process's own
        return objects.object_bringer(source, self._outside.bucket(bucket_of(source)))

    def _rows(self, source: SourceSettings, opened: ExitStack) -> Bring:
        from dataflow_ops.layers.ingest.rows import bring_rows

        table = opened.enter_context(closing(self._outside.table(source)))
        return lambda side, row: bring_rows(side, row, source, table)


def _fingerprint(ingest: IngestSettings, sources: Sequence[SourceSettings]) -> Mapping[str, object]:
    kinds = {source.kind for source in sources}
    found: dict[str, object] = {"version": VERSION}
    if "http" in kinds:
        found |= {"max_mb": ingest.fetch_max_mb, "user_agent": ingest.user_agent}
    if "s3" in kinds:
        # Which key makes an object of JSON a record.
        text_fields = sorted({s.text_field for s in sources if s.kind == "s3"})
        found["objects"] = [objects.VERSION, text_fields]
    if "sql" in kinds:
        found["rows"] = rowform.VERSION
    return found


def _local(side: Side, row: Row) -> Outcome:
    try:
        with side.open_source(row["source_id"], row["path"]) as file:
            size = file.seek(0, 2)
            if size != row["size"]:
                message = f"it has {size} bytes now and had {row['size']} when listed: run again"
                return dead(row, SourceChanged.__name__, message)
            sha256, hashed = range_sha256(file, row["media_type"], row["start"], row["end"])
    except OSError as e:
        return dead(row, UnreadableFile.__name__, f"can't be opened: {e.strerror or e}")
    except FileError as e:
        return dead(row, type(e).__name__, str(e))
    return fetched(row, {"sha256": sha256, "size": size if is_whole(row) else hashed})
