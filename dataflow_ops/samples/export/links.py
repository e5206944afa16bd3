"""Where the files of an export can be fetched."""

from __future__ import annotations

import json

from dataflow_ops.errors import ConfigError
from dataflow_ops.state.samples.store import SampleStore
from dataflow_ops.storage.blob import BlobStore
from dataflow_ops.storage.opening import Root, address
from dataflow_ops.storage.s3 import S3Store


def links_of(store: SampleStore, blobs: BlobStore, root: Root, task_id: str, seconds: int) -> dict[str, str]:
    """Name of each file of an export → a link that holds for a while, or its path in a folder.

    Args:
        store: open.
        blobs: where the export lies.
        root: of ``blobs``.
        task_id: the export.
        seconds: how long the links hold, at most a week.

    Raises:
        ConfigError: it is no export, or not done yet.
        CorruptOutput: a file of it is gone.
        StateError: there is no such task.
    """
    task = store.sample_task(task_id)
    if task.kind != "export" or task.state != "SUCCESS":
        raise ConfigError(
            f"{task_id} is a task of kind {task.kind}, {task.state}; links are for exports that are done"
            f" (`dataflow samples tasks --dataset {task.dataset}` lists them)"
        )
    folder = f"exports/{task.dataset}/{task_id}"
    told = json.loads(blobs.read(f"{folder}/manifest.json"))
    names = [*(shard["path"] for shard in told["shards"]), "manifest.json", "SHA256SUMS"]
    if isinstance(blobs, S3Store):
        return {name: blobs.link_for(f"{folder}/{name}", seconds) for name in names}
    return {name: address(root, f"{folder}/{name}") for name in names}
