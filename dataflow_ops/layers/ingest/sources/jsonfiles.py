"""JSON among other files: records to be read one by one, or settings and data, which are one document."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Final

from dataflow_ops.media import CODE, JSON, JSONL, Media
from dataflow_ops.source_settings import SourceSettings

DIALOGUE_KEYS: Final = ("messages", "conversations")
LOOK: Final = 1 << 20
"""Bytes read of a file: a larger one is judged by whether the key occurs among them."""


def record_or_document(path: Path, found: Media, source: SourceSettings) -> Media:
    """The type under which a JSON file of kinds ``files`` and ``git`` is read.

    A ``.json`` file holds records where its object, or the first of its array or lines, has the source's
    ``text_field`` or the turns of a dialogue. Any other is one document of code, as a YAML file is:
    ``package.json`` has no text to miss. Lines in ``.jsonl`` are records; in a repository, where such files
    are mostly test data, only if they look like them. What is compressed is taken at its name's word.

    Args:
        path: the file.
        found: its type by name.
        source: where it comes from.

    """
    if not _is_judged(found, source):
        return found
    try:
        with open(path, "rb") as file:
            head = file.read(LOOK + 1)
    except OSError:
        return found  # fetch will say what is wrong with it
    return judged(head, found, source)


def judged(head: bytes, found: Media, source: SourceSettings) -> Media:
    """As :func:`record_or_document`, of a file whose first :data:`LOOK` + 1 bytes are at hand."""
    keys = (source.text_field, *DIALOGUE_KEYS)
    if not _is_judged(found, source) or _has_records(head[: LOOK + 1], found.media_type, keys):
        return found
    return Media(CODE, found.code_language)


def _is_judged(found: Media, source: SourceSettings) -> bool:
    kinds = (JSON, JSONL) if source.kind == "git" else (JSON,)
    return found.media_type in kinds and not found.codec


def _has_records(head: bytes, media_type: str, keys: tuple[str, ...]) -> bool:
    if media_type == JSON and len(head) <= LOOK:
        try:
            return _is_record(json.loads(head), keys)
        except (ValueError, RecursionError):
            pass  # lines in a file called .json, or cut off, or not JSON at all: the look below tells
    lines = head.removeprefix(b"\xef\xbb\xbf").splitlines()
    first = next((line for line in lines if line.strip()), b"")
    try:
        return _is_record(json.loads(first), keys)
    except (ValueError, RecursionError):
        names = b"|".join(re.escape(json.dumps(key).encode()) for key in keys)
        return re.search(rb"[{,]\s*(?:" + names + rb")\s*:", head) is not None


def _is_record(value: Any, keys: tuple[str, ...]) -> bool:
    first = value[0] if isinstance(value, list) and value else value
    return isinstance(first, dict) and any(key in first for key in keys)
