"""Instruction triples: ``{"instruction": …, "input": …, "output": …}``, with ``system`` and ``history``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from dataflow_ops.errors import MalformedRecord
from dataflow_ops.layers.parse.readers.jsonvalue import type_name
from dataflow_ops.samples.formats.dialogue import Dialogue

_INSTRUCTION: Final = ("instruction", "prompt")
_INPUT: Final = ("input", "context")
_OUTPUT: Final = ("output", "response", "completion")


def suits(record: Mapping[str, Any]) -> bool:
    """Whether a record looks like this format."""
    return any(k in record for k in _INSTRUCTION) and any(k in record for k in _OUTPUT)


def read(record: Mapping[str, Any]) -> Dialogue:
    """Earlier rounds of ``history``, then one question (instruction and input) and its answer.

    The input stands behind the instruction, after a blank line, and once more by itself beside the turn.

    Raises:
        MalformedRecord: no instruction or no output, or one of the fields is no text.
    """
    asked, answer = _named(record, _INSTRUCTION), _named(record, _OUTPUT)
    if asked is None or answer is None:
        lacks = _INSTRUCTION if asked is None else _OUTPUT
        raise MalformedRecord(f"no key {' or '.join(repr(k) for k in lacks)}")
    given = _named(record, _INPUT)
    question, more = _text(record, asked), "" if given is None else _text(record, given)
    turns: list[dict[str, Any]] = []
    if system := _text(record, "system"):
        turns.append({"role": "system", "content": system})
    for number, pair in enumerate(record.get("history") or ()):
        if not (isinstance(pair, list) and len(pair) == 2 and all(isinstance(t, str) for t in pair)):
            raise MalformedRecord(f"history[{number}] must be a pair of texts")
        turns += [{"role": "user", "content": pair[0]}, {"role": "assistant", "content": pair[1]}]
    user = {"role": "user", "content": "\n\n".join(t for t in (question, more) if t)}
    turns.append({**user, "input": more} if more else user)
    turns.append({"role": "assistant", "content": _text(record, answer)})
    used = {asked, answer, given, "system", "history"}
    return Dialogue(turns, {k: v for k, v in record.items() if k not in used})


def _named(record: Mapping[str, Any], names: tuple[str, ...]) -> str | None:
    return next((name for name in names if name in record), None)


def _text(record: Mapping[str, Any], name: str) -> str:
    value = record.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise MalformedRecord(f"{name!r} must be a text, not {type_name(value)}")
    return value
