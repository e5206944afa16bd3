"""Values of metadata and dialogues as JSON text: sorted, valid, without NUL and lone surrogates."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Mapping
from typing import Any, Final

from dataflow_ops.errors import MalformedRecord
from dataflow_ops.layers.parse.normalise import clean_string


def to_json(value: Any, sort_keys: bool = True) -> tuple[str, tuple[str, ...]]:
    """JSON text and the marks of what had to be repaired (``nan``, ``nul``, ``surrogate``).

    Dates become ISO text, bytes base64, other objects their string.

    Raises:
        MalformedRecord: nested too deeply.
    """
    try:
        try:
            text = _ENCODERS[sort_keys].encode(value)
            if "\\u0000" not in text:
                text.encode("utf-8")
                return text, ()
        except (TypeError, ValueError):  # UnicodeEncodeError is a ValueError
            pass
        marks: set[str] = set()
        return _ENCODERS[sort_keys].encode(_plain(value, marks)), tuple(sorted(marks))
    except RecursionError as e:
        raise MalformedRecord("the record is nested too deeply") from e


def _encoder(sort_keys: bool) -> json.JSONEncoder:
    return json.JSONEncoder(ensure_ascii=False, allow_nan=False, sort_keys=sort_keys, separators=(",", ":"))


_ENCODERS: Final = {sort_keys: _encoder(sort_keys) for sort_keys in (True, False)}


def _plain(value: Any, marks: set[str]) -> Any:
    if isinstance(value, str):
        value, repairs = clean_string(value)
        marks.update(repairs)
        return value
    if isinstance(value, float):
        if math.isfinite(value):
            return value
        marks.add("nan")
        return None
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, Mapping):
        return {_plain(str(k), marks): _plain(v, marks) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v, marks) for v in value]
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    if hasattr(value, "isoformat"):
        return value.isoformat()
    return _plain(str(value), marks)
