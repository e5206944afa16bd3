"""The HTTP message inside a WARC response record."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import Final

from dataflow_ops.errors import DocumentTooCostly, MalformedRecord


@dataclass(frozen=True, slots=True)
class HttpMessage:
    """Status and decoded body. ``media_type`` and ``charset`` are lower case, ``""`` where not sent."""

    status: int
    media_type: str
    charset: str
    body: bytes


def parse_http(message: bytes, limit: int) -> HttpMessage:
    """Split a response into headers and body; undo chunks and compression.

    Args:
        message: from the status line on.
        limit: most bytes of the decoded body.

    Raises:
        MalformedRecord: no HTTP response, or a body that does not decode.
        DocumentTooCostly: the decoded body is above ``limit``.
    """
    head, sep, body = message.partition(b"\r\n\r\n")
    if not sep:
        head, sep, body = message.partition(b"\n\n")
    rows = head.decode("latin-1").splitlines()
    first = rows[0].split(None, 2) if rows else []
    if len(first) < 2 or not first[0].startswith("HTTP/") or not first[1].isdigit():
        raise MalformedRecord("the record holds no HTTP response")
    headers: dict[str, str] = {}
    for row in rows[1:]:
        name, colon, value = row.partition(":")
        if colon:
            headers.setdefault(name.strip().lower(), value.strip())
    if "chunked" in headers.get("transfer-encoding", "").lower():
        body = _unchunk(body)
    body = _decompress(body, headers.get("content-encoding", "").lower(), limit)
    media_type, charset = content_type(headers.get("content-type", ""))
    return HttpMessage(int(first[1]), media_type, charset, body)


def content_type(value: str) -> tuple[str, str]:
    """``(media type, charset)`` of a Content-Type header."""
    media_type, *parameters = value.split(";")
    charset = ""
    for parameter in parameters:
        name, _, given = parameter.partition("=")
        if name.strip().lower() == "charset":
            charset = given.strip().strip("\"'").lower()
    return media_type.strip().lower(), charset


def _unchunk(body: bytes) -> bytes:
    """Join chunks. Crawlers often store bodies with the chunks already joined: those stay as they are."""
    parts: list[bytes] = []
    at = 0
    while True:
        stop = body.find(b"\n", at, at + 1024)
        size_text = body[at : max(stop, at)].split(b";")[0].strip()
        try:
            size = int(size_text, 16)
        except ValueError:
            return b"".join(parts) if parts else body
        if size == 0:
            return b"".join(parts)
        parts.append(body[stop + 1 : stop + 1 + size])
        at = stop + 1 + size
        at += 2 if body[at : at + 2] == b"\r\n" else 1
        if at >= len(body):
            return b"".join(parts)


_GZIP_MAGIC: Final = b"\x1f\x8b"


def _decompress(body: bytes, coding: str, limit: int) -> bytes:
    """Undo Content-Encoding. Bodies that were stored decoded are told by their first bytes."""
    if not body or coding in ("", "identity", "none"):
        return body
    if coding in ("gzip", "x-gzip"):
        return _inflate(body, 31, limit) if body.startswith(_GZIP_MAGIC) else body
    if coding == "deflate":
        for bits in (15, -15):
            try:
                return _inflate(body, bits, limit)
            except MalformedRecord:
                continue
        return body
    if body.lstrip()[:1] == b"<":
        return body
    raise MalformedRecord(f"Content-Encoding {coding!r} is not supported")


def _inflate(body: bytes, bits: int, limit: int) -> bytes:
    z = zlib.decompressobj(wbits=bits)
    try:
        out = z.decompress(body, limit + 1)
    except zlib.error as e:
        raise MalformedRecord(f"the body does not decompress: {e}") from e
    if len(out) > limit:
        raise DocumentTooCostly(
            f"the body unpacks to more than {limit / (1 << 20):g} MB (parse.max_document_mb)"
        )
    return out
