"""S3 and what speaks its protocol: addresses, access, the client, and what its errors mean.

boto3 is imported when the first client is made, never before.
"""

from __future__ import annotations

import base64
import hashlib
import os
import random
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit

from dataflow_ops.errors import (
    ConfigError,
    DataFlowError,
    ObjectMissing,
    ObjectStoreAway,
    ObjectStoreRefused,
    StorageFull,
)

SCHEME: Final = "s3://"
CONNECT_TIMEOUT_S: Final = 10.0
READ_TIMEOUT_S: Final = 60.0
"""Without a byte from the server."""
TRIES: Final = 8
"""Of each request, by botocore, with exponential back-off and jitter: measured 29 to 92 s in all."""
MAX_CONNECTIONS: Final = 16
OWN_TRIES: Final = 6
"""Of what botocore gives up at once although the next try may do: see :func:`tried`."""
NOTED: Final = {
    "s3_endpoint": "DATAFLOW_S3_ENDPOINT",
    "s3_region": "DATAFLOW_S3_REGION",
    "s3_path_style": "DATAFLOW_S3_PATH_STYLE",
    "s3_access_key": "AWS_ACCESS_KEY_ID",
    "s3_secret_key": "AWS_SECRET_ACCESS_KEY",
    "s3_session_token": "AWS_SESSION_TOKEN",
}
"""Names in a stack's note for command lines -> the variables that say the same."""

_REPEATABLE: Final = frozenset(
    "ConditionalRequestConflict OperationAborted InvalidDigest IncompleteBody"
    " XAmzContentSHA256Mismatch XAmzContentChecksumMismatch".split()
)
_BUSY: Final = (
    frozenset(
        "SlowDown Throttling ThrottlingException RequestTimeout RequestTimeoutException InternalError"
        " ServiceUnavailable BadDigest 503 500 502 504 429 408".split()
    )
    | _REPEATABLE
)
_FULL: Final = frozenset(
    "QuotaExceeded InsufficientStorage XMinioStorageFull EntityTooLargeForQuota 507".split()
)
_MISSING: Final = frozenset(("NoSuchKey", "NotFound", "404"))
_EXISTS: Final = frozenset(("PreconditionFailed", "412"))

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class S3Access:
    """How a server is reached, and as whom. Can be pickled; secrets stay out of its representation.

    Attributes:
        endpoint: ``http://host:port`` of a server of one's own; ``""``: Amazon's.
        region: ``""``: what boto3 finds; servers of one's own take any.
        path_style: the bucket in the path, not in the host name; None: there if there is an endpoint.
        access_key: with ``secret_key``, credentials that somebody resolved; ``""``: boto3's own chain
            (``AWS_*`` variables, its files, the role of the instance).
        secret_key: see ``access_key``.
        session_token: of temporary credentials.
    """

    endpoint: str = ""
    region: str = ""
    path_style: bool | None = None
    access_key: str = field(default="", repr=False)
    secret_key: str = field(default="", repr=False)
    session_token: str = field(default="", repr=False)


def access_from_environment(environment: Mapping[str, str] = os.environ) -> S3Access:
    """Access as the environment says it; credentials are left to boto3's own chain.

    Reads ``DATAFLOW_S3_ENDPOINT`` (else ``AWS_ENDPOINT_URL_S3``, ``AWS_ENDPOINT_URL``),
    ``DATAFLOW_S3_REGION`` (else ``AWS_REGION``, ``AWS_DEFAULT_REGION``) and ``DATAFLOW_S3_PATH_STYLE``
    (``true`` or ``false``).

    Raises:
        ConfigError: a value is not what it must be.
    """

    def first(*names: str) -> str:
        return next((value for name in names if (value := environment.get(name, "").strip())), "")

    endpoint = first("DATAFLOW_S3_ENDPOINT", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
    parts = urlsplit(endpoint)
    if endpoint and (parts.scheme not in ("http", "https") or not parts.hostname):
        raise ConfigError(f"DATAFLOW_S3_ENDPOINT={endpoint!r}: give an address such as http://127.0.0.1:8333")
    if parts.username or parts.password:
        raise ConfigError(
            "DATAFLOW_S3_ENDPOINT holds a password: give the address alone, and the credentials as"
            " AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
        )
    style = first("DATAFLOW_S3_PATH_STYLE").lower()
    if style not in ("", "true", "false"):
        raise ConfigError(f"DATAFLOW_S3_PATH_STYLE={style!r}: give true or false")
    region = first("DATAFLOW_S3_REGION", "AWS_REGION", "AWS_DEFAULT_REGION")
    return S3Access(endpoint, region, None if not style else style == "true")


def split_url(url: str) -> tuple[str, str]:
    """``s3://bucket/some/prefix`` as ``("bucket", "some/prefix")``; the prefix has no slash at its ends.

    Raises:
        ConfigError: it is no such address.
    """
    bucket, _, prefix = url.removeprefix(SCHEME).partition("/")
    prefix = prefix.strip("/")
    # urlsplit would take a bucket with "_" or a prefix with "#" or "?" apart.
    if not url.startswith(SCHEME) or not bucket or any(c.isspace() or c in ":@?#" for c in bucket):
        raise ConfigError(f"{url!r} is no address of a bucket: give s3://BUCKET/PREFIX")
    if any(part in ("", ".", "..") for part in prefix.split("/") if prefix):
        raise ConfigError(f"{url!r}: an empty part, `.` or `..` can't stand in a prefix")
    return bucket, prefix


def client_for(access: S3Access) -> Any:
    """A boto3 client; one for each access and process. Clients may be shared by threads, not by forks.

    Raises:
        ConfigError: boto3 can't make one of these settings.
    """
    return _client(access, os.getpid())


@lru_cache(maxsize=32)
def _client(access: S3Access, pid: int) -> Any:
    del pid  # tells a forked child's client from its parent's
    import boto3
    from botocore.config import Config
    from botocore.exceptions import BotoCoreError

    in_path = bool(access.endpoint) if access.path_style is None else access.path_style
    config = Config(
        connect_timeout=CONNECT_TIMEOUT_S,
        read_timeout=READ_TIMEOUT_S,
        # The newer modes share a small budget of repeats among all threads, and are at its end within 2 s.
        retries={"mode": "legacy", "total_max_attempts": TRIES},
        max_pool_connections=MAX_CONNECTIONS,
        tcp_keepalive=True,
        s3={"addressing_style": "path" if in_path else "auto"},
        # Trailing checksums break servers that do not know them; see body_digest.
        request_checksum_calculation="when_required",
        response_checksum_validation="when_required",
    )
    try:
        session = boto3.session.Session(
            aws_access_key_id=access.access_key or None,
            aws_secret_access_key=access.secret_key or None,
            aws_session_token=access.session_token or None,
            region_name=access.region or ("us-east-1" if access.endpoint else None),
        )
        return session.client("s3", endpoint_url=access.endpoint or None, config=config)
    except (BotoCoreError, ValueError) as e:
        raise ConfigError(f"no client for S3 can be made: {e}; see docs/object-storage.md") from e


@contextmanager
def told(what: str) -> Iterator[None]:
    """Turn errors of boto3 into ours; ``what`` (a URL) stands in the message.

    Raises:
        ObjectMissing: there is no such object.
        ObjectStoreAway: no connection, no answer, or an answer that asks to come again later.
        ObjectStoreRefused: credentials, rights, or a bucket that is not there.
        StorageFull: no room left there.
    """
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        yield
    except (BotoCoreError, ClientError) as e:
        raise as_error(e, what) from e


def tried(call: Callable[[], T], pause_s: float = 0.2, tries: int = OWN_TRIES) -> T:
    """The call's answer; repeated with back-off and jitter where botocore gives up, but another try may do.

    These are a body that came garbled, and a conditional write that met another one in the act.

    Args:
        call: one request; raises botocore's errors.
        pause_s: first wait, doubled each time, times a random number between 0.5 and 1.
        tries: in all.
    """
    from botocore.exceptions import ClientError

    for number in range(tries):
        try:
            return call()
        except ClientError as e:
            if code_of(e) not in _REPEATABLE or number + 1 == tries:
                raise
        # No secret depends on it: it only parts callers that collided.
        time.sleep(pause_s * 2**number * random.uniform(0.5, 1.0))
    raise AssertionError("a call was neither answered nor refused")


def body_digest(data: bytes) -> str:
    """``Content-MD5`` of a body: with it, servers refuse a body that was changed on its way.

    All servers know it; signatures and newer checksums are left unchecked by some.
    """
    return base64.b64encode(hashlib.md5(data, usedforsecurity=False).digest()).decode("ascii")


def code_of(error: BaseException) -> str:
    """The server's code of an error (``NoSuchKey``; the status where it has none); ``""`` if it is none."""
    response = getattr(error, "response", None) or {}
    code = str(response.get("Error", {}).get("Code", ""))
    return code or str(response.get("ResponseMetadata", {}).get("HTTPStatusCode", ""))


def is_missing(error: BaseException) -> bool:
    """Whether it says that there is no such object (a bucket that is not there is another fault)."""
    return code_of(error) in _MISSING


def exists_already(error: BaseException) -> bool:
    """Whether a conditional write was refused since the name is taken, or has changed."""
    return code_of(error) in _EXISTS


def as_error(error: Exception, what: str) -> DataFlowError:
    """Our error for one of boto3's; see :func:`told`."""
    from botocore import exceptions as b

    code, status = code_of(error), _status(error)
    if isinstance(error, b.ClientError):
        if code in _MISSING:
            return ObjectMissing(f"{what}: there is no such object")
        if code in _FULL or status == 507:
            return StorageFull(f"{what}: the object store has no room left ({code}): free some and run again")
        if code in _BUSY or status >= 500 or status in (408, 429):
            return ObjectStoreAway(f"{what}: the object store does not keep up ({code}); run again later")
        return ObjectStoreRefused(f"{what}: {code}: {_said(error)}; {_advice(code)}")
    if isinstance(error, b.NoCredentialsError | b.PartialCredentialsError | b.ProfileNotFound):
        return ObjectStoreRefused(f"{what}: {error}; {_CREDENTIALS}")
    away = (
        *(b.HTTPClientError, b.ConnectionError, b.IncompleteReadError, b.CredentialRetrievalError),
        *(b.MetadataRetrievalError, b.ChecksumError),
    )
    if isinstance(error, away):
        return ObjectStoreAway(
            f"{what}: the object store does not answer ({error}); is it up, and DATAFLOW_S3_ENDPOINT right?"
        )
    return ObjectStoreRefused(f"{what}: {error}")


_CREDENTIALS: Final = "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or let the instance have a role"


def _advice(code: str) -> str:
    if code == "NoSuchBucket":
        return "make the bucket first, or correct its name"
    if code == "RequestTimeTooSkewed":
        return "this machine's clock is wrong"
    if code in ("PermanentRedirect", "AuthorizationHeaderMalformed", "IllegalLocationConstraintException"):
        return "the bucket is in another region: set DATAFLOW_S3_REGION"
    if code in ("InvalidAccessKeyId", "SignatureDoesNotMatch", "InvalidToken", "ExpiredToken"):
        return _CREDENTIALS
    return "do the credentials have the right to do this?"


def _status(error: BaseException) -> int:
    response = getattr(error, "response", None) or {}
    return int(response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))


def _said(error: BaseException) -> str:
    response = getattr(error, "response", None) or {}
    return str(response.get("Error", {}).get("Message", "")) or "no reason given"
