"""Which fault lies behind an error, for whoever must say what to do about it."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy.exc import DBAPIError

from dataflow_ops.errors import CommitUnknown, DataFlowError, OutputConflict, StorageFull
from dataflow_ops.state.database import translate

_FULL = (errno.ENOSPC, errno.EDQUOT)


def plain(error: Exception) -> Exception:
    """The error as it should be told: what failed for want of space is a full disk, whoever met it first.

    SQLite says at COMMIT that the disk is full; then nothing was committed, and nothing is unknown.
    """
    if isinstance(error, OSError) and error.errno in _FULL:
        return StorageFull(f"no space left: {error}")
    cause = error.__cause__ if isinstance(error, CommitUnknown) else error
    if isinstance(cause, DBAPIError):
        known = translate(cause)
        return known if isinstance(known, StorageFull) else error
    return error


@contextmanager
def told_plainly() -> Iterator[None]:
    """Around whatever a person calls: errors leave it as :func:`plain` tells them."""
    try:
        yield
    except (DataFlowError, DBAPIError, OSError) as e:
        told = plain(e)
        if told is e:
            raise
        raise told from e


def is_systemic(error: Exception) -> bool:
    """Whether the fault concerns the whole run."""
    return isinstance(error, CommitUnknown) or (isinstance(error, DataFlowError) and error.systemic)


def is_blameless(error: Exception) -> bool:
    """Whether a systemic fault lies outside the task. Two results for one key are the task's own doing."""
    return is_systemic(error) and not isinstance(error, OutputConflict)
