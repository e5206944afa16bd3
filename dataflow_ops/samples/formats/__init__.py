"""Formats of dialogue records: one small file each, listed in one literal table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from dataflow_ops.errors import ConfigError
from dataflow_ops.samples.formats import instruction, messages, sharegpt
from dataflow_ops.samples.formats.dialogue import Dialogue


@dataclass(frozen=True, slots=True)
class Format:
    """One way in which records hold dialogues.

    Attributes:
        suits: whether a record looks like it.
        read: the dialogue in a record; raises MalformedRecord.
    """

    suits: Callable[[Mapping[str, Any]], bool]
    read: Callable[[Mapping[str, Any]], Dialogue]


FORMATS: Final[dict[str, Format]] = {
    "messages": Format(messages.suits, messages.read),
    "sharegpt": Format(sharegpt.suits, sharegpt.read),
    "instruction": Format(instruction.suits, instruction.read),
}
"""Name of the format -> how it is told and read. The order is that in which they are tried."""


def format_named(name: str) -> Format:
    """A format by its name.

    Raises:
        ConfigError: there is none of this name.
    """
    try:
        return FORMATS[name]
    except KeyError:
        raise ConfigError(f"format {name!r}: use one of {', '.join(FORMATS)}") from None


def format_of(record: Mapping[str, Any]) -> str | None:
    """The name of the format that a record looks like; None for none."""
    return next((name for name, one in FORMATS.items() if one.suits(record)), None)
