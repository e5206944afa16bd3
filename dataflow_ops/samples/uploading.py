"""Files that come over the network in parts: a part is durable before it is counted, a cut loses nothing."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from dataflow_ops.errors import ConfigError, IllegalMove, StorageFull
from dataflow_ops.state.samples.store import SampleStore
from dataflow_ops.state.samples.uploads import Upload

FOLDER: Final = "uploads"
"""Below the storage root, where uploads lie."""
MAX_PART: Final = 32 << 20
"""Most bytes of one part."""
_BLOCK: Final = 1 << 20
_SHA256: Final = re.compile(r"[0-9a-f]{64}")
_MOST_NAME: Final = 150
_FULL: Final = (errno.ENOSPC, errno.EDQUOT)


def begin(store: SampleStore, dataset: str, name: str, size: int, sha256: str | None, who: str) -> Upload:
    """Begin an upload.

    Args:
        store: open.
        dataset: where the file is to go.
        name: of the file; folders in it are left out.
        size: in bytes.
        sha256: that it must have; None: not told.
        who: name of the person or service.

    Raises:
        ConfigError: no name, no size, or a digest that is none.
    """
    plain = "".join(c for c in re.split(r"[/\\]", name)[-1] if c.isprintable())[-_MOST_NAME:].strip()
    if not plain or plain in (".", ".."):
        raise ConfigError(f"{name!r} is no name for a file")
    if size < 1:
        raise ConfigError("an upload has at least 1 byte")
    if sha256 is not None and not _SHA256.fullmatch(sha256):
        raise ConfigError("'sha256' has 64 hexadecimal digits, in lower case")
    return store.begin_upload(dataset, plain, size, sha256, who)


def add_part(store: SampleStore, folder: Path, upload_id: str, offset: int, data: bytes) -> Upload:
    """Add the next bytes of an upload.

    Args:
        store: open.
        folder: where uploads lie.
        upload_id: which.
        offset: of the first byte; what was received so far.
        data: the bytes.

    Raises:
        ConfigError: there is no such upload, or more bytes come than were announced.
        IllegalMove: the offset is another: ask how far it is, and go on from there.
        StorageFull: no space left.
    """
    if len(data) > MAX_PART:
        raise ConfigError(f"a part has at most {MAX_PART >> 20} MB")
    with _locked(folder, upload_id) as part:
        known = _open(store.upload(upload_id))
        if offset != known.received:
            raise IllegalMove(f"upload {upload_id} goes on at byte {known.received}, not at {offset}")
        if offset + len(data) > known.size:
            raise ConfigError(f"upload {upload_id} was announced with {known.size} bytes; more came")
        try:
            with part.open("r+b" if part.exists() else "wb") as file:
                file.truncate(offset)  # of a part that was written and not counted
                file.seek(offset)
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
        except OSError as e:
            if e.errno in _FULL:
                raise StorageFull(f"no space left for this part of upload {upload_id}") from e
            raise
        store.advance_upload(upload_id, offset, offset + len(data))
    return store.upload(upload_id)


def finish(store: SampleStore, folder: Path, upload_id: str) -> Path:
    """Check a complete upload and put it where an import finds it; again, the same.

    Returns:
        The file.

    Raises:
        ConfigError: there is no such upload.
        IllegalMove: bytes are missing; or they are not those that were announced: then it is given up.
    """
    with _locked(folder, upload_id) as part:
        known = store.upload(upload_id)
        final = folder / upload_id / known.name
        if known.state == "DONE":
            return final
        _open(known)
        if known.received < known.size:
            raise IllegalMove(
                f"upload {upload_id} has {known.received} of {known.size} bytes: send the rest first"
            )
        if part.exists():
            if known.sha256 is not None and _digest(part) != known.sha256:
                store.end_upload(upload_id, "ABORTED")
                part.unlink()
                raise IllegalMove(f"upload {upload_id}: not the bytes that were announced; send them again")
            final.parent.mkdir(exist_ok=True)
            os.replace(part, final)
            _sync(final.parent)
            _sync(folder)
        store.end_upload(upload_id, "DONE")
    return final


def abort(store: SampleStore, folder: Path, upload_id: str) -> None:
    """Give an upload up, and its bytes.

    Raises:
        ConfigError: there is no such upload.
        IllegalMove: it has ended already.
    """
    with _locked(folder, upload_id) as part:
        store.end_upload(store.upload(upload_id).upload_id, "ABORTED")
        part.unlink(missing_ok=True)
        shutil.rmtree(folder / upload_id, ignore_errors=True)


@contextmanager
def _locked(folder: Path, upload_id: str) -> Iterator[Path]:
    """The file of the parts, which nobody else writes meanwhile."""
    if not re.fullmatch(r"[0-9a-f]{32}", upload_id):
        raise ConfigError(f"there is no upload {upload_id}: begin a new one")
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield folder / f"{upload_id}.part"


def _open(known: Upload) -> Upload:
    if known.state != "OPEN":
        raise IllegalMove(f"upload {known.upload_id} is {known.state}: begin a new one")
    return known


def _digest(path: Path) -> str:
    found = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            found.update(block)
    return found.hexdigest()


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
