"""What a server can do, found out by trying it: once for each storage root, kept in the root itself."""

from __future__ import annotations

import io
import json
import threading
import uuid
from dataclasses import asdict, dataclass
from typing import Any, Final

from dataflow_ops.clients.s3 import body_digest, code_of, exists_already, told
from dataflow_ops.clients.s3_read import read_range
from dataflow_ops.errors import ObjectMissing
from dataflow_ops.storage.s3_upload import Place

FOLDER: Final = ".store/"
"""Below the root's prefix; never listed."""
_NOTE: Final = f"{FOLDER}server.json"
_BODY: Final = b"probe: " + bytes(57)
_UNKNOWN_CODES: Final = frozenset(
    "NotImplemented 501 InvalidArgument InvalidRequest MethodNotAllowed XNotImplemented 400 405".split()
)
_LATER: Final = frozenset(("RequestTimeout", "408", "429"))
"""Refusals that say nothing of the body."""


@dataclass(frozen=True, slots=True)
class Features:
    """What was found.

    Attributes:
        endpoint: of which server; another one is asked anew.
        conditional_put: a PUT with ``If-None-Match: *`` leaves a taken name alone.
        conditional_parts: so does completing an upload in parts.
        checks_bodies: a body that was changed on its way is refused (``Content-MD5``). Where it is not,
            everything that is stored is read back and hashed.
    """

    endpoint: str
    conditional_put: bool
    conditional_parts: bool
    checks_bodies: bool


def features_of(place: Place, prefix: str, endpoint: str) -> Features:
    """As noted in the root; else found out, and noted.

    Args:
        place: the bucket.
        prefix: of the root, ``""`` or with a slash at its end.
        endpoint: of the server.

    Raises:
        ObjectStoreAway: no answer.
        ObjectStoreRefused: credentials, rights, or no such bucket.
    """
    try:
        noted = json.loads(read_range(*place, prefix + _NOTE, 0, 1 << 16))
        found = Features(**noted)
    except (ObjectMissing, ValueError, TypeError):
        return probe(place, prefix, endpoint)
    return found if found.endpoint == endpoint else probe(place, prefix, endpoint)


def probe(place: Place, prefix: str, endpoint: str) -> Features:
    """Try it, and note it; three objects are written, and removed. Errors as for :func:`features_of`."""
    key = f"{prefix}{FOLDER}probe_{uuid.uuid4().hex}"
    with told(place.url(key)):
        place.client.put_object(Bucket=place.bucket, Key=key, Body=_BODY)
        try:
            found = Features(
                endpoint,
                _leaves_alone(place, key, _put_again),
                _leaves_alone(place, key, _put_parts),
                _refuses_garbled(place, f"{key}_garbled"),
            )
        finally:
            for one in (key, f"{key}_garbled"):
                place.client.delete_object(Bucket=place.bucket, Key=one)
        note = json.dumps(asdict(found), sort_keys=True).encode()
        place.client.put_object(Bucket=place.bucket, Key=prefix + _NOTE, Body=note)
    return found


def _leaves_alone(place: Place, key: str, write: Any) -> bool:
    """Whether a conditional write onto a taken name is refused for that reason, and changed nothing."""
    from botocore.exceptions import ClientError

    try:
        write(place, key)
    except ClientError as e:
        if not exists_already(e) and code_of(e) not in _UNKNOWN_CODES:
            raise
        refused = exists_already(e)
    else:
        refused = False
    return refused and read_range(*place, key, 0, len(_BODY)) == _BODY


def _put_again(place: Place, key: str) -> None:
    place.client.put_object(Bucket=place.bucket, Key=key, Body=b"other", IfNoneMatch="*")


def _put_parts(place: Place, key: str) -> None:
    upload = place.client.create_multipart_upload(Bucket=place.bucket, Key=key)["UploadId"]
    which = {"Bucket": place.bucket, "Key": key, "UploadId": upload}
    try:
        part = place.client.upload_part(**which, PartNumber=1, Body=b"other")
        parts = {"Parts": [{"PartNumber": 1, "ETag": part["ETag"]}]}
        place.client.complete_multipart_upload(**which, MultipartUpload=parts, IfNoneMatch="*")
    except BaseException:
        place.client.abort_multipart_upload(**which)
        raise


def _refuses_garbled(place: Place, key: str) -> bool:
    """Whether a body is refused that was changed on its way, as a broken network would.

    No where that can't be told, since another fault stood in the way: then more is read back than need be.
    """
    from botocore.exceptions import ClientError

    mine, sent = threading.get_ident(), 0
    answers: list[Any] = []

    def garble(request: Any, **_: Any) -> None:
        nonlocal sent
        # The digest is in the headers by now. Other threads, which share the client, send what they mean; and
        # so do the tries after the first.
        if threading.get_ident() == mine:
            sent += 1
            if sent == 1:
                request.body = io.BytesIO(_BODY[::-1])

    def heard(parsed_response: Any, **_: Any) -> None:
        if threading.get_ident() == mine:
            answers.append(parsed_response or {})

    def refused() -> bool:
        status = answers[0].get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
        return 400 <= status < 500 and answers[0].get("Error", {}).get("Code", "") not in _LATER

    events = place.client.meta.events
    listeners = (("before-send.s3.PutObject", garble), ("response-received.s3.PutObject", heard))
    for event, listener in listeners:
        events.register(event, listener, unique_id=f"{key} {event}")
    try:
        place.client.put_object(Bucket=place.bucket, Key=key, Body=_BODY, ContentMD5=body_digest(_BODY))
    except ClientError:
        if not refused():
            raise
    finally:
        for event, listener in listeners:
            events.unregister(event, listener, unique_id=f"{key} {event}")
    return refused()
