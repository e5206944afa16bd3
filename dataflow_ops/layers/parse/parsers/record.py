"""Structured records (JSON Lines, JSON, Parquet): the text field, or a dialogue; the rest is metadata."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from dataflow_ops.errors import MalformedRecord
from dataflow_ops.layers.parse.jsontext import to_json
from dataflow_ops.layers.parse.parsers.base import ParsedDocument
from dataflow_ops.layers.parse.parsers.dialogue import canonical_turns, has_content, render
from dataflow_ops.layers.parse.readers.jsonvalue import type_name
from dataflow_ops.layers.parse.records import SourceOptions

NAME: Final = "record"
DIALOGUE_NAME: Final = "dialogue"
VERSION: Final = 1

_DIALOGUE_KEYS: Final = ("messages", "conversations")


def is_dialogue(record: Mapping[str, Any], options: SourceOptions) -> bool:
    """Whether a record is a dialogue: it has turns and no text field."""
    return options.text_field not in record and any(isinstance(record.get(k), list) for k in _DIALOGUE_KEYS)


def parse_record(record: Mapping[str, Any], options: SourceOptions) -> ParsedDocument:
    """Text or turns of one record, and its other keys as metadata (without id and url).

    Raises:
        MalformedRecord: the text field is missing, null or no string; or a turn is malformed.
    """
    used = {options.text_field, options.id_field, options.url_field}
    if is_dialogue(record, options):
        turns = canonical_turns(record)
        key = next(k for k in _DIALOGUE_KEYS if k in record)
        used |= {key, "system"} if key == "conversations" else {key}
        metadata = {k: v for k, v in record.items() if k not in used}
        text = render(turns) if has_content(turns) else ""
        return ParsedDocument(text, metadata=metadata, messages=turns)
    if options.text_field not in record:
        keys = ", ".join(sorted(map(str, record))[:12]) or "none"
        raise MalformedRecord(f"no key {options.text_field!r}; the record has: {keys}")
    text = record[options.text_field]
    if text is None:
        raise MalformedRecord(f"{options.text_field!r} is null")
    if not isinstance(text, str):
        raise MalformedRecord(f"{options.text_field!r} must be a string, not {type_name(text)}")
    metadata = {k: v for k, v in record.items() if k not in used}
    title = metadata.get("title")
    return ParsedDocument(text, title if isinstance(title, str) else "", metadata)


def as_text(value: object) -> str:
    """An id or URL as text: strings as they are, other values as JSON, null as ``""``."""
    if value is None:
        return ""
    return value if isinstance(value, str) else to_json(value)[0]
