from __future__ import annotations

import pytest

from dataflow_ops import media
from dataflow_ops.media import Media, media_of, sniff, unpacked_bytes


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("a/b.HTML", Media(media.HTML)),
        ("a/b.jsonl.gz", Media(media.JSONL, "json", "gz")),
        ("x.warc.zst", Media(media.WARC, codec="zst")),
        ("src/x.py", Media(media.CODE, "python")),
        ("Makefile", Media(media.CODE, "make")),
        ("README", Media(media.TEXT)),
        ("a.b/noext", Media("")),
        (".gitignore", Media("")),
        (".gz", Media("")),
        ("picture.png", Media("")),
    ],
)
def test_by_name(path: str, expected: Media) -> None:
    assert media_of(path) == expected


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        (b"%PDF-1.7\n", media.PDF),
        (b"PAR1....", media.PARQUET),
        (b"WARC/1.0\r\n", media.WARC),
        (b"\xef\xbb\xbf\n <!DOCTYPE html>", media.HTML),
        (b"#!/usr/bin/env python3\n", media.CODE),
        ("汉字".encode(), media.TEXT),
        ("hé".encode("utf-16"), media.TEXT),
        (b"\x7fELF\x00\x01", ""),
        (b"", media.TEXT),
    ],
)
def test_by_first_bytes(head: bytes, expected: str) -> None:
    assert sniff(head).media_type == expected


def test_unpacked() -> None:
    assert [unpacked_bytes(p, 10) for p in ("a.txt", "a.txt.gz", "a.bz2", "a.parquet")] == [10, 40, 50, 30]
