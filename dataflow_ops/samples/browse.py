"""What people see of samples: files, turns, dialogues, sums, changes, refused records.

Where the reader may not read texts, whatever comes from inside the samples is left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from dataflow_ops.errors import ConfigError
from dataflow_ops.state.samples.files import SampleFile
from dataflow_ops.state.samples.query import BANDS, Filter
from dataflow_ops.state.samples.store import SampleStore

_SHORTEST_ID: Final = 6
PREVIEW: Final = 2_000
"""Characters of a turn that a page of many turns shows; a dialogue is shown whole."""
_FILE: Final = (
    "id",
    "path",
    "format",
    "size",
    "records",
    "rows",
    "refused",
    "status",
    "task_id",
    "created_at",
)


def meant_files(
    store: SampleStore, dataset: str, given: Sequence[str] = (), *, ready: bool = False
) -> tuple[SampleFile, ...]:
    """Files of a data set.

    Args:
        store: open.
        dataset: whose.
        given: ids (or their first six letters and more), paths or names; all files where there are none.
        ready: of all files only those whose import has ended.

    Raises:
        ConfigError: the data set has no files, or a word names none or several of them.
    """
    files = store.sample_files(dataset)
    if not files:
        raise ConfigError(
            f"data set {dataset!r} has no samples: `dataflow samples import FILE --dataset {dataset}`"
        )
    found: dict[str, SampleFile] = {}
    for word in given:
        named = [f for f in files if _names(word, f)]
        if len(named) != 1:
            what = "several files" if named else "no file"
            raise ConfigError(
                f"{word!r} names {what} of data set {dataset!r}; `dataflow samples files` shows their ids"
            )
        found[named[0].id] = named[0]
    return tuple(found.values()) or tuple(f for f in files if f.status == "READY" or not ready)


def _names(word: str, file: SampleFile) -> bool:
    return (len(word) >= _SHORTEST_ID and file.id.startswith(word)) or word in (
        file.path,
        file.path.rsplit("/", 1)[-1],
    )


def file_rows(files: Iterable[SampleFile]) -> list[dict[str, Any]]:
    """Files as rows of a table."""
    return [{name: getattr(file, name) for name in _FILE} for file in files]


def turn_rows(
    store: SampleStore, only: Filter, after: int | None, limit: int, *, with_text: bool
) -> dict[str, Any]:
    """A page of turns.

    Args:
        store: open.
        only: which turns.
        after: id of the last turn of the page before.
        limit: at most so many.
        with_text: the reader may read texts.

    Returns:
        ``turns``, and ``next``: what ``after`` is for the next page; None where this is the last. A content
        that is longer than :data:`PREVIEW` is cut, and says so (``cut``).
    """
    turns = store.page(only, after, limit, PREVIEW)
    return {
        "turns": [_turn(turn, with_text) for turn in turns],
        "next": turns[-1]["id"] if len(turns) == limit else None,
    }


def whole_dialogue(store: SampleStore, file: SampleFile, record: int, *, with_text: bool) -> dict[str, Any]:
    """One dialogue with all its turns, deleted ones too, and the record's own keys.

    Raises:
        ConfigError: the file has no such dialogue.
    """
    turns = store.dialogue(file.id, record)
    if not turns:
        raise ConfigError(f"{file.path} has no dialogue in its record {record:,}")
    shown = [_turn(turn, with_text) for turn in turns]
    own = shown[0].get("meta", {}).pop("record", {}) if with_text else None
    return {"file": file.id, "path": file.path, "record": record, "own": own, "turns": shown}


def history(store: SampleStore, turn: int, *, with_text: bool) -> list[dict[str, Any]]:
    """What was changed in a turn, oldest first: by which task, rule and person."""
    names = ("task_id", "kind", "who", "ordinal", "rule", "field", "before", "after", "created_at")
    found = []
    for change in store.history(turn):
        row = {name: change[name] for name in names}
        if not with_text and change["field"].startswith("data_"):
            row["before"] = row["after"] = None
        found.append(row)
    return found


def letter_rows(letters: Iterable[Mapping[str, Any]], *, with_text: bool) -> list[dict[str, Any]]:
    """Refused records; what they say only to those who may read texts (a message may quote it)."""
    names = ("dataset_file_id", "row_identifier", "error", "created_at")
    text = ("message", "raw") if with_text else ()
    return [{name: letter[name] for name in (*names, *text)} for letter in letters]


def sums(store: SampleStore, only: Filter) -> dict[str, Any]:
    """Turns, dialogues and characters in all, and by file, role, status and length.

    Returns:
        ``turns``, ``dialogues``, ``characters``; ``by_file``, ``by_role``, ``by_status``: name → turns;
        ``by_length``: ``from``, ``to`` (exclusive, None: no end), ``turns``.
    """
    rows = store.aggregates(only)
    told: dict[str, Any] = {name: sum(r[name] for r in rows) for name in ("turns", "dialogues", "characters")}
    for name in ("file", "role", "status"):
        told[f"by_{name}"] = _by(rows, name)
    lengths = _by(rows, "band")
    told["by_length"] = [
        {"from": start, "to": end, "turns": lengths.get(start, 0)}
        for start, end in zip(BANDS, (*BANDS[1:], None), strict=True)
    ]
    return told


def _by(rows: Sequence[Mapping[str, Any]], name: str) -> dict[Any, int]:
    found: dict[Any, int] = {}
    for row in rows:
        found[row[name]] = found.get(row[name], 0) + row["turns"]
    return found


def _turn(turn: Mapping[str, Any], with_text: bool) -> dict[str, Any]:
    shown = {
        "id": turn["id"],
        "file": turn["dataset_file_id"],
        "record": turn["row_identifier"],
        "turn": turn["turn_taking"],
        "role": turn["data_role"],
        "length": turn["data_length"],
        "status": turn["status"],
        "rule": turn["status_rule"],
        "deleted_at": turn["deleted_at"],
    }
    if with_text:
        shown["content"] = turn["data_content"]
        shown["cut"] = len(turn["data_content"]) < turn["data_length"]
        shown["meta"] = json.loads(turn["data_meta"]) if turn["data_meta"] else {}
    return shown
