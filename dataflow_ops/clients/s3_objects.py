"""A bucket as a source of documents: what lies in it, and the bytes of what was listed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from dataflow_ops.clients.s3 import SCHEME, access_from_environment, client_for, code_of
from dataflow_ops.clients.s3_read import Found, listed, read_range
from dataflow_ops.errors import ObjectStoreRefused, UnreadableFile

FIRST_BLOCK: Final = (1 << 20) + 1
"""Enough to tell what an object is."""
MOST_BLOCK: Final = 8 << 20
_OF_ONE_OBJECT: Final = frozenset(("AccessDenied", "Forbidden", "403", "InvalidObjectState"))
"""Refusals that may concern a single object: rights of its own, or an archive that it was moved to."""


class ObjectBucket:
    """Reads objects of one bucket, reached as the environment says.

    Args:
        name: of the bucket.
        client: boto3's; None: made of what the environment says.
    """

    def __init__(self, name: str, client: Any = None) -> None:
        self._name = name
        self._client = client_for(access_from_environment()) if client is None else client

    def listed(self, prefix: str) -> Iterator[Found]:
        """See :class:`~dataflow_ops.layers.ingest.outside.Bucket`."""
        return listed(self._client, self._name, prefix)

    def blocks(self, key: str, size: int, etag: str) -> Iterator[bytes]:
        """See :class:`~dataflow_ops.layers.ingest.outside.Bucket`.

        Raises:
            UnreadableFile: this object can't be read, though the bucket can.
        """
        at, block = 0, FIRST_BLOCK
        while at < size:
            length = min(block, size - at)
            try:
                data = read_range(self._client, self._name, key, at, length, etag)
            except ObjectStoreRefused as e:
                if e.__cause__ is not None and code_of(e.__cause__) in _OF_ONE_OBJECT:
                    raise UnreadableFile(f"{SCHEME}{self._name}/{key} can't be read: {e}", at) from e
                raise
            if not data:
                return
            yield data
            at += len(data)
            block = MOST_BLOCK
