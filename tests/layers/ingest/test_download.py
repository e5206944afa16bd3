from __future__ import annotations

import gzip
import hashlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest

from dataflow_ops.errors import FetchFailed, UnreadableFile
from dataflow_ops.job_file import parse_job
from dataflow_ops.layers.ingest.discover import DiscoverStep, list_sources
from dataflow_ops.layers.ingest.download import ATTEMPTS, Downloader, RefusedByRobots
from dataflow_ops.layers.ingest.fetch import FetchStep
from tests.layers.ingest.side import FolderSide

BODY = b"<html><body>" + b"0123456789" * 20_000 + b"</body></html>"


@dataclass
class Site:
    """A server on loopback that misbehaves as told; ``script`` is what each path answers, call by call."""

    server: ThreadingHTTPServer
    requests: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    robots: tuple[int, str] = (404, "")
    script: dict[str, list[str]] = field(default_factory=dict)

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.server.server_port}{path}"

    def asked(self, path: str) -> list[dict[str, str]]:
        return [headers for p, headers in self.requests if p == path]


def answer(handler: BaseHTTPRequestHandler, site: Site) -> None:
    path = handler.path
    site.requests.append((path, {k.lower(): v for k, v in handler.headers.items()}))
    if path == "/robots.txt":
        status, text = site.robots
        reply(handler, status, text.encode(), {})
        return
    steps = site.script.get(path, ["ok"])
    step = steps.pop(0) if len(steps) > 1 else steps[0]
    kind, _, value = step.partition(":")
    wanted = handler.headers.get("Range")
    etag = {"ETag": '"v1"', "Content-Type": "text/html; charset=GBK"}
    if kind == "status":
        code, _, retry = value.partition(",")
        reply(handler, int(code), b"", {"Retry-After": retry} if retry else {})
    elif kind == "redirect":
        reply(handler, 302, b"", {"Location": value})
    elif kind == "gzip":
        reply(handler, 200, gzip.compress(BODY), {"Content-Encoding": "gzip", "Content-Type": "text/html"})
    elif kind == "bare":
        reply(handler, 200, BODY, {})
    elif kind == "type":
        reply(handler, 200, BODY, {"Content-Type": value})
    elif wanted and kind in ("ok", "cut", "replaced") and kind != "replaced":
        start = int(wanted.removeprefix("bytes=").rstrip("-"))
        facts = {**etag, "Content-Range": f"bytes {start}-{len(BODY) - 1}/{len(BODY)}"}
        reply(handler, 206, BODY[start:], facts, cut=int(value) if kind == "cut" else None)
    elif kind == "cut":
        reply(handler, 200, BODY, etag, cut=int(value))
    elif kind == "cut_plain":
        reply(handler, 200, BODY, {}, cut=int(value))
    elif kind == "replaced":
        reply(handler, 200, BODY[::-1], {"ETag": '"v2"', "Content-Type": "text/html"})
    else:
        reply(handler, 200, BODY, etag)


def reply(
    handler: BaseHTTPRequestHandler, status: int, body: bytes, headers: dict[str, str], cut: int | None = None
) -> None:
    handler.send_response(status)
    for name, value in headers.items():
        handler.send_header(name, value)
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body[:cut])
    if cut is not None:
        handler.close_connection = True


@pytest.fixture
def site() -> Iterator[Site]:
    holder: list[Site] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            answer(self, holder[0])

        def log_message(self, *_: Any) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    holder.append(Site(server))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield holder[0]
    server.shutdown()
    server.server_close()
    thread.join()


class Clock:
    """Time that passes only by sleeping."""

    def __init__(self) -> None:
        self.now = 0.0
        self.slept: list[float] = []

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


@pytest.fixture
def client() -> Iterator[httpx.Client]:
    with httpx.Client(timeout=5, trust_env=False) as opened:
        yield opened


def downloader(
    client: httpx.Client, clock: Clock, max_bytes: int = 1 << 20, delay_s: float = 0
) -> Downloader:
    return Downloader(client, "dataflow-ops", delay_s, max_bytes, clock, clock.sleep)


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_plain(site: Site, client: httpx.Client, clock: Clock, tmp_path: Path) -> None:
    page = downloader(client, clock).fetch(site.url("/a"), tmp_path / "a")
    assert page.path.read_bytes() == BODY
    assert (page.media_type, page.charset) == ("text/html", "gbk")
    assert clock.slept == []


def test_a_broken_connection_is_resumed_where_it_broke(
    site: Site, client: httpx.Client, clock: Clock, tmp_path: Path
) -> None:
    site.script["/a"] = ["cut:70000", "cut:50000", "ok"]
    page = downloader(client, clock).fetch(site.url("/a"), tmp_path / "a")
    assert page.path.read_bytes() == BODY
    ranges = [r.get("range") for r in site.asked("/a")]
    assert ranges[0] is None
    assert all(r is not None for r in ranges[1:])
    assert site.asked("/a")[1]["if-range"] == '"v1"'


def test_without_a_validator_it_starts_over(
    site: Site, client: httpx.Client, clock: Clock, tmp_path: Path
) -> None:
    site.script["/a"] = ["cut_plain:70000", "bare"]
    assert downloader(client, clock).fetch(site.url("/a"), tmp_path / "a").path.read_bytes() == BODY
    assert [r.get("range") for r in site.asked("/a")] == [None, None]


def test_a_page_replaced_meanwhile_is_never_glued(
    site: Site, client: httpx.Client, clock: Clock, tmp_path: Path
) -> None:
    site.script["/a"] = ["cut:70000", "replaced"]
    assert downloader(client, clock).fetch(site.url("/a"), tmp_path / "a").path.read_bytes() == BODY[::-1]


def test_a_length_that_is_never_met_fails(
    site: Site, client: httpx.Client, clock: Clock, tmp_path: Path
) -> None:
    site.script["/a"] = ["cut_plain:100"]
    with pytest.raises(FetchFailed, match=rf"/a: .*\({ATTEMPTS} tries\)"):
        downloader(client, clock).fetch(site.url("/a"), tmp_path / "a")
    assert len(site.asked("/a")) == ATTEMPTS
    assert clock.slept == [0.5, 1.0, 2.0, 4.0]


def test_gone_for_good_is_asked_once(site: Site, client: httpx.Client, clock: Clock, tmp_path: Path) -> None:
    site.script["/a"] = ["status:404"]
    with pytest.raises(UnreadableFile, match="HTTP 404"):
        downloader(client, clock).fetch(site.url("/a"), tmp_path / "a")
    assert len(site.asked("/a")) == 1


def test_retry_after_is_honoured(site: Site, client: httpx.Client, clock: Clock, tmp_path: Path) -> None:
    site.script["/a"] = ["status:429,7", "status:503,Thu, 01 Jan 1970 00:00:00 GMT", "ok"]
    assert downloader(client, clock).fetch(site.url("/a"), tmp_path / "a").path.read_bytes() == BODY
    assert sum(clock.slept) == 7
    site.script["/b"] = ["status:429,¹", "ok"]
    assert downloader(client, clock).fetch(site.url("/b"), tmp_path / "b").path.read_bytes() == BODY


def test_hash_of_the_list_is_checked(site: Site, client: httpx.Client, clock: Clock, tmp_path: Path) -> None:
    right = hashlib.sha256(BODY).hexdigest()
    site.script["/a"] = ["replaced", "ok"]
    assert (
        downloader(client, clock).fetch(site.url("/a"), tmp_path / "a", right.upper()).path.read_bytes()
        == BODY
    )
    with pytest.raises(FetchFailed, match="the list says 0000"):
        downloader(client, clock).fetch(site.url("/b"), tmp_path / "b", "0" * 64)


def test_redirects(site: Site, client: httpx.Client, clock: Clock, tmp_path: Path) -> None:
    for i in range(5):
        site.script[f"/r{i}"] = [f"redirect:/r{i + 1}"]
    assert downloader(client, clock).fetch(site.url("/r0"), tmp_path / "a").path.read_bytes() == BODY
    site.script["/r5"] = ["redirect:/r6"]
    with pytest.raises(UnreadableFile, match="more than 5 redirects"):
        downloader(client, clock).fetch(site.url("/r0"), tmp_path / "a")
    site.script["/f"] = ["redirect:file:///etc/passwd"]
    with pytest.raises(UnreadableFile, match="not http"):
        downloader(client, clock).fetch(site.url("/f"), tmp_path / "a")


def test_size_cap(site: Site, client: httpx.Client, clock: Clock, tmp_path: Path) -> None:
    with pytest.raises(UnreadableFile, match="fetch_max_mb"):
        downloader(client, clock, max_bytes=1000).fetch(site.url("/a"), tmp_path / "a")
    site.script["/z"] = ["gzip"]
    with pytest.raises(UnreadableFile, match="unpacks to more"):
        downloader(client, clock, max_bytes=10_000).fetch(site.url("/z"), tmp_path / "a")


def test_unasked_compression_is_undone(
    site: Site, client: httpx.Client, clock: Clock, tmp_path: Path
) -> None:
    site.script["/z"] = ["gzip"]
    assert downloader(client, clock).fetch(site.url("/z"), tmp_path / "a").path.read_bytes() == BODY
    assert site.asked("/z")[0]["accept-encoding"] == "identity"


@pytest.mark.parametrize(
    ("path", "script", "media_type"),
    [
        ("/x.md", "type:text/plain; charset=utf-8", "text/markdown"),
        ("/x.pdf", "type:application/octet-stream", "application/pdf"),
        ("/x", "bare", "text/html"),
        ("/x", "type:application/octet-stream", "text/html"),
        ("/x.md", "type:text/html", "text/html"),
        ("/x", "type:text/plain", "text/plain"),
    ],
)
def test_media_type(
    site: Site, client: httpx.Client, clock: Clock, tmp_path: Path, path: str, script: str, media_type: str
) -> None:
    site.script[path] = [script]
    assert downloader(client, clock).fetch(site.url(path), tmp_path / "a").media_type == media_type


def test_robots(site: Site, client: httpx.Client, clock: Clock, tmp_path: Path) -> None:
    site.robots = (200, "User-agent: dataflow-ops\nDisallow: /private\n")
    site.script["/to"] = ["redirect:/private/x"]
    get = downloader(client, clock)
    get.fetch(site.url("/public"), tmp_path / "a")
    for path in ("/private/x", "/to"):
        with pytest.raises(RefusedByRobots):
            get.fetch(site.url(path), tmp_path / "a")
    assert site.asked("/private/x") == []
    assert len(site.asked("/robots.txt")) == 1


def test_robots_that_can_not_be_had_forbid(
    site: Site, client: httpx.Client, clock: Clock, tmp_path: Path
) -> None:
    site.robots = (500, "")
    with pytest.raises(FetchFailed, match=r"robots\.txt can't be had \(HTTP 500\)"):
        downloader(client, clock).fetch(site.url("/a"), tmp_path / "a")
    assert site.asked("/a") == []


def test_pause_between_requests_to_one_host(
    site: Site, client: httpx.Client, clock: Clock, tmp_path: Path
) -> None:
    get = downloader(client, clock, delay_s=0.5)
    for i in range(3):
        get.fetch(site.url(f"/{i}"), tmp_path / "a")
    # robots.txt and three pages are four requests.
    assert clock.slept == [0.5, 0.5, 0.5]


def test_no_connection(client: httpx.Client, clock: Clock, tmp_path: Path) -> None:
    with pytest.raises(FetchFailed):
        downloader(client, clock).fetch("http://127.0.0.1:1/a", tmp_path / "a")


def test_the_step(site: Site, tmp_path: Path) -> None:
    urls = tmp_path / "urls.txt"
    good = hashlib.sha256(BODY).hexdigest()
    site.robots = (200, "User-agent: *\nDisallow: /private\n")
    site.script["/gone"] = ["status:410"]
    urls.write_text("\n".join(site.url(p) for p in (f"/ok#sha256={good}", "/gone", "/private/x", "/ok2")))
    settings = parse_job(
        {
            "dataset": {"id": "t"},
            "sources": [{"kind": "http", "path": str(urls), "source_id": "w"}],
            "ingest": {"fetch_delay_s": 0},
        }
    )
    side = FolderSide(settings, tmp_path)
    (found,) = DiscoverStep(settings, list_sources(settings)).run(side, 0)
    side = FolderSide(
        settings, tmp_path, {("discover", "files"): found.outputs["files"].drop_columns(["slice"])}
    )
    step = FetchStep(settings, lambda timeout: httpx.Client(timeout=timeout, trust_env=False))
    results = list(step.run(side, 0))
    for result in results:
        result.counts.check("fetch")
    assert [r.cursor for r in results] == [1, 2, 3, 4]
    rows = [row for r in results for row in r.outputs["files"].to_pylist()]
    assert [row["url"] for row in rows] == [site.url("/ok"), site.url("/ok2")]
    for row in rows:
        assert (row["sha256"], row["size"], row["charset"], row["media_type"]) == (
            good,
            len(BODY),
            "gbk",
            "text/html",
        )
        with side.open_source("w", row["path"], row["location"]) as file:
            assert file.read() == BODY
    (dead,) = [row for r in results for row in r.outputs["dead"].to_pylist()]
    assert (dead["path"], dead["error"], dead["host"]) == (site.url("/gone"), "UnreadableFile", "127.0.0.1")
    assert sum(r.counts.skipped.get("robots", 0) for r in results) == 1
    assert list(side.scratch.iterdir()) == []
