"""Dead letters of a run by what went wrong, and one answer to a whole group."""

from __future__ import annotations

from collections import Counter
from typing import Any, Literal

from dataflow_ops.console.place import Place
from dataflow_ops.console.runs import command, known_run
from dataflow_ops.console.shown_layers import LAYER_OF
from dataflow_ops.console.where_view import steps_in
from dataflow_ops.state.glance import LetterGroup

STATES = ("open", "retried", "dropped")


def letters(place: Place, run_id: str, layer: str | None = None) -> dict[str, Any]:
    """Groups, those with most open letters first.

    Raises:
        NotThere: no such run.
        ConfigError: no such layer.
    """
    row = known_run(place, run_id)
    steps = steps_in(layer)
    found, complete = place.sums.letters(run_id)
    groups: dict[tuple[str, str], list[LetterGroup]] = {}
    for one in found:
        if one.step in steps:
            groups.setdefault((one.error, one.step), []).append(one)
    places = place.state.letter_places([_example(parts) for parts in groups.values()])
    shown = [_group(error, step, parts, places) for (error, step), parts in groups.items()]
    shown.sort(key=lambda one: (-one["states"]["open"], -one["count"], one["error"], one["step"]))
    return {
        "groups": shown,
        "complete": complete,
        "cli": command("dead-letters", "list", "--dataset", row.dataset),
    }


def change(place: Place, run_id: str, action: Literal["retry", "drop"], error: str, step: str) -> int:
    """Retry or drop all open letters of a group; return how many there were.

    Raises:
        NotThere: no such run.
    """
    known_run(place, run_id)
    states = ("open", "dropped") if action == "retry" else ("open",)
    ids = place.state.letters_of_group(run_id, error, step, states)
    changed = place.state.retry_dead_letter(ids) if action == "retry" else place.state.drop_dead_letters(ids)
    place.sums.forget(run_id)
    return changed


def said(place: Place, run_id: str, action: Literal["retry", "drop"], number: int) -> str:
    """What happens next, for a person."""
    if not number:
        return "No letter of this group was open any more."
    if action == "drop":
        return f"{number:,} letters dropped: no run will read these records again."
    row = known_run(place, run_id)
    return f"{number:,} letters wait for the next run of {row.dataset}: it reads their chunks anew."


def _example(parts: list[LetterGroup]) -> str:
    return next((part.example for part in parts if part.state == "open"), parts[0].example)


def _group(
    error: str, step: str, parts: list[LetterGroup], places: dict[str, tuple[str, str, str]]
) -> dict[str, Any]:
    states = dict.fromkeys(STATES, 0)
    parsers: Counter[str] = Counter()
    for part in parts:
        states[part.state] = states.get(part.state, 0) + part.number
        parsers[part.parser] += part.number
    source, path, message = places.get(_example(parts), ("", "", ""))
    return {
        "error": error,
        "step": step,
        "layer": LAYER_OF.get(step, step),
        "level": parts[0].level,
        "count": sum(part.number for part in parts),
        "parser": parsers.most_common(1)[0][0] or None,
        "example": {"source": source, "path": path, "message": message},
        "states": states,
    }
