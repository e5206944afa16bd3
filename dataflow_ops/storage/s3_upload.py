"""Bringing bytes under a key: in one request, in parts, or by copying there. Whole under its name, or absent.

What a killed upload leaves are parts without a name; :func:`abort_old` removes them.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple

from dataflow_ops.clients.s3 import SCHEME, body_digest, code_of, exists_already, told, tried
from dataflow_ops.clients.s3_read import Found, look
from dataflow_ops.errors import ObjectStoreRefused, StorageError

PART_BYTES: Final = 16 << 20
"""Larger files go in parts of so many bytes, several at a time."""
MOST_PARTS: Final = 9_000
"""S3 takes 10,000; files beyond 140 GB get larger parts."""
COPY_BYTES: Final = 1 << 30
"""Larger objects are copied in parts; S3 copies 5 GiB at once at most."""
THREADS: Final = 4
SHA256: Final = "sha256"
"""Name of the object's metadata that holds the hex digest of its bytes."""


class Place(NamedTuple):
    """A client and the bucket that it is used on."""

    client: Any
    bucket: str

    def url(self, key: str) -> str:
        """For messages."""
        return f"{SCHEME}{self.bucket}/{key}"

    def look(self, key: str) -> Found | None:
        """See :func:`~dataflow_ops.clients.s3_read.look`."""
        return look(self.client, self.bucket, key)


def put_bytes(place: Place, key: str, data: bytes, sha256: str, absent: bool) -> bool:
    """Store a few bytes in one request.

    Args:
        place: where.
        key: full name in the bucket.
        data: all of it.
        sha256: hex digest, kept as metadata.
        absent: only if the name is free (the server must know conditional writes).

    Returns:
        False when the name was taken, and ``absent``.

    Raises:
        ObjectStoreAway: no answer.
        ObjectStoreRefused: credentials, rights, or no such bucket.
        StorageFull: no room left there.
    """
    from botocore.exceptions import ClientError

    more = {"IfNoneMatch": "*"} if absent else {}
    with told(place.url(key)):
        try:
            tried(
                lambda: place.client.put_object(
                    Bucket=place.bucket,
                    Key=key,
                    Body=data,
                    ContentMD5=body_digest(data),
                    Metadata={SHA256: sha256},
                    **more,
                )
            )
        except ClientError as e:
            if absent and exists_already(e):
                return False
            raise
    return True


def put_file(place: Place, key: str, path: Path, sha256: str, absent: bool) -> bool:
    """Store a local file in parts; arguments and errors as for :func:`put_bytes`.

    At most :data:`THREADS` parts are in memory. Whatever stops it, the parts that were sent are removed.
    """
    size = path.stat().st_size
    part = part_bytes(size)
    with told(place.url(key)):
        upload = _begin(place, key, {SHA256: sha256})
        try:
            with open(path, "rb") as file:

                def send(number: int) -> dict[str, Any]:
                    data = _piece(file, number * part, min(part, size - number * part))
                    answer = tried(
                        lambda: place.client.upload_part(
                            Bucket=place.bucket,
                            Key=key,
                            UploadId=upload,
                            PartNumber=number + 1,
                            Body=data,
                            ContentMD5=body_digest(data),
                        )
                    )
                    return {"PartNumber": number + 1, "ETag": answer["ETag"]}

                parts = _all(send, -(-size // part))
            return _complete(place, key, upload, parts, sha256, absent)
        except BaseException:
            _abandon(place, key, upload)
            raise


def copy(place: Place, source: Found, key: str) -> None:
    """Copy an object inside the bucket, its metadata with it; the server moves the bytes.

    Raises:
        ObjectMissing: the source is gone.
        ObjectStoreAway: no answer.
        ObjectStoreRefused: credentials or rights.
    """
    where = {"Bucket": place.bucket, "Key": source.key}
    with told(place.url(source.key)):
        if source.size <= COPY_BYTES:
            tried(lambda: place.client.copy_object(Bucket=place.bucket, Key=key, CopySource=where))
            return
        upload = _begin(place, key, source.metadata)
        try:

            def send(number: int) -> dict[str, Any]:
                start = number * COPY_BYTES
                last = min(start + COPY_BYTES, source.size) - 1
                answer = tried(
                    lambda: place.client.upload_part_copy(
                        Bucket=place.bucket,
                        Key=key,
                        UploadId=upload,
                        PartNumber=number + 1,
                        CopySource=where,
                        CopySourceRange=f"bytes={start}-{last}",
                    )
                )
                return {"PartNumber": number + 1, "ETag": answer["CopyPartResult"]["ETag"]}

            parts = _all(send, -(-source.size // COPY_BYTES))
            _complete(place, key, upload, parts, source.metadata.get(SHA256, ""), absent=False)
        except BaseException:
            _abandon(place, key, upload)
            raise


def abort_old(place: Place, prefix: str, older_than_s: float) -> int:
    """Remove uploads that nobody has sent a part of for so long; returns how many.

    Raises:
        ObjectStoreAway: no answer.
        ObjectStoreRefused: credentials, rights, or no such bucket.
    """
    oldest = time.time() - older_than_s
    aborted = 0
    for key, upload, begun in _uploads(place, prefix):
        if begun <= oldest and _last_part(place, key, upload) <= oldest:
            aborted += _abort(place, key, upload)
    return aborted


def part_bytes(size: int) -> int:
    """Bytes of each part of a file of ``size`` bytes but the last: whole MiB, at most 9,000 parts."""
    return max(PART_BYTES, -(-size // MOST_PARTS // (1 << 20)) * (1 << 20))


def _begin(place: Place, key: str, metadata: dict[str, str]) -> str:
    answer = tried(
        lambda: place.client.create_multipart_upload(Bucket=place.bucket, Key=key, Metadata=metadata)
    )
    return str(answer["UploadId"])


def _piece(file: BinaryIO, start: int, length: int) -> bytes:
    data = os.pread(file.fileno(), length, start)
    while len(data) < length:
        more = os.pread(file.fileno(), length - len(data), start + len(data))
        if not more:
            raise ObjectStoreRefused(f"{file.name} became shorter while it was sent: nothing was stored")
        data += more
    return data


def _all(send: Any, count: int) -> list[dict[str, Any]]:
    with ThreadPoolExecutor(THREADS, thread_name_prefix="s3-part") as pool:
        sent = [pool.submit(send, number) for number in range(count)]
        try:
            return [one.result() for one in sent]
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def _complete(
    place: Place, key: str, upload: str, parts: list[dict[str, Any]], sha256: str, absent: bool
) -> bool:
    from botocore.exceptions import ClientError

    more = {"IfNoneMatch": "*"} if absent else {}
    try:
        tried(
            lambda: place.client.complete_multipart_upload(
                Bucket=place.bucket, Key=key, UploadId=upload, MultipartUpload={"Parts": parts}, **more
            )
        )
    except ClientError as e:
        if absent and exists_already(e):
            _abandon(place, key, upload)
            return False
        # An answer that was lost is asked for again, and then there is no such upload any more.
        if code_of(e) != "NoSuchUpload" or not sha256:
            raise
        found = place.look(key)
        if found is None or found.metadata.get(SHA256) != sha256:
            raise
    return True


def _abandon(place: Place, key: str, upload: str) -> None:
    """Remove the parts of an upload that failed; what can't be removed now is left to :func:`abort_old`."""
    with suppress(StorageError):
        _abort(place, key, upload)


def _abort(place: Place, key: str, upload: str) -> bool:
    from botocore.exceptions import ClientError

    with told(place.url(key)):
        try:
            place.client.abort_multipart_upload(Bucket=place.bucket, Key=key, UploadId=upload)
        except ClientError as e:
            if code_of(e) not in ("NoSuchUpload", "404"):
                raise
            return False
    return True


def _uploads(place: Place, prefix: str) -> Iterator[tuple[str, str, float]]:
    """``(key, upload, when it began)``."""
    pages = place.client.get_paginator("list_multipart_uploads")
    with told(place.url(prefix)):
        found = [
            (one["Key"], one["UploadId"], one["Initiated"].timestamp())
            for page in pages.paginate(Bucket=place.bucket, Prefix=prefix)
            for one in page.get("Uploads", ())
        ]
    yield from found


def _last_part(place: Place, key: str, upload: str) -> float:
    """When the last part came, seconds since 1970; 0 where none did, or the upload is gone."""
    from botocore.exceptions import ClientError

    with told(place.url(key)):
        try:
            pages = place.client.get_paginator("list_parts").paginate(
                Bucket=place.bucket, Key=key, UploadId=upload
            )
            times = [one["LastModified"].timestamp() for page in pages for one in page.get("Parts", ())]
        except ClientError as e:
            if code_of(e) in ("NoSuchUpload", "404"):
                return 0.0
            raise
    return max(times, default=0.0)
