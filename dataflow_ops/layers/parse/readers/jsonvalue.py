"""JSON text to records, strictly: what JSON does not allow is isolated, or mended and marked."""

from __future__ import annotations

import json
import sys
from decimal import Decimal
from typing import Any, Final

from dataflow_ops.errors import DocumentError, MalformedRecord, UndecodableText


class _Duplicate(ValueError):
    """A key occurs twice in one object."""


def load_json(data: bytes) -> Any:
    """Parse one JSON text. NaN and infinite numbers come through, to be mended where they are written.

    Raises:
        UndecodableText: the bytes are not UTF-8.
        MalformedRecord: not JSON, nested too deeply, or a key occurs twice in one object.
    """
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as e:
        raise UndecodableText(
            f"not UTF-8: byte 0x{data[e.start]:02x} at offset {e.start} of the record"
        ) from e
    try:
        return _DECODER.decode(text)
    except json.JSONDecodeError as e:
        what = e.msg.removesuffix(" at")  # some of Python's sentences end so
        raise MalformedRecord(f"not valid JSON: {what} at character {e.pos}") from e
    except _Duplicate as e:
        raise MalformedRecord(str(e)) from e
    except RecursionError as e:
        raise MalformedRecord("JSON is nested too deeply") from e
    except ValueError as e:  # an integer of thousands of digits
        limit = sys.get_int_max_str_digits()
        raise MalformedRecord(
            f"a whole number has more than {limit:,} digits: write it as a string, in quotes"
        ) from e


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise _Duplicate(f"key {key[:80]!r} occurs twice in one object")
            seen.add(key)
    return made


_DECODER: Final = json.JSONDecoder(object_pairs_hook=_object)


def as_record(value: Any) -> dict[str, Any]:
    """The fields of a record.

    Raises:
        MalformedRecord: the value is not an object.
    """
    if not isinstance(value, dict):
        raise MalformedRecord(f"a record must be a JSON object, not {type_name(value)}")
    return value


def type_name(value: object) -> str:
    """What JSON calls the type of a value; one it has no word for (bytes of Parquet, dates) by its own."""
    names: dict[type, str] = {
        dict: "an object",
        list: "an array",
        str: "a string",
        bool: "true or false",
        type(None): "null",
        int: "a number",
        float: "a number",
        Decimal: "a number",
        bytes: "bytes (binary)",
    }
    kind = type(value)
    return names.get(kind, f"a {kind.__name__}")


def record_or_error(data: bytes) -> dict[str, Any] | DocumentError:
    """The fields of one JSON object, or the error that isolates it."""
    try:
        return as_record(load_json(data))
    except DocumentError as e:
        return e
