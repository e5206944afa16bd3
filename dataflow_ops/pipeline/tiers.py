"""What a home holds: bytes by tier and kind."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from dataflow_ops.pipeline.chain import INDEXED
from dataflow_ops.storage.blob import BlobStore
from dataflow_ops.storage.cold import COLD
from dataflow_ops.storage.opening import Root, open_store

HOT = "hot"
KINDS = ("raw", "parsed", "intermediates", "indexes", "versions", "staging", "quarantine")
_TEXT = ("parse", "text")
_OF_INDEX = frozenset({*INDEXED, ("supersede", "gone")} - {_TEXT})
_WALKED = ("versions", "data", "raw", "staging", "quarantine")
"""In this order: a shard with a name in a version counts there."""


@dataclass(slots=True)
class Stored:
    """What lies in one tier of one kind.

    Attributes:
        tier: ``hot`` or ``cold``.
        kind: one of :data:`KINDS`.
        files: how many, each counted once whatever names it has.
        bytes: their bytes.
    """

    tier: str
    kind: str
    files: int = 0
    bytes: int = 0


def stored(root: Root, *, cold: bool) -> list[Stored]:
    """Bytes of a storage root by tier and kind; what is being moved lies in both tiers, and counts in both.

    In object storage shards of versions are copies, and count beside what they were copied from.

    Args:
        root: the storage root.
        cold: look into its cold tier, too.
    """
    if not isinstance(root, Path):
        return _in_bucket(open_store(root))
    found: dict[tuple[str, str], Stored] = {}
    for tier, folder in ((HOT, root), *(((COLD, root / COLD),) if cold else ())):
        found |= {(tier, kind): Stored(tier, kind) for kind in KINDS}
        seen: set[tuple[int, int]] = set()
        for name in _WALKED:
            for entry in _files(folder / name):
                try:
                    status = entry.stat(follow_symlinks=False)
                except FileNotFoundError:
                    continue
                if status.st_nlink > 1:
                    if (status.st_dev, status.st_ino) in seen:
                        continue
                    seen.add((status.st_dev, status.st_ino))
                one = found[tier, kind_of(os.path.relpath(entry.path, folder))]
                one.files, one.bytes = one.files + 1, one.bytes + status.st_size
    return list(found.values())


def _in_bucket(blobs: BlobStore) -> list[Stored]:
    found = {kind: Stored(HOT, kind) for kind in KINDS}
    for name in _WALKED:
        for blob in blobs.list(f"{name}/"):
            one = found[kind_of(blob.uri)]
            one.files, one.bytes = one.files + 1, one.bytes + blob.size
    return list(found.values())


def kind_of(path: str) -> str:
    """Which of :data:`KINDS` a file is, by its path below the root."""
    top, *rest = path.split("/")
    if top != "data":
        return top
    output = (rest[0], rest[-1].partition(".")[2].removesuffix(".parquet"))
    if output == _TEXT:
        return "parsed"
    return "indexes" if output in _OF_INDEX else "intermediates"


def _files(folder: Path) -> Iterator[os.DirEntry[str]]:
    pending = [str(folder)]
    while pending:
        try:
            entries = os.scandir(pending.pop())
        except (FileNotFoundError, NotADirectoryError):
            continue
        with entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    pending.append(entry.path)
                elif entry.is_file(follow_symlinks=False):
                    yield entry
