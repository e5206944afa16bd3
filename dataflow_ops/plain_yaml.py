"""YAML that people write by hand: read within bounds, so that no text takes long, or breaks its reader."""

from __future__ import annotations

from typing import Any, Final

import yaml

MAX_BYTES: Final = 2**20
MAX_VALUES: Final = 100_000
"""Most values and keys, each alias counted as what it stands for."""
MAX_DEPTH: Final = 32
# The safe loader in C, which is ten times as fast.
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class Unreadable(ValueError):
    """The text is no YAML, or not of the plain kind: the message says why."""


def read_yaml(text: str) -> Any:
    """Values of a YAML text.

    Raises:
        Unreadable: it is no YAML; or it is above :data:`MAX_BYTES`, holds more than :data:`MAX_VALUES` once
            its aliases are written out, or is nested deeper than :data:`MAX_DEPTH`; or a text in it is none
            that a database takes (NUL, half of a surrogate pair).
    """
    size = len(text.encode("utf-8", "surrogatepass"))
    if size > MAX_BYTES:
        raise Unreadable(f"it has {size:,} bytes; {MAX_BYTES:,} are the most")
    try:
        _check(text)
        return yaml.load(text, _Loader)
    except yaml.YAMLError as e:
        raise Unreadable(str(e)) from e
    except Unreadable:
        raise
    except ValueError as e:  # a date such as 2026-99-99, a number of thousands of digits
        raise Unreadable(f"a value can't be read ({e}); quote it if it is a text") from e


def _check(text: str) -> None:
    """Count what would be made of the text, event by event: nothing is built, and nothing calls itself."""
    anchors: dict[str, tuple[int, int]] = {}
    opened: list[tuple[str | None, list[int]]] = [(None, [0, 0])]

    def add(values: int, height: int, line: int) -> None:
        within = opened[-1][1]
        within[0] += values
        within[1] = max(within[1], height)
        if within[0] > MAX_VALUES:
            raise Unreadable(
                f"line {line}: more than {MAX_VALUES:,} values, with all aliases (*name) written out"
            )
        if len(opened) + height > MAX_DEPTH + 1:
            raise Unreadable(f"line {line}: nested more than {MAX_DEPTH} levels deep")

    event: Any
    for event in yaml.parse(text, Loader=_Loader):
        line = event.start_mark.line + 1
        if isinstance(event, yaml.CollectionStartEvent):
            opened.append((event.anchor, [1, 0]))
            add(0, 0, line)
        elif isinstance(event, yaml.CollectionEndEvent):
            anchor, (values, height) = opened.pop()
            if anchor is not None:
                anchors[anchor] = (values, height + 1)
            add(values, height + 1, line)
        elif isinstance(event, yaml.AliasEvent):
            if any(anchor == event.anchor for anchor, _ in opened):
                raise Unreadable(f"line {line}: *{event.anchor} stands inside of what it stands for")
            add(*anchors.get(str(event.anchor), (1, 0)), line)
        elif isinstance(event, yaml.ScalarEvent):
            _check_scalar(event.value, line)
            if event.anchor is not None:
                anchors[event.anchor] = (1, 0)
            add(1, 0, line)


def _check_scalar(value: str, line: int) -> None:
    if "\0" in value:
        raise Unreadable(f"line {line}: a text holds the character NUL")
    try:
        value.encode()
    except UnicodeEncodeError as e:
        raise Unreadable(f"line {line}: a text holds half of a surrogate pair") from e
