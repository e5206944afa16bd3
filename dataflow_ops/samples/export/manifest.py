"""What an export is made of: files in, settings, shards out with their hashes, and what was left out."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final

from dataflow_ops.samples.export.step import LEFT_OUT, Shard
from dataflow_ops.state.samples.records import SampleTask

FORMAT: Final = "dataflow-samples/1"


def manifest(
    task: SampleTask, files: Sequence[Mapping[str, Any]], shards: Sequence[Shard]
) -> dict[str, bytes]:
    """``manifest.json`` and ``SHA256SUMS``; the same task gives the same bytes.

    Args:
        task: with its final counts.
        files: ``id``, ``path``, ``sha256`` and ``format`` of each, in order.
        shards: in order.
    """
    counts = {name: int(n) for name, n in sorted(task.counts.items())}
    told = {
        "format": FORMAT,
        "dataset": task.dataset,
        "task": task.task_id,
        "settings": task.settings,
        "files": list(files),
        "shards": [asdict(shard) for shard in shards],
        "counts": {name: n for name, n in counts.items() if not name.startswith(LEFT_OUT)},
        "left_out": {name[len(LEFT_OUT) :]: n for name, n in counts.items() if name.startswith(LEFT_OUT)},
    }
    text = json.dumps(told, ensure_ascii=False, indent=2, sort_keys=True) + "\n"
    sums = "".join(f"{shard.sha256}  {shard.path}\n" for shard in shards)
    return {"manifest.json": text.encode(), "SHA256SUMS": sums.encode()}
