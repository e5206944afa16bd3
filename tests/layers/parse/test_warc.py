from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable

import pytest

from tests.layers.parse.harness import CASES, FakeSide, Ran, parse, settings

PAGE = (
    b"<html><body><article><p>"
    + b"The keeper walked along the water each morning and read the gauge there. " * 4
    + b"%d</p></article></body></html>"
)


def record(body: bytes, url: str = "http://a.test/", kind: str = "response", **fields: str) -> bytes:
    head = {
        "WARC-Type": kind,
        "WARC-Target-URI": url,
        "WARC-Record-ID": f"<urn:{url}>",
        "Content-Type": "application/http; msgtype=response",
        "Content-Length": str(len(body)),
        **{k.replace("_", "-"): v for k, v in fields.items()},
    }
    rows = "".join(f"{k}: {v}\r\n" for k, v in head.items())
    return b"WARC/1.0\r\n" + rows.encode() + b"\r\n" + body + b"\r\n\r\n"


def http(body: bytes, status: int = 200, headers: str = "Content-Type: text/html; charset=utf-8") -> bytes:
    return f"HTTP/1.1 {status} X\r\n{headers}\r\n\r\n".encode() + body


def pages(n: int) -> list[bytes]:
    return [record(http(PAGE % i), f"http://a.test/{i}") for i in range(n)]


def urls(ran: Ran) -> list[str]:
    return [d["url"] for d in ran.docs]


def test_one_gzip_member_per_record() -> None:
    ran = parse({"a.warc.gz": b"".join(map(gzip.compress, pages(3)))})
    assert urls(ran) == [f"http://a.test/{i}" for i in range(3)]
    assert ran.docs[1]["source_record_id"] == "urn:http://a.test/1"


def test_truncated_gzip_keeps_whole_records() -> None:
    stored = b"".join(map(gzip.compress, pages(4)))
    whole = b"".join(pages(4))
    ends = {len(b"".join(map(gzip.compress, pages(n)))) for n in range(5)}
    for cut in range(1, len(stored), 3):
        ran = parse({"a.warc.gz": stored[:cut]})
        assert urls(ran) == [f"http://a.test/{i}" for i in range(len(ran.docs))]
        assert all(d["level"] == "file" for d in ran.dead)
        assert len(ran.dead) == (cut not in ends)
        assert all(0 <= d["position"] <= len(whole) for d in ran.dead)


@pytest.mark.parametrize("length", ["0", "5", "2000", "99999999999", "abc", "-3", "²", "9" * 5000, ""])
def test_wrong_length_takes_no_neighbour(length: str) -> None:
    parts = pages(3)
    parts[1] = record(http(PAGE % 1), "http://a.test/1", Content_Length=length)
    ran = parse({"a.warc": b"".join(parts)})
    assert urls(ran) == ["http://a.test/0", "http://a.test/2"]
    (dead,) = ran.dead
    assert dead["position"] == len(parts[0])
    assert ran.counts.documents_in == 3


def test_garbage_between_records() -> None:
    parts = pages(2)
    ran = parse({"a.warc": parts[0] + b"garbage\r\nmore\r\n\r\n" + parts[1]})
    assert urls(ran) == ["http://a.test/0", "http://a.test/1"]
    assert len(ran.dead) == 1


JUNK = [
    b"garbage\r\n",
    b"garbage\n",
    b"WARC/1.garbage\r\n",
    b"WARC/1.0\r\nWARC-Type: respo\r\n",
    b"a log quotes\r\nWARC/1.0\r\nand goes on\r\n",
    b"x" * (70 << 10) + b"\r\n",
]


@pytest.mark.parametrize("junk", JUNK, ids=range(len(JUNK)))
def test_garbage_swallows_no_record(junk: bytes) -> None:
    parts = pages(3)
    stored = parts[0] + junk + parts[1] + junk + parts[2]
    ran = parse({"a.warc": stored})
    assert urls(ran) == [f"http://a.test/{i}" for i in range(3)]
    second = len(parts[0] + junk + parts[1])
    assert [(d["level"], d["position"]) for d in ran.dead] == [
        ("document", len(parts[0])),
        ("document", second),
    ]
    assert [d["position"] for d in ran.docs] == [0, len(parts[0] + junk), second + len(junk)]


@pytest.mark.parametrize("cut", [10, 40, 230, 400])
def test_a_record_cut_in_the_middle_costs_only_itself(cut: int) -> None:
    parts = pages(3)
    ran = parse({"a.warc": parts[0] + parts[1][:cut] + b"\n" + parts[2]})
    assert urls(ran) == ["http://a.test/0", "http://a.test/2"]
    assert [d["position"] for d in ran.dead] == [len(parts[0])]


QUOTED = b"x\r\n\r\n" + record(http(PAGE % 9), "http://quoted.test/") + b"WARC/1.0\r\nno: header\r\n\r\ny"


def test_a_header_inside_a_well_framed_record_is_text() -> None:
    parts = pages(2)
    stored = parts[0] + record(QUOTED, "http://t.test/", "conversion", Content_Type="text/plain") + parts[1]
    ran = parse({"a.warc": stored})
    assert urls(ran) == ["http://a.test/0", "http://t.test/", "http://a.test/1"]
    assert ran.dead == []


def test_a_header_inside_a_record_too_large_to_read_is_text() -> None:
    parts = pages(2)
    body = QUOTED + b"z\n" * (1 << 19) + QUOTED
    large = record(body, "http://t.test/", "conversion", Content_Type="text/plain")
    for stored in (parts[0] + large + parts[1], parts[0] + large):
        ran = parse({"a.warc": stored}, settings(parse={"max_document_mb": 1}))
        assert urls(ran) == [f"http://a.test/{i}" for i in range(1 + stored.endswith(parts[1]))]
        assert [(d["error"], d["position"]) for d in ran.dead] == [("DocumentTooCostly", len(parts[0]))]


@pytest.mark.parametrize("length", [2 << 20, 1 << 40])
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_large_lengths_that_lie_take_no_neighbour(length: int, pack: Callable[[bytes], bytes]) -> None:
    parts = pages(5)
    for i in (1, 3):
        parts[i] = record(http(PAGE % i), f"http://a.test/{i}", Content_Length=str(length))
    parts.append(record(b"z\n" * (1 << 20), "http://t.test/", "conversion", Content_Type="text/plain"))
    parts += pages(1)
    side = FakeSide({"a.warc": pack(b"".join(parts))})
    ran = parse(side, settings(parse={"max_document_mb": 1}))
    assert urls(ran) == [f"http://a.test/{i}" for i in (0, 2, 4, 0)]
    assert [d["position"] for d in ran.dead] == [len(b"".join(parts[:i])) for i in (1, 3, 5)]


def test_cut_after_garbage_is_said() -> None:
    parts = pages(2)
    for cut in (9, 20, 200, 400):
        ran = parse({"a.warc": parts[0] + b"garbage\n" + parts[1][:cut]})
        assert urls(ran) == ["http://a.test/0"]
        assert [(d["level"], d["position"] - len(parts[0])) for d in ran.dead] == [
            ("document", 0),
            ("file", 8),
        ]


def test_cut_last_record_is_a_file_level_dead_letter() -> None:
    data = b"".join(pages(2))
    ran = parse({"a.warc": data[:-60]})
    assert urls(ran) == ["http://a.test/0"]
    (dead,) = ran.dead
    assert (dead["level"], dead["error"], dead["position"]) == ("file", "TruncatedFile", len(pages(1)[0]))


def test_other_records_are_skipped_and_counted() -> None:
    parts = [
        record(b"software: x", kind="warcinfo", Content_Type="application/warc-fields"),
        record(b"GET / HTTP/1.1\r\n\r\n", kind="request"),
        record(http(b"gone", 404)),
        record(http(b"\x89PNG", headers="Content-Type: image/png")),
        record(b"x", kind="nonsense"),
        record("纯文本".encode(), "http://t.test/", "conversion", Content_Type="text/plain"),
        record(http(b"no http at all")[9:]),
    ]
    ran = parse({"a.warc": b"".join(parts)})
    assert ran.counts.skipped == {"http_status": 1, "media_type": 1, "warc_request": 1, "warc_warcinfo": 1}
    assert ran.texts == ["纯文本"]
    assert len(ran.dead) == 2


@pytest.mark.parametrize(
    ("coding", "encode"),
    [
        ("Content-Encoding: gzip", gzip.compress),
        ("Content-Encoding: deflate", zlib.compress),
        ("Content-Encoding: gzip", bytes),
        ("Transfer-Encoding: chunked", lambda b: b"%x;ext=1\r\n%s\r\n3\r\nabc\r\n0\r\n\r\n" % (len(b), b)),
        ("Transfer-Encoding: chunked", bytes),
    ],
)
def test_bodies_as_crawlers_store_them(coding: str, encode: object) -> None:
    body = encode(PAGE % 7)  # type: ignore[operator]
    ran = parse({"a.warc": record(http(body, headers=f"Content-Type: text/html\r\n{coding}"))})
    assert "The keeper walked" in ran.texts[0]


def test_http_bomb() -> None:
    body = gzip.compress(bytes(5 << 20))
    data = record(http(body, headers="Content-Type: text/html\r\nContent-Encoding: gzip"))
    ran = parse({"a.warc": data + pages(1)[0]}, settings(parse={"max_document_mb": 1}))
    assert ran.dead[0]["error"] == "DocumentTooCostly"
    assert urls(ran) == ["http://a.test/0"]


def test_charset_of_the_http_header() -> None:
    page = "<html><body><p>Смотритель каждое утро обходил плотину.</p></body></html>".encode("koi8-r")
    ran = parse({"a.warc": record(http(page, headers="Content-Type: text/html; charset=KOI8-R"))})
    assert "Смотритель" in ran.texts[0]
    assert ran.docs[0]["encoding"] == "koi8-r"


def test_untyped_bodies_are_told_by_their_bytes_if_they_are_pages() -> None:
    bodies = [b"<!doctype html>" + PAGE % 1, b'{"some": "data"}', b"<!doctype html>" + PAGE % 2]
    types = ["X-None: 1", "X-None: 1", "Content-Type: application/octet-stream"]
    data = b"".join(record(http(b, headers=t)) for b, t in zip(bodies, types, strict=True))
    ran = parse({"a.warc": data})
    assert [d["media_type"] for d in ran.docs] == ["text/html", "text/html"]
    assert ran.counts.skipped == {"media_type": 1}


def test_ranges_give_every_record_once() -> None:
    data = (CASES / "warc/three_records.warc").read_bytes()
    whole = parse({"a.warc": data})
    for cut in range(1, len(data), 101):
        halves = [
            parse(FakeSide({"a.warc": data}, extra={"a.warc": {"start": s, "end": e}}))
            for s, e in ((0, cut), (cut, -1))
        ]
        assert halves[0].docs + halves[1].docs == whole.docs
