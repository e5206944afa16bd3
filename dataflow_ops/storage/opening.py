"""Storage roots by their address: a folder, or ``s3://bucket/prefix``."""

from __future__ import annotations

from pathlib import Path

from dataflow_ops.clients.s3 import SCHEME, S3Access, access_from_environment, split_url
from dataflow_ops.errors import ConfigError
from dataflow_ops.storage.blob import BlobStore
from dataflow_ops.storage.disk import Disk
from dataflow_ops.storage.local import LocalStore
from dataflow_ops.storage.s3 import S3Root, S3Store

Root = Path | S3Root
"""Where the bytes of a home are. Can be pickled, compared and hashed; ``str`` tells a person."""


def root_of(address: str, access: S3Access | None = None) -> Root:
    """The root that an address means.

    Args:
        address: a folder, or ``s3://bucket/prefix``.
        access: how object storage is reached; None: as the environment says.

    Raises:
        ConfigError: an address of another kind, or a setting of the object store is wrong.
    """
    if address.startswith(SCHEME):
        return S3Root(*split_url(address), access or access_from_environment())
    if "://" in address:
        raise ConfigError(f"{address!r}: a storage root is a folder, or s3://BUCKET/PREFIX")
    return Path(address).absolute()


def open_store(root: Root, disk: Disk | None = None) -> BlobStore:
    """The store at a root. Nothing is asked of a server yet.

    Args:
        root: a folder, or a place in object storage.
        disk: operations on local disk; tests pass one that fails on purpose.
    """
    return S3Store(root, disk) if isinstance(root, S3Root) else LocalStore(root, disk)


def address(root: Root, uri: str) -> str:
    """Where something below a root is, for a person."""
    return f"{root}/{uri}" if isinstance(root, S3Root) else str(root / uri)
