"""Rows of a database as bytes: their keys, what tells that they changed, and the lines that parse reads.

A line is ``position TAB id TAB fields LF``: a whole number, a JSON text and a JSON object. Text that is not
UTF-8 keeps its odd bytes, so that parse isolates the record that holds them, as it does in a JSON Lines file.
"""

from __future__ import annotations

import base64
import datetime as dt
import decimal
import hashlib
import json
import re
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from dataflow_ops.errors import ConfigError
from dataflow_ops.layers.ingest.outside import Key

VERSION: Final = 1

_UNFIT: Final = re.compile("[%/,\x00-\x1f\x7f\udc80-\udcff]")
_LONGEST: Final = 120

_TAGGED: Final[dict[type, tuple[str, Callable[[str], object]]]] = {
    uuid.UUID: ("uuid", uuid.UUID),
    decimal.Decimal: ("decimal", decimal.Decimal),
    dt.datetime: ("datetime", dt.datetime.fromisoformat),
    dt.date: ("date", dt.date.fromisoformat),
}
"""Types of keys that JSON lacks: their name, and how they are read back. Whole numbers and texts are JSON."""
_READERS: Final = dict(_TAGGED.values())


def key_json(key: Key, where: str) -> list[object]:
    """A key as values that JSON holds; :func:`key_of` is its inverse.

    Raises:
        ConfigError: a column is of a type that can't be a key, or its text is not UTF-8.
    """
    return [_part_json(part, where) for part in key]


def key_of(parts: Sequence[object]) -> Key:
    """The key that :func:`key_json` wrote."""
    found: list[object] = []
    for part in parts:
        if isinstance(part, Mapping):
            [(name, text)] = part.items()
            found.append(_READERS[name](text))
        else:
            found.append(part)
    return tuple(found)


def key_text(key: Key) -> str:
    """A key as people write it: the value; of several columns a JSON array of them."""
    texts = [part if isinstance(part, int) else str(part) for part in key]
    return str(texts[0]) if len(texts) == 1 else json.dumps(texts, ensure_ascii=False)


def key_name(key: Key) -> str:
    """A key as a part of a path. What would end a part, or is not to be printed, is written ``%2F``."""
    name = ",".join(_UNFIT.sub(lambda m: f"%{ord(m[0]) & 0xFF:02X}", str(part)) for part in key)
    if len(name) <= _LONGEST:
        return name
    return f"{name[:_LONGEST]}…{hashlib.sha256(name.encode()).hexdigest()[:16]}"


def position_of(key: Key) -> int:
    """The place of a row in its file, which is part of its documents' identity.

    A whole number is its own place; any other key's is 63 bits of its SHA-256.
    """
    if len(key) == 1 and type(key[0]) is int and 0 <= key[0] < 1 << 63:
        return key[0]
    return key_hash(key) >> 1


def key_hash(key: Key, where: str = "a key") -> int:
    """64 bits of a key's SHA-256.

    Raises:
        ConfigError: as :func:`key_json`.
    """
    text = json.dumps(key_json(key, where), separators=(",", ":"))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")


def line_of(columns: Sequence[str], row: Sequence[object], key: Key, text_field: str) -> bytes:
    """One row as a line.

    Args:
        columns: names of the row's values.
        row: as the database gave it.
        key: of the row.
        text_field: column of the text, which may come as bytes.
    """
    fields = {
        name: _value(bytes(value).decode("utf-8", "surrogateescape"))
        if name == text_field and isinstance(value, bytes | bytearray | memoryview)
        else _value(value)
        for name, value in zip(columns, row, strict=True)
    }
    record_id = json.dumps(key_text(key), ensure_ascii=False)
    text = f"{position_of(key)}\t{record_id}\t{_json(fields)}\n"
    return text.encode("utf-8", "surrogateescape")


def mark_of(values: Sequence[object]) -> bytes:
    """What stands for a row whose text is not read: its key and its version."""
    return (_json([_value(value) for value in values]) + "\n").encode("utf-8", "surrogateescape")


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def _part_json(part: object, where: str) -> object:
    if type(part) is int:
        return part
    if isinstance(part, str):
        if _is_odd(part):
            raise ConfigError(
                f"{where}: a key is not UTF-8 ({part[:40]!a}); leave such rows out with a query, or have it"
                " write their keys in hexadecimal"
            )
        return part
    for kind, (name, _) in _TAGGED.items():
        if type(part) is kind:
            return {name: part.isoformat() if isinstance(part, dt.date) else str(part)}
    raise ConfigError(
        f"{where}: a key of type {type(part).__name__} can't be read by ranges; name other columns as key, or"
        " a query that casts it to text"
    )


def _is_odd(text: str) -> bool:
    return any("\ud800" <= c <= "\udfff" for c in text)


def _value(value: object) -> object:
    """A value as JSON holds it: dates as ISO text, bytes as base64, other objects as their string."""
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, bytes | bytearray | memoryview):
        return base64.b64encode(bytes(value)).decode("ascii")
    if isinstance(value, Mapping):
        return {str(name): _value(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_value(one) for one in value]
    if isinstance(value, dt.date | dt.time):
        return value.isoformat()
    return str(value)
