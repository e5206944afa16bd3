"""JSON text to records, strictly: what JSON does not allow is isolated, or mended and marked."""

from __future__ import annotations

import json
import math
import re
from typing import Any, Final

from dataflow_ops.errors import DocumentError, MalformedRecord, UndecodableText

_NAN_LITERAL: Final = re.compile(r"NaN|Infinity|[eE]\+?\d{3}")


class _Duplicate(ValueError):
    """A key occurs twice in one object."""


def load_json(line: bytes) -> tuple[Any, tuple[str, ...]]:
    """Parse one JSON text.

    Returns:
        ``(value, repairs)``: NaN and infinite numbers are null, marked ``nan``.

    Raises:
        UndecodableText: the bytes are not UTF-8.
        MalformedRecord: not JSON, nested too deeply, or a key occurs twice in one object.
    """
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError as e:
        raise UndecodableText(
            f"not UTF-8: byte 0x{line[e.start]:02x} at offset {e.start} of the record"
        ) from e
    return _parse(text)


def _parse(text: str) -> tuple[Any, tuple[str, ...]]:
    try:
        value = json.loads(text, object_pairs_hook=_object)
    except json.JSONDecodeError as e:
        raise MalformedRecord(f"not valid JSON: {e.msg} at character {e.pos}") from e
    except _Duplicate as e:
        raise MalformedRecord(str(e)) from e
    except RecursionError as e:
        raise MalformedRecord("JSON is nested too deeply") from e
    except ValueError as e:  # an integer of thousands of digits
        raise MalformedRecord(f"not usable JSON: {e}") from e
    if _NAN_LITERAL.search(text):
        value, found = _finite(value)
        return value, ("nan",) if found else ()
    return value, ()


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise _Duplicate(f"key {key[:80]!r} occurs twice in one object")
            seen.add(key)
    return made


def _finite(value: Any) -> tuple[Any, bool]:
    if isinstance(value, float):
        return (value, False) if math.isfinite(value) else (None, True)
    if isinstance(value, list):
        items = [_finite(v) for v in value]
        return [v for v, _ in items], any(f for _, f in items)
    if isinstance(value, dict):
        pairs = {k: _finite(v) for k, v in value.items()}
        return {k: v for k, (v, _) in pairs.items()}, any(f for _, f in pairs.values())
    return value, False


def as_record(value: Any) -> dict[str, Any]:
    """The fields of a record.

    Raises:
        MalformedRecord: the value is not an object.
    """
    if not isinstance(value, dict):
        raise MalformedRecord(f"a record must be a JSON object, not {type_name(value)}")
    return value


def type_name(value: object) -> str:
    """What JSON calls the type of a value."""
    names = {dict: "an object", list: "an array", str: "a string", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number")


def record_or_error(line: bytes) -> tuple[dict[str, Any], tuple[str, ...]] | DocumentError:
    """The fields and repairs of one JSON object, or the error that isolates it."""
    try:
        value, repairs = load_json(line)
        return as_record(value), repairs
    except DocumentError as e:
        return e
