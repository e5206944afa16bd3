"""Reading from S3: listings in pages, ranges that survive cut connections, and objects as seekable files."""

from __future__ import annotations

import io
import random
import time
from collections.abc import Iterator
from contextlib import closing
from typing import Any, BinaryIO, Final, NamedTuple

from dataflow_ops.clients.s3 import SCHEME, as_error, code_of, is_missing, told
from dataflow_ops.errors import ObjectChanged, ObjectMissing

FIRST_AHEAD: Final = 256 << 10
MOST_AHEAD: Final = 8 << 20
"""Bytes asked for at once: the first after a seek, doubled up to the second where reading goes on."""
BODY_TRIES: Final = 6
"""Connections in a row that may break without one byte having come."""
_REPLACED: Final = "{} was replaced while it was read; run again"


class Found(NamedTuple):
    """An object as a listing or a look shows it.

    Attributes:
        key: its full name in the bucket.
        size: bytes.
        etag: changes when the bytes do; of an upload in parts it is no hash of them.
        modified_s: seconds since 1970, whole: fractions come from listings of some servers only.
        metadata: of its own (names in lower case); empty in listings.
    """

    key: str
    size: int
    etag: str
    modified_s: int
    metadata: dict[str, str]


def look(client: Any, bucket: str, key: str) -> Found | None:
    """An object without its bytes; None where there is none.

    Raises:
        ObjectStoreAway: no answer.
        ObjectStoreRefused: credentials, rights, or no such bucket.
    """
    from botocore.exceptions import ClientError

    with told(f"{SCHEME}{bucket}/{key}"):
        try:
            head = client.head_object(Bucket=bucket, Key=key)
        except ClientError as e:
            if is_missing(e):
                return None
            raise
    return Found(
        key,
        int(head["ContentLength"]),
        str(head["ETag"]).strip('"'),
        int(head["LastModified"].timestamp()),
        {name.lower(): value for name, value in head.get("Metadata", {}).items()},
    )


def listed(client: Any, bucket: str, prefix: str = "", page: int = 1000) -> Iterator[Found]:
    """Every object whose key starts with ``prefix``, ascending by key, page by page.

    Names that end with ``/`` (what consoles show as folders) are left out.

    Raises:
        ObjectStoreAway: no answer.
        ObjectStoreRefused: credentials, rights, or no such bucket.
    """
    pages = client.get_paginator("list_objects_v2").paginate(
        Bucket=bucket, Prefix=prefix, PaginationConfig={"PageSize": page}
    )
    answers = iter(pages)
    while True:
        with told(f"{SCHEME}{bucket}/{prefix}"):
            answer = next(answers, None)
        if answer is None:
            return
        for one in answer.get("Contents", ()):
            if not one["Key"].endswith("/"):
                etag = str(one.get("ETag", "")).strip('"')
                yield Found(one["Key"], int(one["Size"]), etag, int(one["LastModified"].timestamp()), {})


def read_range(client: Any, bucket: str, key: str, start: int, length: int | None, etag: str = "") -> bytes:
    """Bytes ``start … start + length`` of an object; fewer where it ends before.

    A connection that breaks in the middle is taken up where it broke.

    Args:
        client: boto3's.
        bucket: name.
        key: full name in the bucket.
        start: first byte.
        length: how many; None: to the end; 0 asks nobody.
        etag: what the object's must be; ``""``: whatever it is at the first answer.

    Raises:
        ObjectMissing: there is no such object.
        ObjectChanged: it was replaced meanwhile.
        ObjectStoreAway: no answer, or it breaks again and again.
        ObjectStoreRefused: credentials, rights, or no such bucket.
    """
    url = f"{SCHEME}{bucket}/{key}"
    got = bytearray()
    failures = 0
    while length is None or len(got) < length:
        had = len(got)
        try:
            etag = _take(
                client, bucket, key, start + had, None if length is None else start + length, etag, got
            )
        except _BrokeOff as e:
            # The rest must be of the same object.
            etag = e.etag
            failures = 0 if len(got) > had else failures + 1
            if failures >= BODY_TRIES:
                raise as_error(e.cause, url) from e.cause
            time.sleep(0.2 * 2**failures * random.uniform(0.5, 1.0))
        else:
            break
    return bytes(got)


class _BrokeOff(Exception):
    """A body ended too early. What botocore repeats was repeated by it; bodies are taken up by us."""

    def __init__(self, cause: Exception, etag: str) -> None:
        super().__init__()
        self.cause = cause
        self.etag = etag


def _take(client: Any, bucket: str, key: str, start: int, end: int | None, etag: str, into: bytearray) -> str:
    """Append what one connection brings; returns the object's ETag."""
    from botocore.exceptions import BotoCoreError, ClientError

    url = f"{SCHEME}{bucket}/{key}"
    with told(url):
        try:
            answer = client.get_object(
                Bucket=bucket, Key=key, Range=f"bytes={start}-{end - 1 if end else ''}"
            )
        except ClientError as e:
            if code_of(e) not in ("InvalidRange", "416"):
                raise
            # Behind the end: of the same object, or of a shorter one that has replaced it.
            now = look(client, bucket, key) if etag else None
            if etag and (now is None or now.etag != etag):
                raise ObjectChanged(_REPLACED.format(url)) from e
            return etag
    # Its own `with` would give the raw stream, which takes a cut connection for the end.
    with closing(answer["Body"]) as body:
        # Compared here instead of asked for with If-Match, which not every server answers rightly.
        found = str(answer["ETag"]).strip('"')
        if etag and found != etag:
            raise ObjectChanged(_REPLACED.format(url))
        try:
            while block := body.read(1 << 20):
                into += block
        except BotoCoreError as e:
            raise _BrokeOff(e, found) from e
    return found


def open_object(client: Any, bucket: str, key: str, found: Found | None = None) -> BinaryIO:
    """An object as a buffered, seekable file for reading.

    Args:
        client: boto3's.
        bucket: name.
        key: full name in the bucket.
        found: the object, where somebody has looked already.

    Raises:
        ObjectMissing: there is no such object.
    """
    found = found or look(client, bucket, key)
    if found is None:
        raise ObjectMissing(f"{SCHEME}{bucket}/{key}: there is no such object")
    return io.BufferedReader(RangeFile(client, bucket, found), 64 << 10)


class RangeFile(io.RawIOBase):
    """Seekable bytes of one object, read in ranges; a replaced object is an error, never a mixture.

    Args:
        client: boto3's.
        bucket: name.
        found: the object as it was looked at.
    """

    def __init__(self, client: Any, bucket: str, found: Found) -> None:
        self._client = client
        self._bucket = bucket
        self._found = found
        self._at = 0
        self._window = memoryview(b"")
        self._window_start = 0
        self._ahead = FIRST_AHEAD

    def readable(self) -> bool:
        """Always."""
        return True

    def seekable(self) -> bool:
        """Always."""
        return True

    def tell(self) -> int:
        """Where the next read begins."""
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move; nothing is asked of the server."""
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._found.size}[whence]
        if base + offset < 0:
            raise ValueError(f"byte {base + offset} is before the beginning")
        self._at = base + offset
        return self._at

    def readinto(self, into: Any) -> int:
        """Fill ``into``, except at the end.

        Raises:
            ObjectChanged: the object was replaced.
            ObjectStoreAway: no answer.
        """
        target = memoryview(into).cast("B")
        done = 0
        while done < len(target) and self._at < self._found.size:
            inside = self._at - self._window_start
            if not 0 <= inside < len(self._window):
                self._fetch(len(target) - done)
                inside = 0
            piece = self._window[inside : inside + len(target) - done]
            target[done : done + len(piece)] = piece
            done += len(piece)
            self._at += len(piece)
        return done

    def _fetch(self, wanted: int) -> None:
        straight_on = self._at == self._window_start + len(self._window)
        self._ahead = min(2 * self._ahead, MOST_AHEAD) if straight_on and self._at else FIRST_AHEAD
        length = min(max(wanted, self._ahead), self._found.size - self._at)
        data = read_range(self._client, self._bucket, self._found.key, self._at, length, self._found.etag)
        if len(data) != length:
            raise ObjectChanged(f"{SCHEME}{self._bucket}/{self._found.key} is shorter than it was; run again")
        self._window, self._window_start = memoryview(data), self._at
