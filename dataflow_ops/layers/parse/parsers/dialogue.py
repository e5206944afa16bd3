"""Dialogues: ``messages`` and ShareGPT's ``conversations`` become the same canonical turns."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from dataflow_ops.errors import MalformedRecord

ROLES: Final = {
    "user": "user",
    "human": "user",
    "prompter": "user",
    "assistant": "assistant",
    "gpt": "assistant",
    "chatgpt": "assistant",
    "bing": "assistant",
    "bard": "assistant",
    "model": "assistant",
    "ai": "assistant",
    "function_call": "assistant",
    "system": "system",
    "developer": "developer",
    "tool": "tool",
    "function": "tool",
    "observation": "tool",
}
"""Role names in the wild -> the canonical one."""


def canonical_turns(record: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Turns of a dialogue record, in order: ``role``, ``content``, then the turn's other keys, sorted.

    Consecutive turns of one role, tool turns and empty assistant turns are legal. A ``system`` string
    beside ShareGPT turns becomes the first turn.

    Raises:
        MalformedRecord: a turn without role, with an unknown role, or with content that is no text.
    """
    key = "messages" if "messages" in record else "conversations"
    raw = record[key]
    if not isinstance(raw, list):
        raise MalformedRecord(f"{key!r} must be an array of turns")
    turns = [_turn(turn, f"{key}[{i}]") for i, turn in enumerate(raw)]
    system = record.get("system")
    if key == "conversations" and isinstance(system, str) and system:
        turns.insert(0, {"role": "system", "content": system})
    return turns


def _turn(turn: object, where: str) -> dict[str, Any]:
    if not isinstance(turn, dict):
        raise MalformedRecord(f"{where} must be an object with role and content")
    role_key = "role" if "role" in turn else "from"
    content_key = "content" if "content" in turn or role_key == "role" else "value"
    name = turn.get(role_key)
    if not isinstance(name, str) or name.strip().lower() not in ROLES:
        raise MalformedRecord(f"{where}.{role_key} is {name!r:.60}; known: {', '.join(sorted(ROLES))}")
    # Parquet fills the keys that a turn lacks with null.
    rest = {k: turn[k] for k in sorted(turn) if k not in (role_key, content_key) and turn[k] is not None}
    content = turn.get(content_key)
    if isinstance(content, list):
        parts = [_part(part, where) for part in content]
        if any(text is None for text in parts):
            rest["parts"] = content
        content = "\n".join(text for text in parts if text)
    elif content is None:
        if content_key not in turn and not rest:
            raise MalformedRecord(f"{where} has no {content_key!r}")
        content = ""
    elif not isinstance(content, str):
        raise MalformedRecord(f"{where}.{content_key} must be text")
    return {"role": ROLES[name.strip().lower()], "content": content, **rest}


def _part(part: object, where: str) -> str | None:
    """Text of one content part; None for images and other parts that have none."""
    if isinstance(part, str):
        return part
    if not isinstance(part, dict):
        raise MalformedRecord(f"{where}: a content part must be an object")
    text = part.get("text")
    return text if isinstance(text, str) else None


def render(turns: Sequence[Mapping[str, Any]]) -> str:
    """Readable text of a dialogue: ``role: content`` paragraphs; tool calls as JSON on their own line.

    Nothing in it is a template of any model: strings that look like special tokens are ordinary text.
    """
    lines = []
    for turn in turns:
        line = f"{turn['role']}: {turn['content']}".rstrip(" ")
        calls = turn.get("tool_calls") or turn.get("function_call")
        if calls:
            line += "\n" + json.dumps(calls, ensure_ascii=False, sort_keys=True, default=str)
        lines.append(line)
    return "\n\n".join(lines)


def has_content(turns: Sequence[Mapping[str, Any]]) -> bool:
    """Whether any turn says or calls anything."""
    return any(
        turn["content"].strip() or turn.get("tool_calls") or turn.get("function_call") or turn.get("parts")
        for turn in turns
    )
