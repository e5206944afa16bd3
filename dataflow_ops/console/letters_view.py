"""Dead letters of a run by what went wrong, and one answer to a whole group."""

from __future__ import annotations

from collections import Counter
from typing import Any, Literal

from dataflow_ops.console.place import Place
from dataflow_ops.console.runs import command, known_run
from dataflow_ops.console.said import said
from dataflow_ops.console.shown_layers import LAYER_OF
from dataflow_ops.console.where_view import steps_in
from dataflow_ops.state.glance import LetterGroup
from dataflow_ops.state.letter_pages import LetterGlance

STATES = ("open", "retried", "dropped")
PAGE = 20
"""Letters of a group that are shown at a time."""
SHORT = 12
"""Digits of a letter's id that commands show and take."""

Answer = Literal["retry", "drop"]


def letters(place: Place, run_id: str, layer: str | None = None) -> dict[str, Any]:
    """Groups, those with most open letters first.

    Raises:
        NotThere: no such run.
        ConfigError: no such layer.
    """
    row = known_run(place, run_id)
    steps = steps_in(layer)
    until = place.sums.until()
    found, complete = place.sums.letters(run_id, until)
    messages, counted = place.sums.any(
        ("messages", run_id), lambda: place.state.messages_of_groups(run_id), until
    )
    groups: dict[tuple[str, str], list[LetterGroup]] = {}
    for one in found:
        if one.step in steps:
            groups.setdefault((one.error, one.step), []).append(one)
    places = place.state.letter_places([_example(parts) for parts in groups.values()])
    shown = [
        _group(error, step, parts, places, (messages or {}).get((error, step)))
        for (error, step), parts in groups.items()
    ]
    shown.sort(key=lambda one: (-one["states"]["open"], -one["count"], one["error"], one["step"]))
    return {
        "groups": shown,
        "complete": complete and counted,
        "cli": command("dead-letters", "list", "--dataset", row.dataset),
    }


def page(place: Place, run_id: str, error: str, step: str, after: str = "") -> dict[str, Any]:
    """The letters of a group, :data:`PAGE` at a time, by id.

    Args:
        place: the opened home.
        run_id: whose.
        error: class name.
        step: where it was met.
        after: ``next`` of the page before; the empty string for the first.

    Returns:
        ``letters``, and ``next`` where there are more.

    Raises:
        NotThere: no such run.
    """
    dataset = known_run(place, run_id).dataset
    found = place.state.letter_page(run_id, error, step, PAGE + 1, after)
    return {
        "letters": [_letter(one, dataset) for one in found[:PAGE]],
        "next": found[PAGE - 1].id if len(found) > PAGE else None,
    }


def _letter(one: LetterGlance, dataset: str) -> dict[str, Any]:
    return {
        "id": one.id,
        "source": one.source,
        "path": one.path,
        "position": one.position if one.position >= 0 else None,
        "message": one.message,
        "state": one.state,
        "cli": {
            action: command("dead-letters", action, one.id[:SHORT], "--dataset", dataset)
            for action in ("retry", "drop")
        },
    }


def change(place: Place, run_id: str, action: Answer, error: str, step: str, letter: str = "") -> int:
    """Retry or drop all open letters of a group, or one of them; return how many there were.

    What somebody dropped stays out when its group is tried again: only by itself, named by its id, does it
    come back.

    Raises:
        NotThere: no such run.
    """
    known_run(place, run_id)
    states = ("open", "dropped") if action == "retry" and letter else ("open",)
    ids = place.state.letters_of_group(run_id, error, step, states, letter)
    changed = place.state.retry_dead_letter(ids) if action == "retry" else place.state.drop_dead_letters(ids)
    place.sums.forget(run_id)
    return changed


def told(place: Place, run_id: str, action: Answer, number: int) -> dict[str, Any]:
    """What happens next, for a person."""
    if not number:
        return said("letters_none")
    if action == "drop":
        return said("letters_dropped", count=number)
    return said("letters_retried", count=number, dataset=known_run(place, run_id).dataset)


def _example(parts: list[LetterGroup]) -> str:
    return next((part.example for part in parts if part.state == "open"), parts[0].example)


def _group(
    error: str,
    step: str,
    parts: list[LetterGroup],
    places: dict[str, tuple[str, str, str]],
    messages: int | None,
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
        "messages": messages,
        "parser": parsers.most_common(1)[0][0] or None,
        "example": {"source": source, "path": path, "message": message},
        "states": states,
    }
