"""One download over HTTP: resumed where it broke, checked for length and hash, bounded in size and tries."""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urljoin, urlsplit

import httpx

from dataflow_ops.clients.retry_after import asked_to_wait
from dataflow_ops.errors import FetchFailed, TruncatedFile, UnreadableFile
from dataflow_ops.layers.ingest.hosts import Hosts
from dataflow_ops.media import TEXT, media_of, sniff
from dataflow_ops.ranges import range_sha256

MAX_REDIRECTS: Final = 5
ATTEMPTS: Final = 5
_FIRST_PAUSE_S: Final = 0.5
_LONGEST_PAUSE_S: Final = 120.0
_BLOCK: Final = 1 << 16
_PASSING: Final = frozenset({408, 425, 429, 500, 502, 503, 504})
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_VAGUE: Final = frozenset({"", "application/octet-stream", "binary/octet-stream", TEXT})


class RefusedByRobots(Exception):
    """The host's robots.txt forbids the URL. No error: it is counted as skipped."""


class _TryAgain(Exception):
    """Passing trouble; ``pause_s`` is what the server asked for, if it did."""

    def __init__(self, message: str, pause_s: float | None = None) -> None:
        super().__init__(message)
        self.pause_s = pause_s


@dataclass(frozen=True, slots=True)
class Page:
    """A finished download: the file, and what the transport said of it."""

    path: Path
    media_type: str
    charset: str


@dataclass(slots=True)
class _Partial:
    """What has been received so far, and what shows that the rest belongs to it."""

    path: Path
    validator: str = ""

    def size(self) -> int:
        return self.path.stat().st_size if self.path.exists() else 0

    def restart(self) -> None:
        self.path.unlink(missing_ok=True)
        self.validator = ""


class Downloader:
    """Fetches pages for one task.

    Args:
        client: makes the requests; redirects are followed here, not there.
        user_agent: sent with each request.
        delay_s: seconds between two requests to one host.
        max_bytes: most bytes of one page, unpacked too.
        clock: monotonic seconds.
        sleep: waits.
    """

    def __init__(
        self,
        client: httpx.Client,
        user_agent: str,
        delay_s: float,
        max_bytes: int,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._client = client
        self._user_agent = user_agent
        self._max_bytes = max_bytes
        self._sleep = sleep
        self._hosts = Hosts(client, user_agent, delay_s, clock, sleep)

    def fetch(self, url: str, into: Path, sha256: str = "") -> Page:
        """Download a URL into a file.

        Args:
            url: http or https.
            into: where to; what an earlier call left there is started over.
            sha256: hex digest that the page must have, ``""`` for any.

        Raises:
            RefusedByRobots: not to be fetched at all.
            UnreadableFile: the server says for good that there is no such page, or it is too large.
            TruncatedFile: its compressed body ends too early.
            FetchFailed: every try failed.
        """
        partial = _Partial(into)
        partial.restart()
        pause = _FIRST_PAUSE_S
        last = ""
        for attempt in range(ATTEMPTS):
            try:
                page = self._attempt(url, partial)
            except _TryAgain as e:
                last = str(e)
                if attempt + 1 < ATTEMPTS:
                    self._sleep(min(e.pause_s if e.pause_s is not None else pause, _LONGEST_PAUSE_S))
                pause *= 2
                continue
            found = _sha256(page.path) if sha256 else ""
            if found == sha256.lower():
                return page
            last = f"its SHA-256 is {found[:16]}…, the list says {sha256[:16]}…"
            partial.restart()
        raise FetchFailed(f"{url}: {last} ({ATTEMPTS} tries)")

    def _attempt(self, url: str, partial: _Partial) -> Page:
        for _ in range(MAX_REDIRECTS + 1):
            if not self._hosts.allows(url):
                raise RefusedByRobots(url)
            self._hosts.wait(url)
            try:
                with self._client.stream(
                    "GET", url, headers=self._headers(partial), follow_redirects=False
                ) as r:
                    if r.status_code in _REDIRECTS and "location" in r.headers:
                        url = urljoin(url, r.headers["location"])
                        if urlsplit(url).scheme not in ("http", "https"):
                            raise UnreadableFile(f"it redirects to {url}, which is not http")
                        continue
                    return self._receive(r, url, partial)
            except httpx.HTTPError as e:
                raise _TryAgain(f"{type(e).__name__}: {e}") from e
        raise UnreadableFile(f"more than {MAX_REDIRECTS} redirects")

    def _headers(self, partial: _Partial) -> dict[str, str]:
        # Compressed transfer would make ranges and lengths speak of other bytes than those stored.
        headers = {"User-Agent": self._user_agent, "Accept-Encoding": "identity"}
        if partial.size() and partial.validator:
            headers["Range"] = f"bytes={partial.size()}-"
            headers["If-Range"] = partial.validator
        return headers

    def _receive(self, response: httpx.Response, url: str, partial: _Partial) -> Page:
        status = response.status_code
        if status in _PASSING:
            pause = asked_to_wait(response.headers, time.time())
            if pause is not None:
                self._hosts.postpone(url, min(pause, _LONGEST_PAUSE_S))
            raise _TryAgain(f"HTTP {status}", pause)
        if status == 416:
            partial.restart()
            raise _TryAgain("HTTP 416: the server has fewer bytes than it sent before")
        if status not in (200, 206):
            raise UnreadableFile(f"HTTP {status}")
        expected = _expected_size(response)
        if status == 206 and _range_start(response) != partial.size():
            partial.restart()
            raise _TryAgain("the server sent another range than asked for")
        if status == 200:
            partial.restart()
        strong = response.headers.get("etag", "")
        partial.validator = (
            "" if strong.startswith("W/") else strong or response.headers.get("last-modified", "")
        )
        if expected is not None and expected > self._max_bytes:
            raise UnreadableFile(f"{expected} bytes; ingest.fetch_max_mb allows {self._max_bytes}")
        self._write(response, partial)
        if expected is not None and partial.size() != expected:
            size = partial.size()
            partial.restart()
            raise _TryAgain(f"{size} bytes came, {expected} were announced")
        return self._page(response, url, partial)

    def _write(self, response: httpx.Response, partial: _Partial) -> None:
        size = partial.size()
        with open(partial.path, "ab") as out:
            for block in response.iter_raw(_BLOCK):
                size += len(block)
                if size > self._max_bytes:
                    raise UnreadableFile(f"more than ingest.fetch_max_mb allows ({self._max_bytes} bytes)")
                out.write(block)

    def _page(self, response: httpx.Response, url: str, partial: _Partial) -> Page:
        encoding = response.headers.get("content-encoding", "").strip().lower()
        path = partial.path
        if encoding not in ("", "identity"):
            path = self._unpack(path, encoding)
        media_type = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        if media_type in _VAGUE:
            media_type = media_of(urlsplit(url).path).media_type or media_type
        if not media_type or media_type in _VAGUE - {TEXT}:
            with open(path, "rb") as file:
                media_type = sniff(file.read(512)).media_type or media_type
        return Page(path, media_type, (response.charset_encoding or "").lower())

    def _unpack(self, path: Path, encoding: str) -> Path:
        """Undo a Content-Encoding that the server applied although it was asked not to."""
        if encoding not in ("gzip", "x-gzip", "deflate"):
            raise UnreadableFile(f"its Content-Encoding is {encoding}, which was not asked for")
        unpacked = path.with_name(path.name + ".unpacked")
        inflate = zlib.decompressobj(wbits=47 if encoding != "deflate" else 15)
        size = 0
        try:
            with open(path, "rb") as source, open(unpacked, "wb") as out:
                data = b""
                while not inflate.eof and (data := inflate.unconsumed_tail or source.read(_BLOCK)):
                    block = inflate.decompress(data, _BLOCK)
                    size += len(block)
                    if size > self._max_bytes:
                        raise UnreadableFile(
                            f"unpacks to more than ingest.fetch_max_mb ({self._max_bytes} bytes)"
                        )
                    out.write(block)
        except zlib.error as e:
            raise UnreadableFile(f"its {encoding} body can't be unpacked: {e}") from e
        if not inflate.eof:
            raise TruncatedFile(f"its {encoding} body ends too early", size)
        return unpacked


def _sha256(path: Path) -> str:
    with open(path, "rb") as file:
        return range_sha256(file, "")[0]


def _expected_size(response: httpx.Response) -> int | None:
    """Bytes of the whole page, as announced; None where nothing is."""
    if response.status_code == 206:
        total = response.headers.get("content-range", "").rpartition("/")[2]
        return int(total) if total.isdigit() else None
    length = response.headers.get("content-length", "")
    return int(length) if length.isdigit() else None


def _range_start(response: httpx.Response) -> int:
    start = response.headers.get("content-range", "").removeprefix("bytes").strip().partition("-")[0]
    return int(start) if start.isdigit() else -1
