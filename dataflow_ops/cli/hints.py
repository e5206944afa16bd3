"""What the command line tells people to type next works on the home that they named."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

GROUPS = ("backfills", "dead-letters", "stack", "versions")
"""Words of ``dataflow`` that another word follows."""
HOMELESS = ("version", "stack worker", "stack compose", "stack env")
"""Commands that take no ``--home``."""

_COMMAND = re.compile(rf"\bdataflow ((?:{'|'.join(GROUPS)}) [a-z][a-z-]*|[a-z][a-z-]*)(?![\w-])")
_END = re.compile(r"`|\n|   |$")


def named_home(arguments: Sequence[str]) -> str | None:
    """The folder that a command line names with ``--home``; None where it names none."""
    words = list(arguments[: arguments.index("--")] if "--" in arguments else arguments)
    for word, following in zip(words[::-1], [None, *words[:0:-1]], strict=True):
        if word == "--home":
            return following
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
