"""``kind: http``: a text file with one URL a line; nothing is requested before fetch."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlsplit, urlunsplit

from dataflow_ops.errors import ConfigError
from dataflow_ops.layers.ingest.sources.listed import LeftOut, SourceFile
from dataflow_ops.layers.ingest.sources.names import escape
from dataflow_ops.layers.ingest.sources.patterns import Patterns
from dataflow_ops.layers.ingest.sources.roots import root_of
from dataflow_ops.source_settings import SourceSettings


def list_files(source: SourceSettings, left_out: LeftOut) -> Iterator[SourceFile]:
    """Yield one file for each URL.

    Empty lines and lines that begin with ``#`` are no URLs. What follows ``#`` in a URL is kept as its
    ``etag``: ``#sha256=<hex>`` is checked after the download, anything else (a date) forces it anew.

    Raises:
        ConfigError: the path is not a file.
    """
    root = root_of(source)
    if not root.single:
        raise ConfigError(f"source '{source.source_id}': kind http needs a text file with one URL a line")
    patterns = Patterns(source)
    seen: set[str] = set()
    with open(root.folder / root.single, encoding="utf-8-sig", errors="surrogateescape") as lines:
        for number, line in enumerate(lines, 1):
            text = line.strip()
            if not text or text.startswith("#"):
                continue
            try:
                parts = urlsplit(text)
                usable = parts.scheme.lower() in ("http", "https") and bool(parts.hostname)
            except ValueError:
                usable = False
            if not usable:
                yield SourceFile(escape(text), -1, problem=f"line {number} is not an http or https URL")
                continue
            if "@" in parts.netloc:
                # The URL is stored with every document: a password in it would travel with the data.
                bare = urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
                yield SourceFile(
                    bare, -1, problem=f"line {number} holds a user name or password; take it out"
                )
                continue
            url = urlunsplit(parts._replace(fragment=""))
            if url in seen:
                left_out["listed_twice"] += 1
            elif reason := patterns.verdict(parts.path.lstrip("/") or "index.html"):
                left_out[reason] += 1
            else:
                seen.add(url)
                yield SourceFile(url, -1, etag=parts.fragment, url=url)
