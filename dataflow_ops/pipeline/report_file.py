"""``report.json`` as it is read back. A damaged one is told, and stops nothing that goes on without it."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from typing import Any

from dataflow_ops.storage.blob import BlobStore

log = logging.getLogger(__name__)
Note = Callable[[str], Any]
UNFIT = (LookupError, TypeError, ValueError, AttributeError)
"""What somebody meets who uses a report that has lost some of its facts."""


def report_uri(version_id: str) -> str:
    """Where a version's report lies, for programs."""
    return f"versions/{version_id}/report.json"


def page_uri(version_id: str) -> str:
    """Where a version's report lies, for people."""
    return f"versions/{version_id}/report.html"


def read_page(blobs: BlobStore, version_id: str) -> str | None:
    """A version's report, HTML; None where there is none."""
    uri = page_uri(version_id)
    return None if blobs.stat(uri) is None else blobs.read(uri).decode("utf-8")


def read_report(blobs: BlobStore, version_id: str) -> tuple[dict[str, Any] | None, str]:
    """A version's report.

    Returns:
        ``(report, what is wrong with it)``; None and ``""`` where there is none.
    """
    uri = report_uri(version_id)
    if blobs.stat(uri) is None:
        return None, ""
    try:
        found = json.loads(blobs.read(uri))
    except (ValueError, RecursionError, OSError) as e:  # no JSON, no UTF-8, or the disk does not give it
        return None, f"{uri} can't be read ({type(e).__name__}: {e})"
    if not isinstance(found, dict):
        return None, f"{uri} can't be read (it is no report)"
    return found, ""


def unfit(version_id: str, e: Exception) -> str:
    """What is wrong with a report whose use ended in one of :data:`UNFIT`."""
    return f"{report_uri(version_id)} lacks what a report says ({type(e).__name__}: {e})"


def put_aside(blobs: BlobStore, version_id: str, wrong: str, what_now: str, note: Note = log.warning) -> None:
    """Move a damaged report out of the way and say so.

    Args:
        blobs: where versions lie.
        version_id: whose report.
        wrong: what is wrong with it.
        what_now: the end of the sentence, for people.
        note: told.
    """
    try:
        where = blobs.quarantine(report_uri(version_id))
    except OSError as e:
        where = f"where it was ({e})"
    note(f"{wrong}; it lies in {where} now. {what_now}")
