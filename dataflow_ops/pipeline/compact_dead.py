"""Compactions that died and were overtaken: no command goes on with them, and they hold versions back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dataflow_ops.errors import IllegalMove
from dataflow_ops.pipeline.ordered import GATE
from dataflow_ops.pipeline.retention import bases_of
from dataflow_ops.pipeline.status import SILENT_S, at_work
from dataflow_ops.state.records import COMPACT, RunRecord
from dataflow_ops.state.store import StateStore


def end_overtaken(
    state: StateStore, log: Callable[[str], Any], *, dataset: str | None = None, silent_s: float = SILENT_S
) -> list[str]:
    """Cancel compactions that nobody works on, of versions that others have taken the place of meanwhile.

    What they have made stays: the same command for the same version begins with it. One that somebody paused
    is left to whoever paused it.

    Args:
        state: open state store.
        log: told of each.
        dataset: of this data set; None: of all.
        silent_s: seconds without a sign of life.

    Returns:
        Their runs.
    """
    ended = []
    for row in state.live_runs(dataset):
        if row.mode != COMPACT or row.state == "PAUSED" or _is_alive(state, row, silent_s):
            continue
        version, now = bases_of(row)[0], state.current(row.dataset)
        # A kill between the pointer and the run's end leaves what it made current.
        if now is None or version in (now.version_id, now.base if now.is_compact else None):
            continue
        why = (
            f"nobody works on it, and {now.version_id} is current now: `dataflow versions compact {version}`"
            " begins it anew"
        )
        try:
            state.cancel(row.run_id, why)
        except IllegalMove:
            continue  # it has just ended by itself
        log(f"run {row.run_id} is cancelled: {why}")
        ended.append(row.run_id)
    return ended


def _is_alive(state: StateStore, row: RunRecord, silent_s: float) -> bool:
    """Whether it has given a sign of life: by itself, by its turn that it keeps, or by a task."""
    gate = state.lease(row.dataset, GATE, "")
    has_turn = gate is not None and gate.held and gate.owner == row.run_id
    return has_turn or state.seconds_since(row.updated_at) < silent_s or at_work(state, row.run_id)
