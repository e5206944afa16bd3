"""What the command line tells people to type next works on the home that they named."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Mapping, Sequence
from typing import Any

GROUPS = (
    "backfills",
    "dead-letters",
    "relay",
    "samples failures",
    "samples template",
    "samples",
    "stack",
    "versions",
)
"""Words of ``dataflow`` that another word follows; of two that begin alike the longer one first."""
HOMELESS = ("version", "stack worker", "stack compose", "stack env")
"""Commands that take no ``--home``."""

_COMMAND = re.compile(rf"\bdataflow ((?:{'|'.join(GROUPS)}) [a-z][a-z-]*|[a-z][a-z-]*)(?![\w-])")
_END = re.compile(r"`|\n|   |$")


def named_home(arguments: Sequence[str]) -> str | None:
    """The folder that a command line names with ``--home``; None where it names none."""
    words = list(arguments[: arguments.index("--")] if "--" in arguments else arguments)
    for place in reversed(range(len(words))):
        word = words[place]
        if word == "--home":
            return words[place + 1] if place + 1 < len(words) else None
        if word.startswith("--home="):
            return word.removeprefix("--home=")
    return None


def with_home(text: str, arguments: Sequence[str]) -> str:
    """Commands in a text for people, with the ``--home`` that the command which says it was called with.

    Commands of the platform get it from each other only: its home need not be that of a run.

    Args:
        text: what is printed.
        arguments: the words behind ``dataflow``.
    """
    home = named_home(arguments)
    if home is None:
        return text
    platform = arguments[0] == "stack"

    def told(found: re.Match[str]) -> str:
        command = found[1]
        end = _END.search(text, found.end())
        rest = text[found.end() : end.start() if end else None]
        if command in (*HOMELESS, *GROUPS) or "--home" in rest:
            return found[0]
        if command.startswith("stack ") and not platform:
            return found[0]
        return f"{found[0]} --home {shlex.quote(home)}"

    return _COMMAND.sub(told, text)


def with_home_in(value: Any, fields: Collection[str], arguments: Sequence[str]) -> Any:
    """What a program is given, with :func:`with_home` in those fields that hold a text for people.

    Other fields hold names and texts from outside, and stay as they are.

    Args:
        value: mappings, sequences and plain values, as JSON has them.
        fields: keys of the texts, at any depth; a text, or a sequence of them.
        arguments: the words behind ``dataflow``.
    """
    if isinstance(value, Mapping):
        return {
            key: _texts(one, arguments) if key in fields else with_home_in(one, fields, arguments)
            for key, one in value.items()
        }
    if isinstance(value, (list, tuple)):
        return [with_home_in(one, fields, arguments) for one in value]
    return value


def _texts(value: Any, arguments: Sequence[str]) -> Any:
    if isinstance(value, str):
        return with_home(value, arguments)
    if isinstance(value, (list, tuple)):
        return [_texts(one, arguments) for one in value]
    return value
