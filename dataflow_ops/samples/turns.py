"""A dialogue as rows of the table ``sample``: texts that a database takes, everything else as JSON."""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

from dataflow_ops.errors import MalformedRecord
from dataflow_ops.layers.parse.jsontext import to_json
from dataflow_ops.layers.parse.normalise import clean_string
from dataflow_ops.samples.formats.dialogue import Dialogue

RECORD: Final = "record"
"""Key of turn 0's metadata below which the record's own keys stand."""
MAX_TURNS: Final = 100_000
"""More turns than that in one record are no dialogue."""


def rows_of(dialogue: Dialogue, file_id: str, record: int, repaired: Counter[str]) -> list[dict[str, Any]]:
    """The rows of one dialogue, without ids and times.

    Args:
        dialogue: what the format gave.
        file_id: the file.
        record: the record's ordinal in it.
        repaired: marks of what had to be mended (``nul``, ``surrogate``, ``nan``) are added to it, once for
            each text or metadata.

    Raises:
        MalformedRecord: no turns, too many, or a turn has a key ``record`` of its own.
    """
    if not dialogue.turns:
        raise MalformedRecord("the record has no turns")
    if len(dialogue.turns) > MAX_TURNS:
        raise MalformedRecord(f"the record has {len(dialogue.turns):,} turns; {MAX_TURNS:,} are the most")
    rows: list[dict[str, Any]] = []
    found: list[str] = []
    for number, turn in enumerate(dialogue.turns):
        if RECORD in turn:
            raise MalformedRecord(f"turn {number} has a key {RECORD!r}, which is taken; give it another name")
        content, marks = clean_string(turn["content"])
        rest = {k: v for k, v in turn.items() if k not in ("role", "content")}
        if number == 0 and dialogue.own:
            rest[RECORD] = dialogue.own
        meta: str | None = None
        if rest:
            meta, more = to_json(rest)
            marks += more
        found += marks
        rows.append(
            {
                "dataset_file_id": file_id,
                "row_identifier": record,
                "turn_taking": number,
                "data_role": turn["role"],
                "data_content": content,
                "data_length": len(content),
                "data_meta": meta,
                "status": "NEW",
                "status_rule": None,
                "deleted_at": None,
            }
        )
    repaired.update(found)
    return rows
