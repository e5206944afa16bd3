"""What killed processes leave behind, removed when the next run begins."""

from __future__ import annotations

from dataflow_ops.engine.scratch import sweep_scratch
from dataflow_ops.state.store import StateStore
from dataflow_ops.storage.blob import BlobStore
from dataflow_ops.storage.staging import Staging

TEMPORARY_AGE_S = 24 * 3600.0
"""A temporary that nobody has written to for a day belongs to no attempt: a reduce may open its output
hours before it writes."""


def tidy(state: StateStore, blobs: BlobStore) -> int:
    """Remove old temporaries, staged rows of tasks that succeeded, and scratch folders of dead processes.

    Returns:
        How many things were removed.
    """
    removed = blobs.sweep(TEMPORARY_AGE_S) + sweep_scratch()
    keys = sorted({blob.uri.split("/")[1] for blob in blobs.list("staging/")})
    for key, record in state.records(keys).items():
        if record.state == "SUCCESS":  # killed between its commit and its clearing up
            removed += Staging(blobs, key).clear()
    return removed
