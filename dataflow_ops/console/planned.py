"""How many tasks the steps of a run will have: an orchestrator links those of a bundle when that begins."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any, Final

from dataflow_ops.console.shown_layers import LAYER_OF, Totals
from dataflow_ops.errors import CorruptOutput
from dataflow_ops.pipeline.flow import partitions
from dataflow_ops.state.records import RunRecord
from dataflow_ops.state.store import StateStore
from dataflow_ops.storage.opening import Root

TO_COME: Final = "TO_COME"
"""State, for people's pages, of a task that no bundle has linked to its run yet."""

Planned = Mapping[str, int]
"""Step → its tasks in all."""


def planned(root: Root, state: StateStore, row: RunRecord) -> Planned:
    """Tasks of every step, which follow from the listing alone; nothing before the sources are listed.

    Args:
        root: storage root.
        state: open state store.
        row: the run.
    """
    listing = state.outputs_of_partitions(row.run_id, "discover", "chunks", ["all"]).get("all")
    if listing is None or not listing.rows:
        return {}
    interval = json.loads(row.settings).get("interval") or {}
    ranges = tuple(sorted((interval.get("ranges") or {}).items()))
    key = (listing.uri, listing.size, listing.mtime_ns, listing.sha256, listing.rows, listing.slices)
    return _planned(root, key, ranges)


def with_those_to_come(totals: Totals, planned: Planned) -> Totals:
    """Sums in which the step under way has the tasks of all its bundles, also of those that have not begun.

    One that another step has followed has all that it will ever have: chunks may have died before it.
    """
    last = [step for step in LAYER_OF if step in totals][-1:]
    missing = {step: planned.get(step, 0) - totals[step].number for step in last}
    return {
        step: replace(one, tasks={**one.tasks, TO_COME: missing[step]}) if missing.get(step, 0) > 0 else one
        for step, one in totals.items()
    }


@lru_cache(maxsize=256)
def _planned(root: Root, key: tuple[Any, ...], ranges: tuple[tuple[str, int], ...]) -> Planned:
    """By what the listing is: it never changes, and one of many chunks takes a moment to read."""
    import pyarrow.compute as pc

    from dataflow_ops.layers.ingest.numbers import numbers_for
    from dataflow_ops.storage.chunk_store import ChunkStore
    from dataflow_ops.storage.opening import open_store
    from dataflow_ops.values import Output

    try:
        table = ChunkStore(open_store(root)).read(Output("chunks", *key), "", ("bytes",))
    except CorruptOutput:
        return {}
    numbers = numbers_for(pc.sum(table["bytes"]).as_py() or 0, dict(ranges))
    chunks = [""] * table.num_rows
    return {step: len(partitions(step, numbers, chunks)) for step in LAYER_OF}
