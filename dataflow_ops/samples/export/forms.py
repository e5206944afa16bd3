"""The forms in which a dialogue is written; a dialogue that a form can't hold is left out with the reason."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from dataflow_ops.samples.export.joining import LeftOut, Record


def messages(record: Record) -> dict[str, Any]:
    """``id``, ``messages`` and the record's further keys; its own ``id`` becomes ``record_id``."""
    return {"id": record.id, **_more(record, "messages"), "messages": [dict(turn) for turn in record.turns]}


def instruction(record: Record) -> dict[str, Any]:
    """``instruction``, ``input`` (empty), ``output``, ``system`` and ``history`` (pairs of earlier turns).

    Raises:
        LeftOut: turns of tools, more than text, or users and assistants that don't take turns.
    """
    turns = list(record.turns)
    system = ""
    if turns and turns[0]["role"] in ("system", "developer"):
        system = turns.pop(0)["content"]
    if any(turn["role"] not in ("user", "assistant") for turn in turns):
        raise LeftOut("turns of other roles than user and assistant")
    if any(turn.keys() - {"role", "content", "name"} for turn in turns):
        raise LeftOut("a turn with more than text")
    pairs = _pairs(turns)
    *history, (asked, answered) = pairs
    told = {
        "system": system,
        "history": [list(pair) for pair in history],
        "instruction": asked,
        "input": "",
        "output": answered,
    }
    return {"id": record.id, **_more(record, *told), **told}


def _more(record: Record, *ours: str) -> dict[str, Any]:
    """The record's further keys, none under a name that the form needs."""
    return {f"record_{key}" if key in ("id", *ours) else key: value for key, value in record.more.items()}


def _pairs(turns: Sequence[Mapping[str, Any]]) -> list[tuple[str, str]]:
    if not turns or len(turns) % 2:
        raise LeftOut("the last turn is not an answer")
    pairs = []
    for asked, answered in zip(turns[::2], turns[1::2], strict=True):
        if (asked["role"], answered["role"]) != ("user", "assistant"):
            raise LeftOut("user and assistant don't take turns")
        if not answered["content"].strip():
            raise LeftOut("an empty answer")
        pairs.append((asked["content"], answered["content"]))
    return pairs


FORMS: Final[Mapping[str, Callable[[Record], dict[str, Any]]]] = {
    "messages": messages,
    "instruction": instruction,
}
"""Name → record as the object of one line."""
