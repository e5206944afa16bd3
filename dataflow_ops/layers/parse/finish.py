"""From what a parser gave to the rows that are stored: normalise, split what is too long, name each part."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from dataflow_ops import schema
from dataflow_ops.layers.parse.jsontext import to_json
from dataflow_ops.layers.parse.normalise import TextRules, clean_string, normalise
from dataflow_ops.layers.parse.parsers.base import ParsedDocument
from dataflow_ops.layers.parse.parsers.dialogue import render
from dataflow_ops.layers.parse.too_long import OnTooLong, cut_text, split_text

REPAIR_ORDER: Final = ("html", "fence", "surrogate", "nul", "nan", "split", "truncated")
"""Every mark that ``repairs`` can hold, in the order in which they are written."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a document comes from."""

    source_id: str
    path: str
    position: int
    media_type: str
    url: str
    record_id: str
    parser: str
    kind_hint: str


@dataclass(frozen=True, slots=True)
class Limits:
    """How long a stored text may be, in characters, and what happens above."""

    max_text_len: int
    on_too_long: OnTooLong


@dataclass(frozen=True, slots=True)
class Reject:
    """Why a record gives no document."""

    rule: str
    value: float
    bound: float
    detail: str


Row = tuple[Any, ...]
"""One row of ``schema.DOCUMENTS``, in its order."""


def finish(parsed: ParsedDocument, origin: Origin, rules: TextRules, limits: Limits) -> list[Row] | Reject:
    """Rows of one record: one, or several where its text is split.

    Raises:
        MalformedRecord: metadata nested too deeply.
    """
    done = normalise(parsed.text, rules)
    if not done.text or done.text.isspace():
        return Reject("empty_text", 0.0, 1.0, f"{origin.parser} found no text")
    marks = {*parsed.repairs, *done.repairs}
    title, url, record_id = (_cleaned(value, marks) for value in (parsed.title, origin.url, origin.record_id))
    metadata = ""
    if parsed.metadata:
        metadata, found = to_json(parsed.metadata)
        marks.update(found)
    turns = None if parsed.messages is None else _normal_turns(parsed.messages, rules, marks)
    if turns is not None:
        marks.update(to_json(turns)[1])
    parts: list[tuple[str, Sequence[Mapping[str, Any]] | None]] = [(done.text, turns)]
    if len(done.text) > limits.max_text_len:
        if limits.on_too_long == "reject":
            return _too_long(len(done.text), limits)
        if limits.on_too_long == "truncate" and turns is None:
            parts = [(cut_text(done.text, limits.max_text_len), None)]
            marks.add("truncated")
        elif turns is None:
            parts = [(text, None) for text in split_text(done.text, limits.max_text_len)]
            marks.add("split")
        else:
            groups = split_turns(turns, limits.max_text_len)
            if groups is None:
                return _too_long(len(done.text), limits)
            truncate = limits.on_too_long == "truncate"
            parts = [(render(group), group) for group in (groups[:1] if truncate else groups)]
            marks.add("truncated" if truncate else "split")
    repairs = ",".join(mark for mark in REPAIR_ORDER if mark in marks)
    single = len(parts) == 1 and "truncated" not in marks
    rows = []
    for part, (text, part_turns) in enumerate(parts):
        rows.append(
            (
                schema.doc_id(origin.source_id, origin.path, origin.position, part),
                text,
                origin.source_id,
                origin.path,
                origin.position,
                part,
                url,
                record_id,
                title,
                origin.media_type,
                origin.parser,
                origin.kind_hint,
                parsed.code_language,
                parsed.encoding,
                repairs,
                # The share of control characters is the record's; every part carries it.
                done.raw_chars if single else _share(done.raw_chars, len(text), len(done.text)),
                done.control_chars if single else _share(done.control_chars, len(text), len(done.text)),
                done.replacement_chars if single else text.count("\ufffd"),
                metadata,
                "" if part_turns is None else to_json(list(part_turns), sort_keys=False)[0],
            )
        )
    return rows


def _share(total: int, part: int, whole: int) -> int:
    return round(total * part / whole)


def _too_long(length: int, limits: Limits) -> Reject:
    return Reject("too_long", float(length), float(limits.max_text_len), f"{length} characters")


def _cleaned(value: str, marks: set[str]) -> str:
    cleaned, repairs = clean_string(value)
    marks.update(repairs)
    return cleaned


def _normal_turns(
    turns: Sequence[Mapping[str, Any]], rules: TextRules, marks: set[str]
) -> list[dict[str, Any]]:
    out = []
    for turn in turns:
        done = normalise(turn["content"], rules)
        marks.update(done.repairs)
        out.append({**turn, "content": done.text})
    return out


def split_turns(turns: Sequence[Mapping[str, Any]], limit: int) -> list[list[Mapping[str, Any]]] | None:
    """Groups of whole turns whose rendering is at most ``limit`` characters; None if one turn is longer."""
    groups: list[list[Mapping[str, Any]]] = []
    size = 0
    for turn in turns:
        length = len(render([turn]))
        if length > limit:
            return None
        if groups and size + 2 + length <= limit:
            groups[-1].append(turn)
            size += 2 + length
        else:
            groups.append([turn])
            size = length
    return groups
