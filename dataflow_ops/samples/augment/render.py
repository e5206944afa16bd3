"""A template filled with a sample: the messages of one request. Text of samples is never a template."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from dataflow_ops.samples.augment.templates import PLACEHOLDER, Template
from dataflow_ops.state.samples.targets import Turn

_SENT: Final = ("name", "tool_calls", "tool_call_id")
"""Keys of a turn beside role and content that the interface knows."""


def render(template: Template, dialogue: Sequence[Turn], target: Turn, draw: int) -> list[dict[str, Any]]:
    """The messages that are sent.

    Args:
        template: with placeholders, which are replaced once: what a sample's text brings in stays as it is.
        dialogue: all turns of the target's dialogue, in order.
        target: the turn that is asked about.
        draw: from 0.
    """
    before = [turn for turn in dialogue if turn.turn < target.turn]
    after = [turn for turn in dialogue if turn.turn > target.turn]
    values: Mapping[str, Callable[[], str]] = {
        "turn": lambda: target.content,
        "role": lambda: target.role,
        "dialogue": lambda: as_text(dialogue),
        "before": lambda: as_text(before),
        "after": lambda: as_text(after),
        "draw": lambda: str(draw + 1),
    }

    def filled(found: re.Match[str]) -> str:
        return values[found[1]]()

    parts = {"before": before, "through": [*before, target], "whole": list(dialogue)}
    messages: list[dict[str, Any]] = []
    for message in template.messages:
        if message.dialogue is not None:
            messages.extend(_sent(turn) for turn in parts[message.dialogue])
        else:
            messages.append({"role": message.role, "content": PLACEHOLDER.sub(filled, message.content or "")})
    return messages


def as_text(turns: Sequence[Turn]) -> str:
    """Turns as paragraphs ``ROLE: TEXT``."""
    return "\n\n".join(f"{turn.role}: {turn.content}" for turn in turns)


def _sent(turn: Turn) -> dict[str, Any]:
    return {"role": turn.role, "content": turn.content, **{k: turn.meta[k] for k in _SENT if k in turn.meta}}
