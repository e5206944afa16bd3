"""The funnel: six layers, what came into each, what stayed, how fast, and against the last full run."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from dataflow_ops.console.place import Place
from dataflow_ops.console.planned import Planned, planned, with_those_to_come
from dataflow_ops.console.runs import full_before, is_live, known_run
from dataflow_ops.console.shown_layers import ENTRY, SHOWN, Totals, is_done, layers_until, steps_of, through
from dataflow_ops.state.records import RunRecord
from dataflow_ops.state.totals import SETTLED, StepTotals

WINDOW_S = 300.0
"""Rates of what is under way are measured over the last five minutes."""
TELLING = 1000
"""Documents of a layer that is not done, from which its share is set against the last full run's."""
LEAST_FRESH = 0.5
"""Of a layer's tasks, those that the run itself must have done before a rate is told."""
BYTES_PER_TOKEN = 4.06
"""UTF-8 bytes, as ``label`` estimates them on the demo corpus (96.4 MB, 23.7 M tokens); for first runs."""

Recent = Mapping[str, tuple[int, int, int, float]]


def layers(place: Place, run_id: str) -> dict[str, Any]:
    """All layers of a run.

    ``complete`` is False where sums are still being added up: ask again in a moment.

    Raises:
        NotThere: no such run.
    """
    row = known_run(place, run_id)
    until = place.sums.until()
    summed, complete = place.sums.totals(run_id, until)
    to_come = planned(place.home.root, place.state, row) if is_live(row) else {}
    totals = with_those_to_come(summed, to_come)
    before_run, before = full_before(place, row, until)
    recent: Recent = {}
    window = 0.0
    if is_live(row):
        now = place.state.now()
        window = max(1.0, min(WINDOW_S, now - (row.started_at or row.created_at)))
        recent = place.state.recent_work(run_id, list(totals), now - window)
    paused = row.state == "PAUSED" or place.state.paused(run_id, row.dataset) is not None
    tokens = tokens_per_document(totals, before)
    shown = [
        _layer(name, row, totals, before, recent, window, tokens, paused, to_come)
        for name in layers_until(row.until_layer)
    ]
    known = {one["layer"] for one in shown}
    for name, _ in SHOWN:
        if name not in known:
            shown.append(_layer(name, row, {}, before, {}, 0.0, None, False, {}))
    return {
        "layers": shown,
        "complete": complete,
        "previous_run": None if before_run is None else before_run.run_id,
        "at": time.time(),
    }


def tokens_per_document(totals: Totals, before: Totals) -> float | None:
    """Tokens of the average document: as ``label`` counted them in this run or the last full one.

    Where neither has come so far, from the bytes that the filter read.
    """
    for known in (totals, before):
        label = known.get("label")
        if label is not None and label.kept:
            return label.tokens_out / label.kept
    read = totals.get("filter")
    if read is None or not read.documents_in:
        return None
    return read.bytes_in / read.documents_in / BYTES_PER_TOKEN


def _layer(
    name: str,
    row: RunRecord,
    totals: Totals,
    before: Totals,
    recent: Recent,
    window: float,
    tokens: float | None,
    paused: bool,
    to_come: Planned,
) -> dict[str, Any]:
    mine = [totals[step] for step in steps_of(name, row.until_layer) if step in totals]
    later = sum(to_come.get(step, 0) for step in steps_of(name, row.until_layer) if step not in totals)
    flow = through(name, totals, row.until_layer)
    state = _state(name, row, totals, mine, paused)
    rate = _rate(name, mine, recent, window, state)
    was = through(name, before) if before else None
    previous = None
    if was is not None and was.came is not None:
        previous = {"in": was.came, "kept": was.kept, "removed_share": was.removed_share}
    change = None
    if previous is not None and was is not None:
        if _is_telling(flow.came, state) and flow.removed_share is not None and was.removed_share is not None:
            change = was.removed_share - flow.removed_share
    return {
        "layer": name,
        "steps": [_step(one) for one in mine],
        "state": state,
        "tasks": sum(one.number for one in mine) + (0 if state in ("waiting", "done") else later),
        "done": sum(one.tasks.get(ended, 0) for one in mine for ended in SETTLED),
        "in": flow.came,
        "kept": flow.kept,
        "removed": flow.removed,
        "removed_share": flow.removed_share,
        "parts": parts_of(mine) if name == "parse" else 0,
        "documents_per_s": rate,
        "tokens_per_s": rate * tokens
        if rate is not None and tokens is not None and name != "ingest"
        else None,
        "previous": previous,
        "change": change,
    }


def parts_of(mine: list[StepTotals]) -> int:
    """Documents beyond the records that were kept: long texts go on in parts, each of its own."""
    return sum(max(0, one.documents_out - one.kept) for one in mine if one.step == "parse")


def _is_telling(came: int | None, state: str) -> bool:
    """Whether a share can be compared with a whole run's: the first few chunks are no fair sample."""
    return state == "done" or (came or 0) >= TELLING


def _step(one: StepTotals) -> dict[str, Any]:
    return {
        "step": one.step,
        "tasks": one.number,
        "done": one.done,
        "running": one.tasks.get("RUNNING", 0),
        "paused": one.tasks.get("PAUSED", 0),
        "failed": one.tasks.get("FAILED", 0),
        "dead": one.tasks.get("DEAD", 0),
        "in": one.documents_in,
        "kept": one.kept,
        "rejected": one.rejected,
        "dead_documents": one.dead,
        "left_out": one.documents_in - one.business,
        "seconds": one.seconds,
    }


def _state(name: str, row: RunRecord, totals: Totals, mine: list[StepTotals], paused: bool) -> str:
    if not mine:
        return "waiting"
    if is_done(name, totals, row.until_layer):
        return "done"
    if not is_live(row):
        return "failed"
    return "paused" if paused else "running"


def _rate(name: str, mine: list[StepTotals], recent: Recent, window: float, state: str) -> float | None:
    """Documents a second: lately where the layer is under way, else from its first task to its last.

    Of tasks that this run found done already nobody knows how fast they would have been.
    """
    if state == "running":
        lately = max((recent[one.step][1] for one in mine if one.step in recent), default=0)
        return lately / window if lately else None
    entry = next((one for one in mine if one.step == ENTRY[name]), None)
    if state != "done" or entry is None or not entry.fresh.get("documents_in"):
        return None
    did = sum(one.fresh.get("tasks") or 0 for one in mine)
    if did < LEAST_FRESH * sum(one.number for one in mine):
        return None  # the few that ran stand for nothing
    firsts = [first for one in mine if (first := one.fresh.get("first")) is not None]
    lasts = [last for one in mine if (last := one.fresh.get("last")) is not None]
    took = max(lasts) - min(firsts) if firsts and lasts else 0.0
    return (entry.fresh["documents_in"] or 0) / took if took > 0 else None
